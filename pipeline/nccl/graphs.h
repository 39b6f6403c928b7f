// Estimates the channels that NCCL would find on a machine: their number, and the bandwidth of each. The
// search is a simple form of NCCL's search. It goes through the same list of bandwidths, the largest first.
// For each bandwidth it places as many rings on the links as it finds with limited work.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/machine_model.h"
#include "topologies/topology.h"

namespace xccl::nccl {

// Generations of GPUs, in the order of NCCL's tables.
enum class Generation : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };

// Returns the generation of the topology's GPUs. Errors: kInvalidInput if the GPUs' architecture is unknown,
// or if NCCL has no tables for it.
StatusOr<Generation> GenerationOf(const Topology& topology);

struct Channels {
  int32_t count = 0;                              // 0: NCCL cannot run this algorithm
  double intra_gb_per_s = 0, inter_gb_per_s = 0;  // of one channel, within a host and between hosts
};

struct Graphs {
  Generation generation = Generation::kAmpere;
  int32_t ranks = 0, nodes = 0;  // a node is a host here, as in NCCL
  bool nvlink = false;           // the rings use NVLinks alone within hosts; else hops count as PCIe
  Channels ring, nvls;           // trees use the same channels as rings
};

// Finds the channels. The bandwidths of links are those that links reach by `machine`. Errors: those of
// GenerationOf; kInvalidInput if hosts have different numbers of ranks, if no ring joins the GPUs of a host,
// or if no NIC of a host leads to the other hosts.
StatusOr<Graphs> FindGraphs(const Topology& topology, const MachineModel& machine);

}  // namespace xccl::nccl
