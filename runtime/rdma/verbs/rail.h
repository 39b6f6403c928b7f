// One network device opened through libibverbs: the port, the addresses that RoCE knows it by, the memory
// registered with it, its completion queues.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/rdma/verbs/library.h"
#include "runtime/transport/network.h"

namespace xccl::verbs {

using GidBytes = std::array<uint8_t, 16>;

// An entry of a port's table of addresses.
struct Gid {
  GidBytes bytes = {};
  uint8_t index = 0;
  bool operator==(const Gid&) const = default;
};

struct Rail {
  std::string name;  // "mlx5_0"
  // In the order in which they are made; destroyed in reverse.
  Owned<ibv_context> context;
  Owned<ibv_pd> domain;
  Owned<ibv_mr> slots, cells;
  Owned<ibv_comp_channel> channel;  // readable when an armed queue has a completion; does not block
  std::vector<Owned<ibv_cq>> queues;

  uint8_t port = 0;  // the first that is active
  ibv_device_attr limits = {};
  ibv_port_attr attributes = {};
  std::vector<Gid> gids;  // RoCE v2, not link-local; unused on InfiniBand
  bool ethernet() const { return attributes.link_layer == IBV_LINK_LAYER_ETHERNET; }
};

// Opens the devices that rails 0 to `wanted` - 1 go over: those named, else the first with an active port in
// order of name, numbers as numbers. Fewer than `wanted` are returned where there are fewer; rails then go
// round. Errors: kSystem "rxe7: no such device; expected one of rxe0, rxe1".
StatusOr<std::vector<Rail>> OpenRails(const Library& library, const NetworkOptions& options, int32_t wanted);
// Registers the slots. Errors: kSystem "rxe0: registering 1024 bytes of slots: Cannot allocate memory".
Status RegisterSlots(const Library& library, const NetworkMemory& memory, Rail& rail);
Status RegisterCells(const Library& library, const NetworkMemory& memory, Rail& rail);
// A queue of this many entries, which wakes the rail's channel; the channel is made with the first.
StatusOr<ibv_cq*> AddQueue(const Library& library, uint32_t entries, Rail& rail);

// The indices of the addresses by which two devices reach each other: those with the longest common prefix,
// so IPv4 with IPv4 and one subnet before two. Both ends find the same pair. Requires: neither is empty.
struct GidPair {
  size_t mine = 0, theirs = 0;
};
GidPair ClosestGids(const std::vector<GidBytes>& mine, const std::vector<GidBytes>& theirs);

// kSystem "what: reason" for an errno.
Status Failed(const std::string& what, int code);

}  // namespace xccl::verbs
