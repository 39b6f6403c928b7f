// The one interface of all engines: a request goes in, a schedule or a reason why there is none comes out.
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

// The limits of a search. Work units are deterministic, so the same flags give the same bytes; wall time
// counts only where asked for.
struct SynthesisLimits {
  std::optional<int32_t> chunks = {};  // exactly this many chunks a part
  std::optional<int32_t> steps = {};   // at most
  std::optional<int32_t> rounds = {};  // smt: at most
  int64_t work_units = 0;              // 0: the engine's default
  Deadline deadline = Deadline();      // by the wall clock; none unless asked for
};

class RankGraphs;
struct Synthesis;

struct SynthesisRequest {
  const Topology* topology = nullptr;
  const Collective* collective = nullptr;  // parts whole; engines cut
  int64_t size_bytes = 64LL << 20;         // the simulated time at this size is minimised
  TimeModel model = TimeModel::kPipelined;
  SynthesisLimits limits = {};
  uint64_t seed = 0;
  bool rough = false;            // times are for choosing among many plans (ir/simulate/simulate.h)
  bool allow_divergent = false;  // ranks may end with different roundings of one sum
  // A verified plan of this collective on this topology. greedy improves it; other engines ignore it.
  std::shared_ptr<const Synthesis> start = {};
  // Told what an engine that searches for long does at the moment.
  std::function<void(const std::string&)> progress = {};
  // The lower bound, of any effort; null where it is not known.
  const Bound* bound = nullptr;
  // Which ranks are neighbours, found once for all engines that are asked; null where nobody has asked yet.
  std::shared_ptr<RankGraphs> graphs = {};
  // Engines that auto does not ask, by name.
  std::vector<std::string> passed_over = {};

  bool IsPassedOver(std::string_view engine) const;
};

struct Synthesis {
  Collective collective;  // cut into the chunks that the schedule moves
  Schedule schedule;      // normalized
  bool exact = false;     // proved: no plan in the stated model is better
  std::string engine;     // the engine that made it: "ring"; auto gives the winner's name
  std::string note;       // one line for people, may be empty
  std::optional<Simulation> simulation =
      {};  // the schedule's, at the request's size and model, if it was run
  // Every engine that made a wrong plan and so lost its turn, with what was wrong. That is a bug of ours,
  // which users should see beside their plan, and which fails a test.
  std::vector<std::string> faults = {};
  // Other plans of the request, which may not be simulated: their programs may be faster, or smaller. auto's
  // are simulated, the fastest first.
  std::vector<Synthesis> others = {};
};

// All plans of so few transfers are compared as programs, which costs little: passes overlap what whole
// chunks do not.
inline constexpr int64_t kTinyPlan = 200;

// The lower bound of the request: the known one, else one of little effort. Errors: LowerBound's.
StatusOr<Bound> BoundOf(const SynthesisRequest& request);

// The plan where every rank already has what it needs: no transfers, exact, in the chunks that are asked for.
Synthesis NothingToMove(std::string_view engine, const SynthesisRequest& request);

// The options of a schedule's simulation that the request sets. A simulation that its deadline stops is never
// the fastest.
inline SimulateOptions TimingOf(const SynthesisRequest& request) {
  return {.size_bytes = request.size_bytes,
          .model = request.model,
          .rough = request.rough,
          .deadline = request.limits.deadline.ForTheRest()};
}

// The cost of a plan, known before it is made.
struct Offer {
  double time_ps = 0;  // closed-form estimate
  // The cost of making it, in moves of a chunk, which take about 1.5 us each with their simulation.
  int64_t work = 0;
  bool fills_budget = false;  // searches as long as it may: costs all of most_work, and `work` at least
  // Makes the plan from what the offer already found, searching for so many moves at most. Empty:
  // Engine::Synthesize does. Uses the request and what it points to.
  std::function<StatusOr<Synthesis>(int64_t most_work)> make = {};
};

// The sense in which an engine's plans are the best, whatever the request.
enum class ExactOn : uint8_t {
  kNothing,    // `exact` is never set where something moves
  kMetBound,   // `exact` is set where the time meets the lower bound, which the engine may miss
  kBandwidth,  // as kMetBound, and the rate of a stream without end is the best there is
  kModel,      // as kMetBound, and proves what is best in its own model of steps and rounds
};
std::string_view ToString(ExactOn exact);

// The idea of an engine, by which pages of comparisons sort engines.
enum class EngineFamily : uint8_t {
  kSearches,   // searches by the machine's links
  kSwitches,   // multicasts or reduces in switches
  kTrees,      // rings, trees and grids of the textbook
  kExchanges,  // exchanges between pairs of ranks in few steps, of the textbook
};

// One row of the table of engines (synth/engines.h): all that other code may know of an engine. Its functions
// are stateless and safe to share between threads.
struct Engine {
  std::string_view name;
  std::string_view summary;  // one line: what it optimises, whether it is exact
  EngineFamily family = EngineFamily::kSearches;
  std::vector<CollectiveKind> kinds = {};  // those that it may serve; empty: every kind
  ExactOn exact_on = ExactOn::kNothing;
  bool is_witness = false;        // its plans answer smt's questions before the solver is asked
  bool searches_long = false;     // for seconds to hours
  bool starts_from_plan = false;  // improves SynthesisRequest::start
  bool proves_fronts = false;     // `plan --pareto`: the front of steps and rounds
  bool asks_others = false;       // its plans are those of other rows, under their names
  bool asks_pairs = false;        // its offer looks at all pairs of ranks
  bool any_chunks = false;  // in more and shorter chunks its plan is the same, and steps overlap further

  // Implements Serves. Empty: the kinds, the members and the limits are checked (synth/common/serves.h).
  std::function<Status(const SynthesisRequest&)> serves = {};
  // Implements Offered. Empty: a plan at the bound that costs nothing.
  std::function<StatusOr<Offer>(const SynthesisRequest&)> offer = {};
  // Implements Synthesize for a request that is served.
  std::function<StatusOr<Synthesis>(const SynthesisRequest&)> make;

  // Whether it serves some requests for such a collective.
  bool MayServe(CollectiveKind kind) const;
  // Cheap test before any search: kOk, or why this engine does not serve this request (kInvalidInput).
  Status Serves(const SynthesisRequest& request) const;
  // A closed-form guess, cheap beside the plan. Errors: those of Serves.
  StatusOr<Offer> Offered(const SynthesisRequest& request) const;
  // Requires: CheckReachable. Errors: kInvalidInput (not served), kInfeasible (proved), kLimit (stopped;
  // needed() is the least number of steps of a plan that limits.steps refused), kBug (it made a plan that its
  // simulation found unsound).
  StatusOr<Synthesis> Synthesize(const SynthesisRequest& request) const;
  // As Synthesize, for rows that ask other rows: a refusal for its steps is not explained.
  StatusOr<Synthesis> Plan(const SynthesisRequest& request) const;
};

// The whole table, asked for when it is used: two of its rows ask the others.
using EngineTable = std::span<const Engine> (*)();

// The maker of a plan where a row that asks others needs none of them: nothing has to be moved.
inline constexpr const char* kNoEngine = "none";

// The row that makes plans where no engine is named.
inline constexpr const char* kDefaultEngine = "auto";

}  // namespace xccl
