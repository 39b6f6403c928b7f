// Runs floods with different policies and seeds. A flood ends early once it cannot beat the best flood so
// far. On regular machines the first flood often meets the bound.
#include "synth/greedy/search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/units.h"
#include "ir/time_model.h"
#include "synth/greedy/flood.h"
#include "synth/greedy/improve.h"
#include "synth/greedy/list.h"
#include "synth/greedy/trees.h"

namespace xccl::greedy {
namespace {

// Returns a bound on floods of single chunks: the time in which the links into each rank can bring the number
// of chunks that the rank needs.
int64_t ArrivalBound(const CopyProblem& problem) {
  const Topology& topology = *problem.topology;
  const std::vector<LinkCost> costs = LinkCosts(topology, problem.model);
  std::vector<int64_t> needs(static_cast<size_t>(topology.num_ranks()), 0);
  int64_t least = INT64_MAX;
  for (int32_t c = 0; c < problem.chunks; ++c) {
    for (int32_t r : problem.needers[c]) ++needs[r];
    if (!problem.needers[c].empty()) least = std::min(least, problem.bytes[c]);
  }
  int64_t bound = 0;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) {
    const std::span<const LinkId> in = topology.In(topology.NodeOf(Rank(r)));
    if (needs[r] == 0 || in.empty()) continue;
    const auto arrivals = [&](int64_t time) {
      int64_t count = 0;
      for (LinkId l : in) {
        const int64_t each = BusyPs(costs[l.index()], least);
        const int64_t left = std::max<int64_t>(0, time - costs[l.index()].delay_ps);
        count = std::min(needs[r], count + (each > 0 ? left / each : needs[r]));
      }
      return count;
    };
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

// The policies run in turn, each time with another seed. The first reaches every rank that floods can reach.
// With one entry per group, a chunk that enters a group may not be passed on to all ranks of the group.
constexpr FloodPolicy kRareInGroup = {.samples = 64, .defer_slow_links = true, .local_rarity = true};
constexpr FloodPolicy kOneEntry = {.samples = 16, .one_entry_per_group = true};
constexpr FloodPolicy kOneEntryFineGroups = {
    .samples = 16, .one_entry_per_group = true, .fine_groups = true, .fast_first = true};
constexpr FloodPolicy kOneEntryDeferring = {
    .samples = 16, .one_entry_per_group = true, .defer_slow_links = true};
constexpr FloodPolicy kAnyChunk = {.samples = 1};
constexpr std::array kPolicies = {kRareInGroup, kOneEntry, kOneEntryFineGroups, kOneEntryDeferring,
                                  kAnyChunk};

}  // namespace

std::optional<SearchResult> FindFlood(const CopyProblem& problem, const SearchOptions& options,
                                      int64_t& work) {
  Flood flood(problem);
  const int64_t bound = options.batch_bytes > 0 ? 0 : ArrivalBound(problem);
  std::vector<GreedyMove> best;
  int64_t best_ps = INT64_MAX;
  for (uint64_t run = 0;
       run == 0 || (work < options.work && best_ps > bound && (!options.one_round || run < kPolicies.size()));
       ++run) {
    if (run > 0 && options.stopped && options.stopped()) break;
    FloodPolicy policy = kPolicies[run % kPolicies.size()];
    policy.seed = options.seed * 1'000'003 + run;
    policy.deadline_ps = best_ps;
    policy.batch_bytes = options.batch_bytes;
    const bool found = flood.Run(policy, options.run_work);
    work += flood.work() + 20 * static_cast<int64_t>(flood.moves().size()) + 2000;
    if (!found && best_ps == INT64_MAX) return std::nullopt;  // no other policy reaches more ranks
    if (!found || flood.time_ps() >= best_ps) continue;
    best = flood.moves();
    best_ps = flood.time_ps();
  }
  SearchResult result{.copies = ScheduleOf(problem, flood.paths(), best), .tight = best_ps <= bound};
  // Local search needs about one change for each move, and each change times all moves.
  const int64_t moves = std::ssize(best);
  if (!result.tight && options.batch_bytes == 0 && moves * moves <= options.improve_work) {
    const ImproveOptions further{.seed = options.seed, .goal_ps = bound, .work = options.improve_work};
    if (std::optional<Schedule> improved = ImproveSchedule(problem, result.copies, further))
      result.copies = *std::move(improved);
  }
  return result;
}

std::optional<SearchResult> FindTrees(const CopyProblem& problem, const SearchOptions& options,
                                      int64_t& work) {
  const Routes routes = ChooseTrees(problem, options.depth_weight, options.seed * 1'000'003);
  work += 3 * routes.work + 60 * static_cast<int64_t>(routes.transfers.size()) + 2000;
  if (!routes.complete) return std::nullopt;
  return SearchResult{
      .copies = ScheduleOf(problem, routes.paths, ListSchedule(problem, routes, options.batch_bytes))};
}

bool Floods(const CopyProblem& problem) {
  int64_t chunks = 0, needs = 0;
  for (int32_t c = 0; c < problem.chunks; ++c) {
    if (problem.needers[c].empty()) continue;
    ++chunks;
    needs += static_cast<int64_t>(problem.needers[c].size() + problem.holders[c].size());
  }
  return 2 * needs >= chunks * problem.topology->num_ranks();
}

}  // namespace xccl::greedy
