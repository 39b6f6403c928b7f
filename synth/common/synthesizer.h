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

#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
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

// The plan where nobody needs what he has not: no transfers, exact. In the chunks that are asked for.
Synthesis NothingToMove(std::string_view engine, const SynthesisRequest& request);

// Has the request's time limit passed since this call? Empty where it has none.
std::function<bool()> DeadlineOf(const SynthesisRequest& request);

// Stateless, safe to share between threads.
class Synthesizer {
 public:
  virtual ~Synthesizer() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // one line: what it optimises, whether it is exact
  // Whether there are requests for such a collective that it serves.
  virtual bool MayServe(CollectiveKind kind) const {
    (void)kind;
    return true;
  }
  // Cheap test before any search: kOk, or why this engine does not serve this request (kInvalidInput).
  virtual Status Serves(const SynthesisRequest& request) const = 0;
  // Closed-form guess of the time in ps, for ordering candidates; absent: unknown.
  virtual std::optional<double> EstimatePs(const SynthesisRequest& request) const {
    (void)request;
    return std::nullopt;
  }
  // Requires: CheckReachable. Errors: kInvalidInput (not served), kInfeasible (proved), kLimit (stopped).
  virtual StatusOr<Synthesis> Synthesize(const SynthesisRequest& request) const = 0;
};

}  // namespace xccl
