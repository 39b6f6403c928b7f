// Butterflies: in each step groups of k ranks exchange all that they have. The groups change from step to
// step, so the data of a rank grows k-fold. An allgather takes ceil(log_k n) alpha + (n-1)/n S beta over one
// port. Played backwards it is a reduce_scatter; both together are Rabenseifner's allreduce (Thakur,
// Rabenseifner and Gropp, 2005). `halving-doubling`: k = 2, with partners at distance 2^s, the farthest
// first, while there is little data to send. A broadcast deals the data out and gathers it.
// `recursive-doubling`: k = 2, with the nearest partners first. An allreduce exchanges whole vectors in log2
// n steps.
// `recursive-multiplying`: any k, far groups first (Ruefenacht, Bull and Booth, 2017; Wilkins et al., CLUSTER
// 2023). The radix k is the fastest for the size on the machine's links, at least 2 and below n. An allreduce
// exchanges whole vectors if that is faster: half the steps, with k-1 vectors sent in each. An alltoall
// passes blocks on by the digits of their destination: ceil(log_k n) (alpha + (k-1)/k S beta).
// The groups cover a core of ranks: all n if n is a product of numbers up to k, otherwise q k^j ranks with q
// < k. The surplus ranks lend their data to a partner first and are given the result last, in two more steps.
#include <algorithm>
#include <numeric>

#include "synth/common/cost_model.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/radix.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

// Most pieces of a stripe. Recursive doubling passes one piece on while the next one arrives.
constexpr int64_t kMostPieces = 16;

// Returns numbers up to k whose product is n, the largest first; no numbers if n has a prime factor above k.
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

// Returns the group size of each step, far groups first. The product of the sizes is the size of the core.
std::vector<int32_t> Factors(int32_t n, int32_t k) {
  std::vector<int32_t> factors = Divisors(n, k);
  if (!factors.empty()) return factors;
  int32_t left = n;
  for (; left >= k; left /= k) factors.push_back(k);
  if (left > 1) factors.insert(factors.begin(), left);
  return factors;
}

struct Butterfly {
  Rounds rounds;
  std::vector<int32_t> core;  // positions of the core
};

Butterfly MakeButterfly(const Positions& positions, int32_t k, bool near_first = false) {
  const int32_t n = positions.size();
  Butterfly made{{positions, {}}, {}};
  std::vector<Round>& rounds = made.rounds.rounds;
  int32_t core = 1;
  const std::vector<int32_t> factors = Factors(n, k);
  for (int32_t f : factors) core *= f;
  for (int32_t stride = core; const int32_t f : factors) {
    stride /= f;
    rounds.push_back(LineRound(core, f, stride));
  }
  if (near_first) std::ranges::reverse(rounds);
  // Core rank c is at position c + min(c, n - core): a surplus rank follows each of the first n - core of
  // them.
  for (int32_t c = 0; c < core; ++c) made.core.push_back(c + std::min(c, n - core));
  for (Round& round : rounds)
    for (RoundSend& send : round) send = {made.core[send.from], made.core[send.to]};
  if (n == core) return made;
  Round lend, give;
  for (int32_t c = 0; c < n - core; ++c) {
    lend.push_back({made.core[c] + 1, made.core[c]});
    give.push_back({made.core[c], made.core[c] + 1});
  }
  rounds.insert(rounds.begin(), lend);
  rounds.push_back(give);
  return made;
}

Recipe ButterflyRecipe(const Butterfly& butterfly, const RankGraph& graph, const SynthesisRequest& request) {
  Recipe recipe = RoundsRecipe({butterfly.rounds}, graph, request);
  // A surplus rank owns no block of an allreduce.
  for (int32_t p : butterfly.core) recipe.allreduce_owners.push_back(butterfly.rounds.positions.member[p]);
  return recipe;
}

// Returns whether all sends of the rounds join neighbours and no link carries two of them.
bool ShareNoLinks(const Rounds& rounds, const RankGraph& graph) {
  std::vector<bool> is_used(static_cast<size_t>(graph.topology().num_links()), false);
  for (const Round& round : rounds.rounds)
    for (const RoundSend& send : round) {
      const auto hop = graph.Find(rounds.positions.rank[send.from], rounds.positions.rank[send.to]);
      if (!hop) return false;
      for (const LinkId link : graph.Links(*hop)) {
        if (is_used[link.index()]) return false;
        is_used[link.index()] = true;
      }
    }
  return true;
}

