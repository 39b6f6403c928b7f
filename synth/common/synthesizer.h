// The interface of all engines. An engine takes a request and returns a schedule, or an error that says why
// it has no schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "topologies/topology.h"

namespace xccl {

// The limits of a search. Work units are deterministic: the same flags give the same plan byte for byte. Wall
// time limits the search only if a deadline is set.
struct SynthesisLimits {
  std::optional<int32_t> chunks = {};  // the exact number of chunks per part
  std::optional<int32_t> steps = {};   // the largest number of steps
  std::optional<int32_t> rounds = {};  // the largest number of rounds; only smt reads it
  int64_t work_units = 0;              // the budget of the search, in a unit of the engine; 0: its default
  Deadline deadline = Deadline();      // by the wall clock; the default never passes
};

class RankGraphs;
struct Synthesis;

struct SynthesisRequest {
  const Topology* topology = nullptr;
  const Collective* collective = nullptr;  // every part is one chunk; the engine may cut parts into several
  int64_t size_bytes = 64LL << 20;         // engines minimise the simulated time at this size
  TimeModel model = TimeModel::kPipelined;
  SynthesisLimits limits = {};
  uint64_t seed = 0;
  bool rough = false;            // approximate times suffice (SimulateOptions::rough)
  bool allow_divergent = false;  // ranks may end with differently rounded values of one sum
  // The plan is chosen by the time of its program on a machine's model, which may order the engines in
  // another way than ideal links do. auto then also returns a plan of every engine whose plan takes little
  // work to make.
  bool programs_decide = false;
  // A verified plan of this collective on this topology. greedy improves the plan; other engines ignore it.
  std::shared_ptr<const Synthesis> start = {};
  // Receives a message when a long search starts something new.
  std::function<void(const std::string&)> progress = {};
  // The lower bound of the request, computed with any effort; null if unknown.
  const Bound* bound = nullptr;
  // The graphs of neighbouring ranks, shared by all engines that get the request; null if not built yet.
  std::shared_ptr<RankGraphs> graphs = {};
  // Names of engines that auto skips, and of methods that auto or an engine skips.
  std::vector<std::string> passed_over = {};

