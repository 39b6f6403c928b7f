// Newton's method on the ratio (Dinkelbach 1967): for a guess T = p ÷ q, capacities count p times and
// supplies q times; if for every sink all supplies but its own get there together, no cut is worse than T;
// else the minimum cut is, and its ratio is the next guess. T only grows, so a sink that was certified stays
// so, and serves as a source for those after it. Sinks that a symmetry takes to each other have equally bad
// cuts: one is tried and certifies all.
//
// Where no symmetry is given the problem is contracted first, which leaves nothing of trees and rings.
#include "base/graph/ratio_cut.h"

#include <algorithm>
#include <numeric>

#include "base/graph/contract_cuts.h"
#include "base/status.h"

namespace xccl {
namespace {

constexpr __int128 kLimit = static_cast<__int128>(1) << 62;

// Divides all by their greatest common divisor, which it returns; 1 where all are zero.
template <typename Numbers, typename Of>
int64_t Reduce(Numbers& numbers, Of of) {
  int64_t divisor = 0;
  for (auto& number : numbers) divisor = std::gcd(divisor, of(number));
  if (divisor == 0) return 1;
  for (auto& number : numbers) of(number) /= divisor;
  return divisor;
}

template <typename Numbers, typename Of>
__int128 SumOf(const Numbers& numbers, Of of) {
  __int128 sum = 0;
  for (const auto& number : numbers) sum += of(number);
  return sum;
}

template <typename Amount>
std::optional<RatioCut> Search(const RatioCutProblem& problem, int64_t total_supply, RatioCut guess) {
  const size_t nodes = problem.supply.size();
  CutSearch<Amount> search(static_cast<int32_t>(nodes), problem.arcs);
  const std::vector<int32_t> order = search.NearOnesTogether(problem.sinks);
  std::vector<std::vector<int32_t>> alike;  // sinks by number
  for (int32_t sink : problem.sinks) {
    if (problem.alike.empty()) break;
    const size_t number = static_cast<size_t>(problem.alike[sink]);
    if (alike.size() <= number) alike.resize(number + 1);
    alike[number].push_back(sink);
  }
  std::vector<bool> certified(nodes, false);
  const auto start = [&] {
    search.Start(problem.supply, guess.supply, guess.capacity);
    for (int32_t sink : order)
      if (certified[sink]) search.MakeSource(sink);
  };
  start();
  for (int32_t sink : order) {
    if (certified[sink]) continue;
    const int64_t wanted = total_supply - problem.supply[sink];
    while (search.Bring(sink, static_cast<Amount>(guess.capacity) * wanted) <
           guess.capacity * static_cast<Amount>(wanted)) {
      RatioCut cut{total_supply, static_cast<int64_t>(search.CapacityIntoInside())};
      for (int32_t node : search.Inside()) cut.supply -= problem.supply[node];
      if (cut.capacity == 0) return std::nullopt;
      XCCL_CHECK(guess.IsLessThan(cut));
      guess = cut;
      start();
    }
    const std::span<const int32_t> all =
        alike.empty() ? std::span(&sink, 1) : std::span<const int32_t>(alike[problem.alike[sink]]);
    for (int32_t other : all) {
      certified[other] = true;
      search.MakeSource(other);
    }
  }
  return guess;
}

}  // namespace

std::optional<RatioCut> FindRatioCut(RatioCutProblem problem) {
  const auto capacity_of = [](auto& arc) -> auto& { return arc.capacity; };
  const auto itself = [](auto& number) -> auto& { return number; };
  if (SumOf(problem.arcs, capacity_of) >= kLimit || SumOf(problem.supply, itself) >= kLimit)
    return std::nullopt;
  const int64_t capacity_unit = Reduce(problem.arcs, capacity_of),
                supply_unit = Reduce(problem.supply, itself);
  const __int128 supply = SumOf(problem.supply, itself), capacity = SumOf(problem.arcs, capacity_of);
  std::optional<ContractedCuts> contracted = ContractCuts(problem);
  if (!contracted) return std::nullopt;
  if (problem.alike.empty()) problem = std::move(contracted->left);
  const std::optional<RatioCut> cut =
      2 * supply * capacity < kLimit
          ? Search<int64_t>(problem, static_cast<int64_t>(supply), contracted->worst)
          : Search<__int128>(problem, static_cast<int64_t>(supply), contracted->worst);
  if (!cut) return std::nullopt;
  return RatioCut{cut->supply * supply_unit, cut->capacity * capacity_unit};
}

}  // namespace xccl
