// The state of a rank's connections over libfabric; connect.cc fills it.
//
// Networks may deliver writes in any order (EFA's do), so a message and its signal are one operation: a write
// with data for the receiver's completion queue (signal.h). A receiver of messages is told heads alone, a
// sender tails alone. A message is visible when it and all before it have arrived. A signal without one of
// this rank's marks comes from a stranger and counts for nothing. A peer's signal with an impossible counter
// is an error.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/rdma/ofi/library.h"
#include "runtime/rdma/ofi/rail.h"
#include "runtime/transport/network.h"
#include "runtime/transport/transport.h"

namespace xccl::ofi {

// One write under way. libfabric keeps a pointer to it until the write completes.
struct Operation {
  fi_context context = {};  // first: libfabric gives its address back
  int32_t place = 0;        // the connection's
};

struct OfiConnection {
  RemoteConnection at;
  ConnectionCell* cell = nullptr;
  Rail* rail = nullptr;
  fid_mr* memory = nullptr;  // this rank's slots, registered
  uint64_t mark = 0;         // the mark of signals that arrive
  fi_addr_t peer = FI_ADDR_UNSPEC;
  uint64_t peer_key = 0, peer_base = 0, peer_mark = 0;  // for the peer's slots and signals
  std::vector<Operation> operations;                    // puts of each slot, or takes
  std::vector<bool> arrived;                            // receiver: by slot, messages behind the head
  uint64_t given_back = 0;                              // receiver: the tail that the sender was told last
};

class OfiTransport final : public Transport {
 public:
  OfiTransport(const Library& library, const NetworkMemory& memory);

  ConnectionEnd At(int32_t connection) override;
  void Put(int32_t connection, int64_t bytes) override;
  void Take(int32_t connection, bool together) override;
  void GiveBack() override;
  StatusOr<bool> Progress() override;
  bool Flushed() const override { return under_way_ == 0 && waiting_.empty(); }
  std::span<const int> files() const override { return files_; }
  bool PrepareToSleep() override;

  // For Connect: all rails first, then connections in the layout's order.
  std::vector<Rail>& rails() { return rails_; }
  std::vector<OfiConnection>& connections() { return connections_; }
  void AddRail(Rail rail);
  void AddConnection(OfiConnection connection);

 private:
  struct Write {
    int32_t place = 0;
    bool tail = false;
    uint64_t counter = 0;
    int64_t bytes = 0;
  };
  OfiConnection& Find(int32_t connection) { return connections_[static_cast<size_t>(place_[connection])]; }
  void TellTaken(OfiConnection& connection, uint64_t tail);
  void Start(const Write& write);
  // False: the device takes no more at present.
  bool Post(const Write& write);
  void Arrive(uint64_t data);
  Status ArriveHead(OfiConnection& of, uint64_t data);
  Status ArriveTail(OfiConnection& of, uint64_t data) const;
  Status WrongSignalOf(const OfiConnection& of, uint64_t head, uint64_t tail) const;
  Status ReadCompletions(Rail& rail);
  // Reads an error of the rail's queue. OkStatus where it is none of this rank's own writes.
  Status ReadError(Rail& rail);

  const Library& library_;
  const NetworkMemory memory_;
  std::vector<Rail> rails_;
  std::vector<OfiConnection> connections_;  // by place in the layout
  std::vector<int32_t> place_;              // by connection of the wiring
  std::deque<Write> waiting_;               // in order
  std::vector<int> files_;
  int64_t under_way_ = 0;
  bool moved_ = false;
  Status failure_;  // the failure of a call that cannot return one
};

}  // namespace xccl::ofi
