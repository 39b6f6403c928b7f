// Several runs with different policies and seeds, each cut short when it cannot beat the best so far; on
// regular machines the first is already at the bound.
#include "synth/greedy/search.h"

#include <algorithm>
#include <array>

#include "base/units.h"
#include "ir/time_model.h"
#include "synth/greedy/flood.h"
#include "synth/greedy/improve.h"
#include "synth/greedy/list.h"
#include "synth/greedy/trees.h"

namespace xccl::greedy {
namespace {

// What no flood of single chunks can beat: the time in which the links into a rank bring what it needs.
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

constexpr std::array<FloodPolicy, 20> kFloodPolicies = {
    {{.samples = 16},
     {.samples = 16, .import_once = true},
     {.samples = 16, .patient = true},
     {.samples = 4},
     {.samples = 1},
     {.samples = 16, .import_once = true, .patient = true},
     {.samples = 1, .hesitant = true},
     {.samples = 16, .hesitant = true},
     {.samples = 16, .fast_first = true},
     {.samples = 16, .patient = true, .fast_first = true},
     {.samples = 1, .patient = true, .fast_first = true},
     {.samples = 2, .fast_first = true},
     {.samples = 16, .import_once = true, .fine_groups = true},
     {.samples = 16, .import_once = true, .fine_groups = true, .fast_first = true},
     {.samples = 64, .rare_inside = true},
     {.samples = 64, .patient = true, .rare_inside = true},
     {.samples = 64, .fast_first = true, .rare_inside = true},
     {.samples = 64, .patient = true, .fast_first = true, .rare_inside = true},
     {.samples = 64, .patient = true, .fine_groups = true, .rare_inside = true},
     {.samples = 64, .fine_groups = true, .fast_first = true, .rare_inside = true}}};
// In the pipelined model only these, in turn: a message's place in its link's queue matters more there than
// which chunk is rare, and more seeds of few policies find more.
constexpr size_t kPipelinedPolicies = 14;
// The blocking model's order where some ranks are joined better than others: what heeds groups first.
constexpr std::array<size_t, kFloodPolicies.size()> kOrderForGroups = {15, 5,  17, 18, 14, 9, 2, 1,  0,  16,
                                                                       19, 12, 13, 3,  8,  7, 4, 10, 11, 6};

// Which policy runs next. Pipelined: each in turn. Blocking: each once, then those that came farthest, where
// a run that is given up is judged by what was left to do.
class PolicyRanking {
 public:
  PolicyRanking(TimeModel model, bool groups) : pipelined_(model == TimeModel::kPipelined), groups_(groups) {}

  size_t num_policies() const { return pipelined_ ? kPipelinedPolicies : kFloodPolicies.size(); }

  size_t Next(uint64_t run) {
    if (pipelined_) return run % kPipelinedPolicies;
    if (run < kFloodPolicies.size()) return groups_ ? kOrderForGroups[run] : run;
    if (run == kFloodPolicies.size()) std::stable_sort(tried_.begin(), tried_.end());
    return tried_[run % std::min(kFinalists, tried_.size())].policy;
  }

  void Note(size_t policy, int64_t time_ps, int64_t missing) {
    if (tried_.size() < kFloodPolicies.size()) tried_.push_back({missing, time_ps, policy});
  }

