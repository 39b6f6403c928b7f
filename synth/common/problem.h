// A copy problem: chunks, the ranks that hold them and the ranks that need them. Sums are copy problems on
// the reversed machine (phases.h). Also the time that a message occupies a link.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// The costs of a message on a link in the time model of the request.
struct LinkCost {
  int64_t fixed_ps = 0;     // time for which each message occupies the link beside its bytes
  int64_t delay_ps = 0;     // time from the end of that until the message arrives
  int64_t bytes_per_s = 1;  // bandwidth
};
std::vector<LinkCost> LinkCosts(const Topology& topology, TimeModel model);
// The time for which a message occupies a link, capped so that the sum of a few does not overflow.
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
  // By chunk, in a gather: the holders that contribute to the sum themselves.
  std::vector<std::vector<int32_t>> contributing_holders;
};

}  // namespace xccl
