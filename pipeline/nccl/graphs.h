// The channels that NCCL would find on a machine: how many, and the bandwidth of each. NCCL's search is
// followed in outline: the same list of bandwidths, from the widest down, and for each as many rings as the
// links hold.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/machine_model.h"
#include "topologies/topology.h"

namespace xccl::nccl {

// Generations of GPUs, in the order of NCCL's tables.
enum class Generation : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };

// Errors: kInvalidInput where the GPUs' architecture is none that NCCL has tables for, or not known.
StatusOr<Generation> GenerationOf(const Topology& topology);

struct Channels {
  int32_t count = 0;                              // 0: NCCL cannot run it
  double intra_gb_per_s = 0, inter_gb_per_s = 0;  // a channel's, within a host and between hosts
};

struct Graphs {
  Generation generation = Generation::kAmpere;
  int32_t ranks = 0, nodes = 0;  // nodes: hosts
  bool nvlink = false;           // all hops within a host are NVLinks; else some are PCIe
  Channels ring, nvls;           // trees take the rings' channels
};

// `machine` says what links reach. Errors: those of GenerationOf; kInvalidInput where hosts have different
// numbers of ranks, or where no ring joins a host's GPUs.
StatusOr<Graphs> FindGraphs(const Topology& topology, const MachineModel& machine);

}  // namespace xccl::nccl
