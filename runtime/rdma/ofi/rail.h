// One network device opened through libfabric: a reliable datagram endpoint, its peers' addresses, its
// completion queue, and the memory registered with it.
//
// Whoever reaches an endpoint may write where it knows a key. So each connection's slots have a key of their
// own, 64 random bits. A provider that chooses keys itself may count them up; what keeps strangers out there
// is the device: packets for EFA carry a random number of the endpoint, which is in the address that ranks
// tell each other alone.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/rdma/ofi/library.h"
#include "runtime/transport/network.h"

namespace xccl::ofi {

struct CloseFid {
  template <typename Fid>
  void operator()(Fid* opened) const {
    fi_close(&opened->fid);
  }
};
struct FreeInfo {
  void (*free)(fi_info*) = nullptr;
  void operator()(fi_info* info) const { free(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

struct Rail {
  std::string name;  // "net on eth0"
  // In the order in which they are opened; closed in reverse.
  std::unique_ptr<fid_fabric, CloseFid> fabric;
  std::unique_ptr<fid_eq, CloseFid> events;  // provider net's: what `file` is of; else null
  std::unique_ptr<fid_domain, CloseFid> domain;
  std::unique_ptr<fid_av, CloseFid> addresses;
  std::unique_ptr<fid_cq, CloseFid> completions;
  std::vector<std::unique_ptr<fid_mr, CloseFid>> memory;
  std::unique_ptr<fid_ep, CloseFid> endpoint;
  std::string address;        // the endpoint's, as the provider writes it
  int file = -1;              // readable when there are completions, or may be
  bool virtual_base = false;  // remote addresses are the owner's, else offsets in a key's memory
  size_t key_bytes = 0;       // the most bytes of a key that this rank chooses
  size_t data_bytes = 0;      // size of the data that a write may carry for the receiver's queue
};

// The devices that rails 0 to `rails` - 1 go over, in order; they repeat where there are fewer. Errors:
// kSystem "network device eth7: ...; found eth0, eth1".
StatusOr<std::vector<Info>> FindDevices(const Library& library, const NetworkOptions& options, int32_t rails);
// `depth`: operations under way and arrivals not yet read, at most. Errors: kSystem "net on eth0: ...".
StatusOr<Rail> OpenRail(const Library& library, const fi_info& info, size_t depth);
// Registers memory that this rank writes from and that peers with its key write into. The rail keeps it.
// Errors: kSystem "net on eth0: registering 8192 bytes of slots: ...".
StatusOr<fid_mr*> Register(const Library& library, std::span<std::byte> slots, Rail& rail);

}  // namespace xccl::ofi
