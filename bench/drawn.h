// Plans on drawn machines of the kinds of tests/testing/machine_kinds.h, which bench:kinds and bench:ablation
// count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl::bench {

inline constexpr CollectiveKind kDrawnKinds[] = {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                                 CollectiveKind::kBroadcast, CollectiveKind::kReduce,
                                                 CollectiveKind::kAllreduce, CollectiveKind::kAlltoall};

struct Drawn {
  double time_ps = 0;  // of the faster of schedule and program
  double ratio = 0;    // time ÷ bound
  double cpu_s = 0;
  int64_t messages = 0;
  bool exact = false;
  std::string machine, engine, what;
  uint64_t seed = 0;
};

// The seed chooses the kind of machine and what is drawn; two seeds in a row, an even and an odd one, have
// one kind.
Topology DrawnMachine(uint64_t seed, int32_t ranks);

// The collective of all ranks; its root, where there is one, is rank 0.
Collective DrawnCollective(CollectiveKind kind, const Topology& topology);

double TimePs(const PlanResult& result);

// auto's plan of the request. Errors: MakePlan's.
StatusOr<Drawn> PlanDrawn(const Topology& topology, CollectiveKind kind, PlanOptions options);

// The least value that is no smaller than this share of all. Requires: not empty.
double Quantile(std::vector<double> values, double share);

}  // namespace xccl::bench
