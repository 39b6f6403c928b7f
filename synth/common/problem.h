// A copy problem: chunks with holders and needers, and nothing is added up. Collectives that reduce are such
// a problem on the reversed topology (phases.h). Beside it, how long a message takes a link.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// How a message of some bytes takes a link, in the model that judges the plan.
struct LinkCost {
  int64_t fixed_ps = 0;     // occupied once a message
  int64_t delay_ps = 0;     // further delay of arrival
  int64_t bytes_per_s = 1;  // bandwidth
};
std::vector<LinkCost> LinkCosts(const Topology& topology, TimeModel model);
// How long a message occupies a link, capped so that a few of these times can be added.
inline int64_t BusyPs(const LinkCost& cost, int64_t bytes) {
  const __int128 ps = static_cast<__int128>(cost.fixed_ps) + TransferPs(bytes, cost.bytes_per_s);
  return ps < kForeverPs ? static_cast<int64_t>(ps) : kForeverPs;
}

// Lists have one entry a chunk; contributing_holders may be empty.
struct CopyProblem {
  const Topology* topology = nullptr;
  TimeModel model = TimeModel::kPipelined;
  int32_t chunks = 0;
  std::vector<int64_t> bytes;                          // by chunk
  std::vector<std::vector<int32_t>> holders, needers;  // by chunk: ranks; needers hold nothing before
  // Where the moves will run backwards as sums, the holders that have a contribution of their own.
  std::vector<std::vector<int32_t>> contributing_holders;
};

}  // namespace xccl