 private:
  static constexpr size_t kFinalists = 5;
  struct Tried {
    int64_t missing, time_ps;
    size_t policy;
    bool operator<(const Tried& other) const {
      return missing != other.missing ? missing < other.missing : time_ps < other.time_ps;
    }
  };
  bool pipelined_, groups_;
  std::vector<Tried> tried_;
};

constexpr size_t kMostImprovedMoves = 8192;  // beyond which too few changes could be tried

void AppendMoves(const Topology& topology, const PathTable& paths, const std::vector<GreedyMove>& moves,
                 Schedule& schedule) {
  schedule.paths = paths;
  schedule.Reserve(static_cast<int64_t>(moves.size()));
  for (const GreedyMove& move : moves) {
    const std::span<const LinkId> links = paths[PathId(move.path)];
    schedule.Add({.first = ChunkId(move.chunk),
                  .count = 1,
                  .src = *topology.RankOf(topology.link(links.front()).from),
                  .dst = *topology.RankOf(topology.link(links.back()).to),
                  .path = PathId(move.path),
                  .op = TransferOp::kCopy,
                  .step = move.step});
  }
}

std::optional<SearchResult> SearchFloods(const CopyProblem& problem, const SearchOptions& options,
                                         int64_t& work) {
  Flood flood(problem);
  const int64_t bound = options.batch_bytes > 0 ? 0 : ArrivalBound(problem);
  std::vector<GreedyMove> best;
  int64_t best_ps = INT64_MAX;
  PolicyRanking ranking(problem.model, flood.grouped());
  for (uint64_t run = 0; run == 0 || (work < options.work && best_ps > bound &&
                                      (!options.one_round || run < ranking.num_policies()));
       ++run) {
    if (run > 0 && options.stopped && options.stopped()) break;
    const size_t choice = ranking.Next(run);
    FloodPolicy policy = kFloodPolicies[choice];
    policy.seed = options.seed * 1'000'003 + run;
    policy.deadline_ps = best_ps;
    policy.batch_bytes = options.batch_bytes;
    const bool found = flood.Run(policy);
    work += flood.work() + 20 * static_cast<int64_t>(flood.moves().size()) + 2000;
    if (!found && best_ps == INT64_MAX) return std::nullopt;  // no policy will do better at reaching ranks
    ranking.Note(choice, found ? flood.time_ps() : INT64_MAX, flood.missing());
    if (!found || flood.time_ps() >= best_ps) continue;
    best = flood.moves();
    best_ps = flood.time_ps();
  }
  const bool direct = std::all_of(best.begin(), best.end(), [&](const GreedyMove& move) {
    return move.path < problem.topology->num_links();
  });
  if (best_ps > bound && direct && options.batch_bytes == 0 && best.size() <= kMostImprovedMoves &&
      options.improve_work > 0) {
    const ImproveOptions further{.seed = options.seed, .goal_ps = bound, .work = options.improve_work};
    ImproveResult improved = Improve(problem, best, further);
    if (improved.time_ps < best_ps) best = std::move(improved.moves), best_ps = improved.time_ps;
  }
  SearchResult result{.time_ps = best_ps, .copies = {}, .tight = best_ps <= bound};
  result.copies.num_chunks = problem.chunks;
  AppendMoves(*problem.topology, flood.paths(), best, result.copies);
  return result;
}

std::optional<SearchResult> SearchTrees(const CopyProblem& problem, const SearchOptions& options,
                                        int64_t& work) {
  const double depth_weight = options.method == Method::kShortTrees   ? 1
                              : options.method == Method::kLightTrees ? 0
                                                                      : 0.4;
  std::optional<SearchResult> best;
  for (uint64_t run = 0; run == 0 || (run < 12 && work < options.work); ++run) {
    if (run > 0 && options.stopped && options.stopped()) break;
    const TreePolicy policy{.seed = options.seed * 1'000'003 + run,
                            .passes = run == 0 ? 2 : 3,
                            .depth_weight = depth_weight,
                            .balance = run != 1};
    const Routes routes = ChooseTrees(problem, policy);
    work += 3 * routes.work + 60 * static_cast<int64_t>(routes.transfers.size()) + 2000;
    if (!routes.complete) return std::nullopt;
    const ListResult listed = ListSchedule(problem, routes, options.batch_bytes);
    if (best && listed.time_ps >= best->time_ps) continue;
    best = SearchResult{.time_ps = listed.time_ps, .copies = {}, .tight = false};
    best->copies.num_chunks = problem.chunks;
    AppendMoves(*problem.topology, routes.paths, listed.moves, best->copies);
  }
  return best;
}

}  // namespace

bool Floods(const CopyProblem& problem) {
  int64_t chunks = 0, needs = 0;
  for (int32_t c = 0; c < problem.chunks; ++c) {
    if (problem.needers[c].empty()) continue;
    ++chunks;
    needs += static_cast<int64_t>(problem.needers[c].size() + problem.holders[c].size());
  }
  return 2 * needs >= chunks * problem.topology->num_ranks();
}

std::optional<SearchResult> FindCopies(const CopyProblem& problem, const SearchOptions& options,
                                       int64_t& work) {
  return options.method == Method::kFlood ? SearchFloods(problem, options, work)
                                          : SearchTrees(problem, options, work);
}

}  // namespace xccl::greedy
