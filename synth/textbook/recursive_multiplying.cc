// Groups of k exchange all that they have, in every step with other partners, so that it grows k-fold
// (Ruefenacht, Bull and Booth, 2017; of radix k on exascale machines: Wilkins et al., CLUSTER 2023).
// allgather: ceil(log_k n) alpha + (n-1)/n S beta over one port; backwards a reduce_scatter; an allreduce is
// both, or, where ranks may round differently, whole vectors in half the steps, each k-1 times; an alltoall
// passes blocks on by the digits of their destination: ceil(log_k n) (alpha + (k-1)/k S beta). Far groups
// come first. n is a product of numbers up to k; else, of a core of q k^j with q < k, the surplus ranks lend
// their data to a partner first and are given the result last, two steps more. The radix is the fastest at
// the size on the links at hand, at least 2, below n.
#include <algorithm>

#include "synth/textbook/engines.h"
#include "synth/textbook/radix.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Divisors of n up to k that make n up, the largest first; empty if there are none such.
std::vector<int32_t> Divisors(int32_t n, int32_t k) {
  std::vector<int32_t> divisors;
  while (n > 1) {
    int32_t d = std::min(n, k);
    while (d > 1 && n % d != 0) --d;
    if (d == 1) return {};
    divisors.push_back(d);
    n /= d;
  }
  return divisors;
}

// Sizes of the groups, far ones first; their product is the size of the core.
std::vector<int32_t> Factors(int32_t n, int32_t k) {
  std::vector<int32_t> factors = Divisors(n, k);
  if (!factors.empty()) return factors;
  int32_t left = n;
  for (; left >= k; left /= k) factors.push_back(k);
  if (left > 1) factors.insert(factors.begin(), left);
  return factors;
}

struct Exchange {
  Rounds rounds;
  std::vector<int32_t> owners;  // members of the core
};

Exchange MakeExchange(const Positions& positions, int32_t k) {
  const int32_t n = positions.size();
  const std::vector<int32_t> factors = Factors(n, k);
  int32_t core = 1;
  for (int32_t f : factors) core *= f;
  // Core position c stands at c and, for the first n - core, one further back for its surplus partner.
  const auto at = [&](int32_t c) { return c + std::min(c, n - core); };
  Exchange made{{positions, {}}, {}};
  std::vector<std::vector<RoundSend>>& rounds = made.rounds.rounds;
  for (int32_t c = 0; c < core; ++c) made.owners.push_back(positions.member[at(c)]);
  const auto fold = [&](bool in) {
    if (n == core) return;
    rounds.emplace_back();
    for (int32_t c = 0; c < n - core; ++c)
      rounds.back().push_back({at(c) + (in ? 1 : 0), at(c) + (in ? 0 : 1), false});
  };
  fold(true);
  int32_t distance = core;
  for (int32_t f : factors) {
    distance /= f;
    rounds.emplace_back();
    for (int32_t turn = 1; turn < f; ++turn) {
      for (int32_t c = 0; c < core; ++c) {
        const int32_t digit = c / distance % f;
        rounds.back().push_back({at(c), at(c + ((digit + turn) % f - digit) * distance), false});
      }
    }
  }
  fold(false);
  return made;
}

bool IsAlltoall(CollectiveKind kind) {
  return kind == CollectiveKind::kAlltoall || kind == CollectiveKind::kAlltoallv;
}

double TimePs(const Exchange& exchange, const RankGraph& graph, const SynthesisRequest& request) {
  Moves moves;
  // A block is an n-th of the size in both.
  if (IsAlltoall(request.collective->kind())) {
    AddRoundsAlltoallLoads(exchange.rounds, moves);
  } else {
    AddRoundsAllgatherLoads(exchange.rounds, moves);
  }
  return MovesTimePs(moves, graph, request, 1.0 / exchange.rounds.size());
}

StatusOr<Recipe> PlaceRecursiveMultiplying(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t n = positions.size();
  const int32_t radix = BestRadix(n, int64_t{n} * CeilLog2(n), [&](int32_t k) {
    return TimePs(MakeExchange(positions, k), graph, request);
  });
  Exchange exchange = MakeExchange(positions, radix);
  const Rounds& rounds = exchange.rounds;
  Recipe recipe;
  recipe.root = positions.rank[0];
  recipe.allreduce_owners = std::move(exchange.owners);
  if (IsAlltoall(request.collective->kind())) {
    SetRoundsAlltoallCost(rounds, graph, recipe);
  } else {
    recipe.allgather_cost = RoundsAllgatherCost(std::span(&rounds, 1), graph);
    ExchangeWhereFaster(rounds, graph, request, recipe);
  }
  recipe.allgather = [rounds](const Blocks& blocks, Moves& moves) { RoundsAllgather(rounds, blocks, moves); };
  recipe.alltoall = [rounds](const Pairs& pairs, Moves& moves) { RoundsAlltoall(rounds, pairs, moves); };
  return recipe;
}

}  // namespace

const TextbookEngine& RecursiveMultiplyingEngine() {
  static const TextbookEngine engine = {
      "recursive-multiplying",
      "groups of k exchange all they have, k chosen by size: ceil(log_k n) steps; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAllgatherv,
       CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kAlltoall,
       CollectiveKind::kAlltoallv, CollectiveKind::kBarrier},
      PlaceRecursiveMultiplying};
  return engine;
}

}  // namespace xccl
