// Several runs with different policies and seeds within a budget of work, each cut short when it cannot beat
// the best so far; the first is usually at the bound on regular machines.
#include "synth/greedy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "synth/greedy_flood.h"

namespace xccl {
namespace {

using greedy::CopyProblem;
using greedy::Flood;
using greedy::FloodPolicy;
using greedy::Move;

constexpr int64_t kDefaultWork = 40'000'000;

// What no flood of single chunks can beat: the time in which the links into a rank can bring what it needs.
int64_t ArrivalBound(const CopyProblem& problem) {
  const Topology& topology = *problem.topology;
  const std::vector<greedy::LinkCost> costs = greedy::LinkCosts(topology, problem.model);
  std::vector<int64_t> needs(static_cast<size_t>(topology.num_ranks()), 0);
  int64_t least = INT64_MAX;
  for (int32_t c = 0; c < problem.chunks; ++c) {
    for (int32_t r : problem.needers[c]) ++needs[r];
    if (!problem.needers[c].empty()) least = std::min(least, problem.bytes[c]);
  }
  int64_t bound = 0;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    const auto arrivals = [&](int64_t time) {
      int64_t count = 0;
      for (LinkId l : topology.In(topology.NodeOf(Rank(r)))) {
        const greedy::LinkCost& cost = costs[l.index()];
        const int64_t each = cost.fixed_ps + TransferPs(least, cost.bytes_per_s);
        count += each > 0 ? std::max<int64_t>(0, time - cost.delay_ps) / each : needs[r];
      }
      return count;
    };
    if (needs[r] == 0 || topology.In(topology.NodeOf(Rank(r))).empty()) continue;
    int64_t low = bound, high = std::max<int64_t>(bound, 1);
    while (arrivals(high) < needs[r]) high *= 2;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      arrivals(middle) >= needs[r] ? high = middle : low = middle + 1;
    }
    bound = low;
  }
  return bound;
}

std::vector<FloodPolicy> Policies(uint64_t seed) {
  return {{.seed = seed, .samples = 16},
          {.seed = seed, .samples = 16, .import_once = true},
          {.seed = seed, .samples = 16, .patient = true},
          {.seed = seed, .samples = 4},
          {.seed = seed, .samples = 1},
          {.seed = seed, .samples = 16, .import_once = true, .patient = true}};
}

// The fastest of several runs; empty when none delivers everything.
std::vector<Move> BestFlood(Flood& flood, const CopyProblem& problem, uint64_t seed, int64_t work) {
  const int64_t bound = ArrivalBound(problem);
  std::vector<Move> best;
  int64_t best_ps = INT64_MAX, done = 0;
  const std::vector<FloodPolicy> policies = Policies(seed);
  for (int32_t run = 0; done < work && best_ps > bound && run < 2000; ++run) {
    FloodPolicy policy = policies[static_cast<size_t>(run) % policies.size()];
    policy.seed += static_cast<uint64_t>(run);
    policy.deadline_ps = best_ps;
    const bool found = flood.Run(policy);
    done += flood.work() + 20 * static_cast<int64_t>(flood.moves().size()) + 1000;
    if (!found || flood.time_ps() >= best_ps) continue;
    best = flood.moves();
    best_ps = flood.time_ps();
  }
  return best;
}

class Greedy : public Synthesizer {
 public:
  std::string_view name() const override { return "greedy"; }
  std::string_view summary() const override {
    return "time-expanded matching of idle links and chunks, rare chunks first; not exact";
  }

  Status Serves(const SynthesisRequest& request) const override {
    switch (request.collective->kind()) {
      case CollectiveKind::kAllgather:
      case CollectiveKind::kAllgatherv:
      case CollectiveKind::kBroadcast:
        return OkStatus();
      default:
        return InvalidInput(fmt::format("greedy: {} is not served", request.collective->name()));
    }
  }

  StatusOr<Synthesis> Synthesize(const SynthesisRequest& request) const override {
    XCCL_RETURN_IF_ERROR(Serves(request));
    Synthesis made{.collective = request.collective->WithChunks(request.limits.chunks.value_or(1)),
                   .schedule = {},
                   .exact = false,
                   .engine = "greedy",
                   .note = {}};
    const CopyProblem problem =
        greedy::MakeCopyProblem(*request.topology, made.collective, request.size_bytes, request.model);
    Flood flood(problem);
    const int64_t work = request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork;
    const std::vector<Move> moves = BestFlood(flood, problem, request.seed, work);
    if (moves.empty() && request.collective->num_members() > 1)
      return InvalidInput(
          "greedy: not every rank can be reached without passing ranks outside the collective");
    made.schedule.num_chunks = problem.chunks;
    made.schedule.Reserve(static_cast<int64_t>(moves.size()));
    for (const Move& move : moves) {
      const std::span<const LinkId> links = flood.PathLinks(move.path);
      const Topology& topology = *request.topology;
      made.schedule.Add(ChunkId(move.chunk), 1, *topology.RankOf(topology.link(links.front()).from),
                        *topology.RankOf(topology.link(links.back()).to), links, TransferOp::kCopy,
                        move.step);
    }
    Normalize(made.schedule);
    return made;
  }
};

}  // namespace

std::unique_ptr<Synthesizer> MakeGreedy() { return std::make_unique<Greedy>(); }

}  // namespace xccl
