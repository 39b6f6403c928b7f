// One network device opened through libfabric: a reliable datagram endpoint, its peers' addresses, its
// completion queue, and the memory registered with it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/transport/network.h"
#include "runtime/transport/ofi/library.h"

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
  std::unique_ptr<fid_domain, CloseFid> domain;
  std::unique_ptr<fid_av, CloseFid> addresses;
  std::unique_ptr<fid_cq, CloseFid> completions;
  std::unique_ptr<fid_mr, CloseFid> memory;
  std::unique_ptr<fid_ep, CloseFid> endpoint;
  int file = -1;              // readable when there are completions
  bool virtual_base = false;  // remote addresses are the owner's, else offsets
};

// The devices that rails 0 to `rails` - 1 go over, in order; they repeat where there are fewer. Errors:
// kSystem "network device eth7: ...; found eth0, eth1".
StatusOr<std::vector<Info>> FindDevices(const Library& library, const NetworkOptions& options, int32_t rails);
// Opens a device and registers the slots. `depth`: operations under way and arrivals not yet read, at most.
StatusOr<Rail> OpenRail(const Library& library, const fi_info& info, const NetworkMemory& memory,
                        size_t depth);

}  // namespace xccl::ofi
