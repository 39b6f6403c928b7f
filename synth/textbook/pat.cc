// Parallel aggregated trees, NCCL's allgather and reduce_scatter of many ranks (Jeaugey, 2025): every rank's
// block goes down the same binomial tree, turned to start at that rank, far children first. A message carries
// the blocks of up to A trees, A a power of 2 that keeps it within a buffer: first log2 A steps in which what
// is sent together doubles, then n'/A - 1 steps of A blocks each that go through the rest depth first, so
// that little waits to be passed on (n' is the power of 2 from n on): log2 A + n'/A - 1 steps, n - 1 for A =
// 1, since steps in which nobody lacks anything are left out; (n-1)/n S bytes. Small sizes take A = n'/2,
// which is log2 n' steps.
#include <algorithm>
#include <map>

#include "synth/textbook/engines.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

constexpr int64_t kBufferBytes = 4 << 20;  // of a connection: NCCL's default

// What all ranks do alike in a step: pass on over this distance what started at these offsets before them.
struct PatStep {
  int32_t distance = 0;
  std::vector<int32_t> offsets;
};

// Offsets x + j n'/A for all j are aggregated. f(x) for x in 1 .. size - 1, depth first, far children first.
template <typename F>
void DepthFirst(int32_t x, int32_t size, F f) {
  const int32_t low = x == 0 ? size : x & -x;
  for (int32_t distance = low / 2; distance > 0; distance /= 2) {
    f(x + distance, distance);
    DepthFirst(x + distance, size, f);
  }
}

std::vector<PatStep> PatSteps(int32_t n, int32_t aggregated) {
  const int32_t power = 1 << CeilLog2(n), rest = power / aggregated;
  std::vector<PatStep> steps;
  for (int32_t distance = power / 2; distance >= rest; distance /= 2) {
    PatStep step{distance, {}};
    for (int32_t o = 0; o + distance < n; o += 2 * distance) step.offsets.push_back(o);
    steps.push_back(std::move(step));
  }
  DepthFirst(0, rest, [&](int32_t x, int32_t distance) {
    PatStep step{distance, {}};
    for (int32_t o = x; o < n; o += rest) step.offsets.push_back(o - distance);
    if (!step.offsets.empty()) steps.push_back(std::move(step));
  });
  return steps;
}

// The most trees whose blocks fit a buffer.
int32_t Aggregated(int32_t n, int64_t size_bytes) {
  int32_t aggregated = std::max(1, (1 << CeilLog2(n)) / 2);
  while (aggregated > 1 && aggregated * (size_bytes / n) > kBufferBytes) aggregated /= 2;
  return aggregated;
}

// f(step number, step, position, position that it sends to).
template <typename F>
void ForSends(const std::vector<PatStep>& steps, int32_t n, F f) {
  for (size_t s = 0; s < steps.size(); ++s)
    for (int32_t p = 0; p < n; ++p) f(static_cast<int32_t>(s), steps[s], p, (p + steps[s].distance) % n);
}

// Steps of one distance are alike, but for how much they carry.
std::optional<Cost> AllgatherCost(const Positions& positions, const std::vector<PatStep>& steps,
                                  const RankGraph& graph) {
  const int32_t n = positions.size();
  if (n > kMostMeasured) return std::nullopt;
  struct Sum {
    double steps = 0, blocks = 0;
  };
  std::map<int32_t, Sum> by_distance;
  for (const PatStep& step : steps) {
    by_distance[step.distance].steps += 1;
    by_distance[step.distance].blocks += static_cast<double>(step.offsets.size());
  }
  Cost total;
  for (const auto& [distance, sum] : by_distance) {
    Moves moves;
    for (int32_t p = 0; p < n; ++p)
      moves.Add({{0, 1},
                 positions.rank[p],
                 positions.rank[(p + distance) % n],
                 0,
                 TransferOp::kCopy,
                 std::nullopt});
    const Cost once = MeasureMoves(moves, graph, 1.0 / n, false);
    total.fixed_ps += once.fixed_ps * sum.steps;
    total.ps_per_byte += once.ps_per_byte * sum.blocks;
  }
  return total;
}

StatusOr<Recipe> PlacePat(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t n = positions.size();
  const std::vector<PatStep> steps = PatSteps(n, Aggregated(n, request.size_bytes));
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.allgather_cost = AllgatherCost(positions, steps, graph);
  recipe.allgather = [positions, steps, n](const Blocks& blocks, Moves& moves) {
    std::vector<int32_t> sent;
    ForSends(steps, n, [&](int32_t s, const PatStep& step, int32_t from, int32_t to) {
      sent.clear();
      for (int32_t offset : step.offsets) sent.push_back(positions.member[(from - offset + n) % n]);
      SendBlocks(blocks, sent, positions.rank[from], positions.rank[to], s, moves);
    });
  };
  return recipe;
}

}  // namespace

const TextbookEngine& PatEngine() {
  static const TextbookEngine engine = {
      "pat",
      "NCCL's parallel aggregated trees: log2 n steps for small sizes, bounded messages for large ones; not "
      "exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBarrier},
      PlacePat};
  return engine;
}

}  // namespace xccl
