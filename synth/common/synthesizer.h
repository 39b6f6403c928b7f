// The one interface of all engines: a request goes in, a schedule or a reason why there is none comes out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "synth/common/deadline.h"
#include "topologies/topology.h"

namespace xccl {

// What bounds a search. Work units are deterministic (same flags, same bytes); wall clock only where asked
// for.
struct SynthesisLimits {
  std::optional<int32_t> chunks;  // exactly this many chunks a part
  std::optional<int32_t> steps;   // at most
  std::optional<int32_t> rounds;  // smt: at most
  int64_t work_units = 0;         // 0: the engine's default
  std::optional<double> time_limit_s;
};

class Grounds;
struct Synthesis;

struct SynthesisRequest {
  const Topology* topology = nullptr;
  const Collective* collective = nullptr;  // parts whole; engines cut
  int64_t size_bytes = 64LL << 20;         // what is minimised: simulated time at this size
  TimeModel model = TimeModel::kPipelined;
  SynthesisLimits limits = {};
  uint64_t seed = 0;
  bool allow_divergent = false;  // ranks may end with different roundings of one sum
  // A plan of this collective on this topology, verified: greedy improves it, others do not look at it.
  const Synthesis* start = nullptr;
  // Asked now and then by engines that search for long: true ends the search with the best so far.
  std::function<bool()> stopped = {};
  // Told what such an engine is about.
  std::function<void(const std::string&)> progress = {};
  // What the asker knows of this request, so that engines need not find it out again; absent: unknown. The
  // lower bound, of any effort, and who is next to whom.
  const Bound* bound = nullptr;
  Grounds* grounds = nullptr;
};

struct Synthesis {
  Collective collective;  // cut into the chunks that the schedule moves
  Schedule schedule;      // normalized
  bool exact = false;     // proved: no plan in the stated model is better
  std::string engine;     // who made it: "ring"; auto says the winner's name
  std::string note;       // one line for people, may be empty
  std::optional<Simulation> simulation =
      {};  // of the schedule at the request's size and model, if it was run
};

// The lower bound of the request: the known one, else that of little effort. Errors: LowerBound's.
StatusOr<Bound> BoundOf(const SynthesisRequest& request);

// The plan where nobody needs what he has not: no transfers, exact. In the chunks that are asked for.
Synthesis NothingToMove(std::string_view engine, const SynthesisRequest& request);

// The request's time limit, from this call on.
inline Deadline DeadlineOf(const SynthesisRequest& request) { return Deadline(request.limits.time_limit_s); }

// What a plan would take, known before it is made.
struct Offer {
  double time_ps = 0;  // closed-form estimate
  // What making it costs, in moves of a chunk, which take about 1.5 us each with their simulation.
  int64_t work = 0;
  // Makes the plan with what was found out for the offer, searching for so many moves at most; empty:
  // Engine::Synthesize. Uses the request and what it points to.
  std::function<StatusOr<Synthesis>(int64_t most_work)> make = {};
};

// What an engine's plans are the best in, whatever the request.
enum class ExactOn : uint8_t {
  kNothing,    // `exact` is never set where something moves
  kMetBound,   // `exact` is set where the time meets the lower bound, which the engine may miss
  kBandwidth,  // as kMetBound, and the rate of a stream without end is the best there is
  kModel,      // as kMetBound, and proves what is best in its own model of steps and rounds
};
std::string_view ToString(ExactOn exact);

// One row of the table of engines (synth/engines.h): everything that the rest may know of an engine. Its
// functions are stateless and safe to share between threads.
struct Engine {
  std::string_view name;
  std::string_view summary;                // one line: what it optimises, whether it is exact
  std::vector<CollectiveKind> kinds = {};  // that it may serve; empty: every kind
  ExactOn exact_on = ExactOn::kNothing;
  bool is_witness = false;        // its plans answer smt's questions before the solver is asked
  bool searches_long = false;     // for seconds to hours; ends where SynthesisRequest::stopped says so
  bool starts_from_plan = false;  // improves SynthesisRequest::start
  bool proves_fronts = false;     // of steps and rounds, `plan --pareto`
  bool asks_others = false;       // its plans are those of other rows, under their names
  bool near_bound = false;        // its plans mostly come within percents of the lower bound
  bool any_chunks = false;  // in more and shorter chunks its plan is the same, and steps overlap further

  // What Serves does; empty: the kinds, the members and the limits are checked (synth/common/serves.h).
  std::function<Status(const SynthesisRequest&)> serves = {};
  // What Offered does; empty: a plan at the bound for nothing.
  std::function<StatusOr<Offer>(const SynthesisRequest&)> offer = {};
  // What Synthesize does for a request that is served.
  std::function<StatusOr<Synthesis>(const SynthesisRequest&)> make;

  // Whether there are requests for such a collective that it serves.
  bool MayServe(CollectiveKind kind) const;
  // Cheap test before any search: kOk, or why this engine does not serve this request (kInvalidInput).
  Status Serves(const SynthesisRequest& request) const;
  // A closed-form guess, cheap beside the plan. Errors: those of Serves.
  StatusOr<Offer> Offered(const SynthesisRequest& request) const;
  // Requires: CheckReachable. Errors: kInvalidInput (not served), kInfeasible (proved), kLimit (stopped).
  StatusOr<Synthesis> Synthesize(const SynthesisRequest& request) const;
};

// The whole table, asked for when it is used: two of its rows ask the others.
using EngineTable = std::span<const Engine> (*)();

// The row that makes plans where no engine is named.
inline constexpr const char* kDefaultEngine = "auto";

}  // namespace xccl
