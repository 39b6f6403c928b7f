// The state of a rank's connections over libfabric; connect.cc fills it.
//
// Networks may deliver writes in any order (EFA's do), so a message and its signal are one operation: a write
// with 32 bits of data for the receiver's completion queue. They are the receiver's cell, whether the counter
// is head or tail, and the counter's low bits. A message is visible when it and all before it have arrived.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/network.h"
#include "runtime/transport/ofi/library.h"
#include "runtime/transport/ofi/rail.h"
#include "runtime/transport/transport.h"

namespace xccl::ofi {

// Data for the receiver's completion queue.
struct Signal {
  static constexpr int kCounterBits = 12;  // more than twice the slots of a connection
  static constexpr int kCellBits = 19;
  int32_t cell = 0;  // of the receiver of this signal
  bool tail = false;
  uint64_t counter = 0;  // its low bits

  uint64_t Encode() const;
  static Signal Decode(uint64_t data);
};
// The counter near `known` with these low bits: at most half of their range away from it.
uint64_t Unwrap(uint64_t low_bits, uint64_t known);

// What is under way; libfabric keeps a pointer to it until it completes.
struct Operation {
  fi_context context = {};  // first: libfabric gives its address back
  int32_t place = 0;        // of the connection
  bool tail = false;
};

struct OfiConnection {
  RemoteConnection at;
  ConnectionCell* cell = nullptr;
  Rail* rail = nullptr;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  uint64_t peer_key = 0, peer_base = 0;  // of the peer's slots
  std::vector<Operation> operations;     // puts of each slot, or takes
  std::vector<bool> arrived;             // receiver: by slot, messages behind the head
  uint64_t given_back = 0;               // receiver: the tail that the sender was told last
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

  // For Connect: rails first, then connections in the layout's order.
  std::vector<Rail>& rails() { return rails_; }
  void Add(OfiConnection connection);
  void AddFile(int file) { files_.push_back(file); }

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
  StatusOr<bool> ReadCompletions(Rail& rail);
  Status ErrorOf(Rail& rail);

  const Library& library_;
  const NetworkMemory memory_;
  std::vector<Rail> rails_;
  std::vector<OfiConnection> connections_;  // by place: that of the layout
  std::vector<int32_t> place_;              // by connection of the wiring
  std::deque<Write> waiting_;               // in order
  std::vector<int> files_;
  int64_t under_way_ = 0;
  bool moved_ = false;
  Status failure_;  // of a call that cannot return it
};

}  // namespace xccl::ofi