  bool IsPassedOver(std::string_view engine) const;
};

struct Synthesis {
  Collective collective;  // cut into the chunks that the schedule moves
  Schedule schedule;      // normalized
  bool exact = false;     // proved: no plan in the stated time model is better
  std::string engine;     // the engine that made the plan, such as "ring"; with auto, the winner
  std::string note;       // one line for people, may be empty
  // The simulation of `schedule` at the request's size and time model; absent if not simulated.
  std::optional<Simulation> simulation = {};
  // One message for each wrong plan that an engine made. A wrong plan is a bug of XCCL, so users see the
  // message, and tests fail on it.
  std::vector<std::string> faults = {};
  // Other plans for the request. Their programs may be faster or smaller than this plan's program. auto
  // simulates them and sorts them by time, the fastest first; other engines may leave them unsimulated.
  std::vector<Synthesis> others = {};
};

// Returns the known bound of the request, or else a lower bound computed with little effort. Errors: those of
// LowerBound.
StatusOr<Bound> BoundOf(const SynthesisRequest& request);

// Returns the empty plan for a request in which every rank already has what it needs. The plan is exact and
// has the number of chunks that the request asks for.
Synthesis NothingToMove(std::string_view engine, const SynthesisRequest& request);

// Returns the options to simulate a schedule of this request. A simulation that the deadline stops returns
// kForeverPs, so its plan is never the fastest.
inline SimulateOptions TimingOf(const SynthesisRequest& request) {
  return {.size_bytes = request.size_bytes,
          .model = request.model,
          .rough = request.rough,
          .deadline = request.limits.deadline.ForTheRest()};
}

// An estimate of a plan and of the work to make it, given before the plan is made.
struct Offer {
  double time_ps = 0;  // the estimated time of the plan; the lower bound if no formula predicts it
  // The work to make and simulate the plan, in moves (synth/common/cost_model.h).
  int64_t work = 0;
  int64_t bytes = 0;          // memory beyond that of the moves
  bool fills_budget = false;  // the search spends all work that it may; it needs at least `work`
  // Makes the plan from results that the offer already has, with at most the work `most_work`. Empty: the
  // caller uses Engine::Synthesize. Requires that the request and the objects it points to still exist.
  std::function<StatusOr<Synthesis>(int64_t most_work)> make = {};
};

// The cases in which an engine sets Synthesis::exact, so that its plan is proved to be the best.
enum class ExactOn : uint8_t {
  kNothing,    // never, unless there is nothing to move
  kMetBound,   // if the time meets the lower bound, which the engine may miss
  kBandwidth,  // as kMetBound; other plans, but of allreduce, have the best rate for very large sizes
  kModel,      // as kMetBound; also if the plan is proved best in the engine's model of steps and rounds
};
std::string_view ToString(ExactOn exact);

// The idea behind an engine. Pages of comparisons sort engines by family.
enum class EngineFamily : uint8_t {
  kSearches,   // searches that use the machine's links
  kSwitches,   // switches multicast or reduce
  kTrees,      // textbook rings, trees and grids
  kExchanges,  // textbook exchanges between pairs of ranks, in few steps
};

// An engine: one row of the table in synth/engines.h. Other code uses an engine only through this struct. The
// functions keep no state, so threads may share them.
struct Engine {
  std::string_view name;
  std::string_view summary;  // one line: what it optimises, whether it is exact
  EngineFamily family = EngineFamily::kSearches;
  std::vector<CollectiveKind> kinds = {};  // the kinds that the engine may serve; empty: every kind
  ExactOn exact_on = ExactOn::kNothing;
  bool is_witness = false;        // smt tries its plans as answers before it runs the solver
  bool searches_long = false;     // a search takes seconds to hours
  bool starts_from_plan = false;  // can improve SynthesisRequest::start
  bool proves_fronts = false;     // can prove the front of steps and rounds for `plan --pareto`
  bool asks_others = false;       // its plans come from other engines and carry their names
  bool asks_pairs = false;        // its offer examines all pairs of ranks
  // With more and smaller chunks, the plan stays the same and its steps overlap more.
  bool any_chunks = false;
  // Serves an alltoall of more than kMostParts parts if each part is one chunk. Its schedule lists only the
  // data of one rank of each orbit and is never made plain.
  bool any_parts = false;

  // Implements Serves. Empty: Serves checks the kind, the members and the number of chunks
  // (synth/common/serves.h).
  std::function<Status(const SynthesisRequest&)> serves = {};
  // Implements Offered. Empty: Offered returns the lower bound as the time, and no work.
  std::function<StatusOr<Offer>(const SynthesisRequest&)> offer = {};
  // Implements Plan and Synthesize. Called only for requests that the engine serves.
  std::function<StatusOr<Synthesis>(const SynthesisRequest&)> make;

  // Returns whether the engine serves some requests of this kind.
  bool MayServe(CollectiveKind kind) const;
  // Returns kOk if the engine serves the request, or else kInvalidInput with the reason. Does not search.
  Status Serves(const SynthesisRequest& request) const;
  // Estimates the plan at a small part of the cost of making it. Errors: those of Serves and of the estimate.
  StatusOr<Offer> Offered(const SynthesisRequest& request) const;
  // Makes the plan. Requires that CheckReachable accepts the collective. Errors: kInvalidInput (not served),
  // kInfeasible (proved), kLimit (a limit stopped the engine), kBug (a check failed, or the simulation found
  // the plan unsound). If all plans need more steps than limits.steps, the message hints at the fewest steps
  // of these plans. needed() of a kLimit status is this number, unless the engine asks other engines.
  StatusOr<Synthesis> Synthesize(const SynthesisRequest& request) const;
  // Makes the plan as Synthesize does, but does not explain a refusal because of limits.steps. Used by
  // engines that ask other engines.
  StatusOr<Synthesis> Plan(const SynthesisRequest& request) const;
};

// The type of the function that returns the table of all engines. It is a function because two engines of the
// table use the table themselves.
using EngineTable = std::span<const Engine> (*)();

// The engine name of a plan that moves nothing, if an engine that asks other engines returns the plan.
inline constexpr const char* kNoEngine = "none";

// The engine that is used if the user names no engine.
inline constexpr const char* kDefaultEngine = "auto";

}  // namespace xccl
