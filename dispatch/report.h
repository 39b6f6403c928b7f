// The facts about an expert plan and the routes beside it: the keys that the command line's JSON and
// Python share, and the request that their arguments make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "dispatch/make_plan.h"
#include "dispatch/plan.h"
#include "topologies/topology.h"

namespace xccl::dispatch {

// The work of most published tables: DeepSeek-V3's experts, rows of 7,168 fp8 values with 56 scales, and the
// same row as bfloat16 on the way back.
inline constexpr int32_t kUsualExperts = 256, kUsualTopK = 8, kUsualTokens = 4096;
inline constexpr int64_t kUsualRowOfDispatch = 7392, kUsualRowOfCombine = 14336;

// A user's request; what is absent is as above.
struct Asked {
  Call call = Call::kDispatch;
  std::optional<int64_t> experts = {}, top_k = {}, tokens = {}, row_bytes = {};
  std::string routing = "uniform", aim = "throughput";
  uint64_t seed = 0;
};
// Errors: kUsage for sizes that do not fit, and for the aim; those of ReadRoutingSource as kUsage with
// `dashes` and "routing: " in front, likewise the aim's.
StatusOr<PlanRequest> RequestOf(int32_t ranks, const Asked& asked, const std::string& dashes);

// Names with values, in the order in which they are shown. monostate: none.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;
using Facts = std::vector<std::pair<std::string, Value>>;

// The facts of `plan --json` up to the name of the file that it writes, and those behind.
struct PlanFacts {
  Facts times, rest;
};
PlanFacts FactsOf(const ExpertPlan& plan, const Evaluation& evaluation);

// One way to do the work, timed on all draws.
struct ComparedRoute {
  std::string name;
  bool chosen = false;                  // it is what the planner takes
  std::optional<ExpertPlan> plan = {};  // absent: pairwise and padded alltoall, which have none
  std::vector<int64_t> times_ps = {};   // by draw
};
struct RouteComparison {
  std::vector<int64_t> bounds_ps;     // by draw
  int32_t drawn_tokens = 0;           // of a rank, for each draw
  std::vector<ComparedRoute> routes;  // the fastest median first
};
// All routes that the planner tries on the machine, DeepEP's, pairwise alltoallv and padded alltoall on the
// same draws; one draw is timed whatever the time. Errors: those of Prepare and MakeExpertPlan.
StatusOr<RouteComparison> CompareRoutes(const Topology& topology, const PlanRequest& request, int32_t draws,
                                        const Deadline& deadline = Deadline());
// One line for each route.
std::vector<Facts> FactsOf(const RouteComparison& comparison, const Topology& topology,
                           const PlanRequest& request);

// Simulates the plan's call on drawn routings: one line for each draw, of which there is at least one
// whatever the time. `routing`: the source's name.
std::vector<Facts> SimulateDraws(const ExpertPlan& plan, const RoutingSource& source,
                                 const std::string& routing, int32_t draws,
                                 const Deadline& deadline = Deadline());

}  // namespace xccl::dispatch