// If no two sends share a link, as on a hypercube, returns a stripe for each round. Each stripe starts with
// another round, so that all links are busy from the start. Returns one stripe if sends share links, if there
// are surplus ranks, and for small sizes.
std::vector<Rounds> StripesOf(const Butterfly& butterfly, const RankGraph& graph, int64_t bytes) {
  std::vector<Rounds> stripes = {butterfly.rounds};
  const auto rounds = static_cast<int32_t>(butterfly.rounds.rounds.size());
  const bool is_all_core = std::ssize(butterfly.core) == butterfly.rounds.size();
  if (!is_all_core || bytes < rounds * kLeastPieceBytes || !ShareNoLinks(butterfly.rounds, graph))
    return stripes;
  for (int32_t k = 1; k < rounds; ++k) {
    stripes.push_back(stripes.back());
    std::vector<Round>& turned = stripes.back().rounds;
    std::rotate(turned.begin(), turned.begin() + 1, turned.end());
  }
  return stripes;
}

}  // namespace

StatusOr<Recipe> PlaceHalvingDoubling(const RankGraph& graph, const SynthesisRequest& request) {
  Positions positions = CubePositions(graph, request.collective->ranks());
  if (BaseOf(request.collective->kind()) != Base::kBroadcast)
    return ButterflyRecipe(MakeButterfly(positions, 2), graph, request);
  Recipe recipe;
  recipe.root = *request.collective->spec().root;
  positions = StartingAt(positions, recipe.root, IsPowerOf2(positions.size()));
  // Pieces are numbered by position instead of member, so that pieces sent together are neighbours in memory.
  std::iota(positions.member.begin(), positions.member.end(), 0);
  Butterfly butterfly = MakeButterfly(positions, 2);
  recipe.pieces = static_cast<int32_t>(butterfly.core.size());
  recipe.repeats = true;
  recipe.broadcast = [butterfly = std::move(butterfly)](Rank, ChunkRange all, Moves& moves) {
    DealAndGather(butterfly.rounds, butterfly.core, all, moves);
  };
  return recipe;
}

StatusOr<Recipe> PlaceRecursiveDoubling(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = CubePositions(graph, request.collective->ranks());
  Butterfly butterfly = MakeButterfly(positions, 2, true);
  if (!IsAllreduce(request.collective->kind())) return ButterflyRecipe(butterfly, graph, request);
  Recipe recipe;
  recipe.root = positions.rank[0];
  std::vector<Rounds> stripes = StripesOf(butterfly, graph, request.size_bytes);
  const auto count = static_cast<int32_t>(stripes.size());
  recipe.pipelines = count > 1;
  if (recipe.pipelines)
    recipe.pieces = count * static_cast<int32_t>(std::clamp<int64_t>(
                                request.size_bytes / count / kLeastPieceBytes, 1, kMostPieces));
  recipe.allreduce = [stripes = std::move(stripes)](ChunkRange all, Moves& moves) {
    const auto count = static_cast<int32_t>(stripes.size());
    for (int32_t k = 0; k < count; ++k) RoundsExchange(stripes[k], Piece(all, k, count), moves);
  };
  return recipe;
}

StatusOr<Recipe> PlaceRecursiveMultiplying(const RankGraph& graph, const SynthesisRequest& request) {
  const Positions positions = DomainPositions(graph, request.collective->ranks());
  const int32_t n = positions.size();
  const bool exchanges = BaseOf(request.collective->kind()) == Base::kAlltoall;
  const int32_t radix = BestRadix(n, int64_t{n} * CeilLog2(n), [&](int32_t k) {
    const Rounds rounds = MakeButterfly(positions, k).rounds;
    // A block is an n-th of the size, in an alltoall as in an allgather.
    const Moves loads = exchanges ? AlltoallLoads(rounds) : AllgatherLoads({&rounds, 1});
    return MovesTimePs(loads, graph, request, 1.0 / n);
  });
  const Butterfly butterfly = MakeButterfly(positions, radix);
  Recipe recipe = ButterflyRecipe(butterfly, graph, request);
  ExchangeIfFaster(butterfly.rounds, graph, request, recipe);
  return recipe;
}

}  // namespace xccl
