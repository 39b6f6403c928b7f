// Chooses an expert plan for a machine, and times it on drawn routings beside the bound and other routes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/random.h"
#include "base/status.h"
#include "dispatch/domains.h"
#include "dispatch/plan.h"
#include "dispatch/routing.h"
#include "topologies/topology.h"

namespace xccl::dispatch {

struct PlanRequest {
  Call call = Call::kDispatch;
  Sizes sizes;
  Aim aim = Aim::kThroughput;
  RoutingSource routing;
  uint64_t seed = 0;
  std::function<void(const std::string&)> progress = {};  // told what is being done; may be empty
};

// What all plans for one request on one machine start from: searched and drawn once, and handed on.
struct Groundwork {
  const Topology& topology;
  PlanRequest request;
  Domains domains;
  Paths paths;
  std::vector<Needs> draws;  // on which routes are compared; those of fewer tokens on a large machine

  void Say(const std::string& what) const;  // to request.progress
};
// The topology must outlive the result. One draw is made whatever the time. Errors: kInvalidInput for sizes
// that do not fit the machine; kLimit where the paths between all ranks would take longer than there is.
StatusOr<Groundwork> Prepare(const Topology& topology, const PlanRequest& request,
                             const Deadline& deadline = Deadline());

// One draw of a request, of at most about so many choices: fewer tokens a rank, but at least 64, each of
// which stands for several. A file's routing is taken whole.
Needs DrawNeeds(const PlanRequest& request, int64_t most_choices, Random& random);
// Choices of experts in one whole draw.
int64_t ChoicesOf(const Sizes& sizes);
// As many choices as are drawn and timed in a share of the time that is left, at most `otherwise`.
int64_t ChoicesWithin(const Deadline& deadline, double share, int64_t otherwise);
// The share for one draw of many.
inline constexpr double kShareOfOneDraw = 0.25;
// About how long an evaluation of so many whole draws takes.
double SecondsOfDraws(const Sizes& sizes, int32_t draws);

// The plan whose routes take the least median time on a few drawn routings; of about equal ones the one with
// less traffic to relays comes first. Errors: kInfeasible if some rank cannot reach another. One route is
// made whatever the time; others in half of it.
StatusOr<ExpertPlan> MakeExpertPlan(const Groundwork& ground, const Deadline& deadline = Deadline());
// Prepares as well.
StatusOr<ExpertPlan> MakeExpertPlan(const Topology& topology, const PlanRequest& request);

// A plan for each route that the planner tries on the machine, in its order; a route that does not fit has
// none.
struct PlansOfRoutes {
  std::vector<ExpertPlan> plans;
  size_t chosen = 0;  // index of the one that MakeExpertPlan makes
};
// Errors: those of MakeExpertPlan.
StatusOr<PlansOfRoutes> MakeAllRoutes(const Groundwork& ground);

// DeepEP's routes on the machine: over NVLink inside a host, and once per other host to the GPU of the home's
// own number there. As a plan, so that the same model times both.
StatusOr<ExpertPlan> DeepEpPlan(const Groundwork& ground);

// Rows go straight to each rank that needs them: what alltoalls take.
StatusOr<ExpertPlan> DirectPlan(const Groundwork& ground);

// Times of one draw, in picoseconds.
struct DrawTimes {
  int64_t plan_ps = 0, bound_ps = 0, deepep_ps = 0, pairwise_ps = 0, padded_ps = 0;
  double ratio() const {
    return bound_ps == 0 ? 1 : static_cast<double>(plan_ps) / static_cast<double>(bound_ps);
  }
};

struct Evaluation {
  std::vector<DrawTimes> draws;
  bool has_beside =
      true;  // else the time left was too short for the routes beside the plan: their times are 0
  int32_t copies =
      1;  // each drawn token stands for so many: more than 1 where a whole draw would last too long
  std::string busiest;  // name of the link that was fullest in the last draw; empty if nothing moved
};

// Times a plan of the machine and request on draws other than those that chose it. A file has one draw,
// whatever `draws` says. One draw is timed whatever the time, of as few tokens as the time asks for. Errors:
// kInvalidInput for calls that take more than a day.
StatusOr<Evaluation> Evaluate(const ExpertPlan& plan, const Groundwork& ground, int32_t draws,
                              const Deadline& deadline = Deadline());

// The share of values that are at most the result, by nearest rank: 0.5 is the median. Requires: not empty.
template <typename T>
T Quantile(std::vector<T> values, double share);

// Draws for which an evaluation of the sizes takes about a second on one core; at least 3, at most 1000.
int32_t DefaultDraws(const Sizes& sizes);

// Bytes of the buffers of the plan's slots, on the rank that has most.
int64_t MostBufferBytes(const ExpertPlan& plan);

}  // namespace xccl::dispatch
