// A copy problem: chunks to copy, the ranks that hold them and the ranks that need them. Sums are solved as
// copy problems on the reversed machine (phases.h). Also computes the time for which a message occupies a
// link.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// The cost of a message on a link in the request's time model.
struct LinkCost {
  int64_t fixed_ps = 0;     // time for which each message occupies the link in addition to its bytes
  int64_t delay_ps = 0;     // time from when the link is free again until the message arrives
  int64_t bytes_per_s = 1;  // bandwidth
};
std::vector<LinkCost> LinkCosts(const Topology& topology, TimeModel model);
// Returns the time for which a message occupies a link, capped at kForeverPs so that a few times can be added
// without overflow.
inline int64_t BusyPs(const LinkCost& cost, int64_t bytes) {
  const __int128 ps = static_cast<__int128>(cost.fixed_ps) + TransferPs(bytes, cost.bytes_per_s);
  return ps < kForeverPs ? static_cast<int64_t>(ps) : kForeverPs;
}

// Every vector has one entry per chunk, except that contributing_holders may be empty.
struct CopyProblem {
  const Topology* topology = nullptr;
  TimeModel model = TimeModel::kPipelined;
  int32_t chunks = 0;
  std::vector<int64_t> bytes;  // by chunk
  // By chunk: the ranks that hold the chunk at the start, and the other ranks that need it.
  std::vector<std::vector<int32_t>> holders, needers;
  // In a gather, by chunk: the holders that add data of their own to the sum.
  std::vector<std::vector<int32_t>> contributing_holders;
};

}  // namespace xccl
