#include "synth/smt/bounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "ir/bounds/bound_cut.h"

namespace xccl::smt {

Farthest FarthestNeed(const Machine& machine, const Collective& collective, bool reversed) {
  Farthest farthest;
  std::vector<Holding> before, after;
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    const ChunkId chunk = collective.FirstChunk(PartId(p));
    collective.Before(chunk, before);
    collective.After(chunk, after);
    std::map<Rank, std::vector<int32_t>> holders;  // by contribution
    for (const Holding& have : before)
      for (Rank q : have.contributions) holders[q].push_back(have.rank.value);
    for (const auto& [contribution, ranks] : holders) {
      const std::vector<int32_t> distance =
          reversed ? DistancesTo(machine, ranks) : DistancesFrom(machine, ranks);
      for (const Holding& need : after)
        if (std::find(need.contributions.begin(), need.contributions.end(), contribution) !=
                need.contributions.end() &&
            distance[need.rank.index()] > farthest.steps)
          farthest = {.steps = distance[need.rank.index()], .holder = ranks[0], .needer = need.rank.value};
    }
  }
  return farthest;
}

Fullest FullestRank(const Machine& machine, const CopyProblem& problem) {
  std::vector<int64_t> in(static_cast<size_t>(machine.ranks), 0), out(static_cast<size_t>(machine.ranks), 0);
  for (int32_t c = 0; c < problem.chunks; ++c) {
    for (int32_t r : problem.needers[c]) ++in[r];
    if (problem.holders[c].size() == 1 && !problem.needers[c].empty()) ++out[problem.holders[c][0]];
  }
  Fullest fullest;
  for (int32_t r = 0; r < machine.ranks; ++r) {
    for (const bool incoming : {true, false}) {
      const int64_t chunks = incoming ? in[r] : out[r];
      const int64_t per_round = incoming ? machine.in_per_round[r] : machine.out_per_round[r];
      if (chunks == 0 || per_round == 0) continue;
      const int64_t rounds = (chunks + per_round - 1) / per_round;
      if (rounds > fullest.rounds) fullest = {rounds, chunks, per_round, r, incoming};
    }
  }
  return fullest;
}

Total TotalSends(const Machine& machine, const CopyProblem& problem) {
  Total total;
  for (const auto& [ends, chunks] : ClassesOf(problem)) {
    const std::vector<int32_t> distance = DistancesFrom(machine, ends.holders);
    int64_t sends = static_cast<int64_t>(ends.needers.size());
    for (int32_t r : ends.needers) sends = std::max<int64_t>(sends, distance[r]);
    total.sends += sends * static_cast<int64_t>(chunks.size());
  }
  total.per_round = std::accumulate(machine.in_per_round.begin(), machine.in_per_round.end(), int64_t{0});
  total.per_round = std::max<int64_t>(1, total.per_round);
  return total;
}

namespace {

// Converts the cut's chunks ÷ bandwidth into chunks ÷ (chunks per round), in lowest terms. Returns nullopt if
// the numbers are too large.
std::optional<RoundsBound> InRounds(const RatioCut& worst, const Machine& machine) {
  const __int128 numerator = static_cast<__int128>(worst.supply) * machine.bytes_per_s_of_one;
  if (numerator > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return InLowestTerms({static_cast<int64_t>(numerator), worst.capacity});
}

}  // namespace

std::optional<RoundsBound> CutRounds(const Topology& topology, const Machine& machine,
                                     const CopyProblem& problem) {
  RatioCutProblem cut = CutsOf(topology);
  const std::map<Ends, std::vector<int32_t>> classes = ClassesOf(problem);
  std::vector<char> is_sink(static_cast<size_t>(machine.ranks), 0);
  int64_t sinks = 0;
  for (const auto& [ends, chunks] : classes)
    for (int32_t r : ends.needers) sinks += std::exchange(is_sink[r], 1) == 0 ? 1 : 0;
  for (const auto& [ends, chunks] : classes) {
    if (ends.holders.size() != 1) return std::nullopt;
    const int32_t holder = ends.holders[0];
    const int64_t needed = static_cast<int64_t>(ends.needers.size()) + is_sink[holder];
    if (needed != sinks) return std::nullopt;
    cut.supply[topology.NodeOf(Rank(holder)).index()] += static_cast<int64_t>(chunks.size());
  }
  for (int32_t r = 0; r < machine.ranks; ++r)
    if (is_sink[r] != 0) cut.sinks.push_back(topology.NodeOf(Rank(r)).value);
  if (cut.sinks.empty()) return std::nullopt;
  const std::optional<RatioCut> worst = FindRatioCut(std::move(cut));
  if (!worst) return std::nullopt;
  return InRounds(*worst, machine);
}

std::vector<RoundsBound> SumBounds(const Topology& topology, const Machine& machine,
                                   const Collective& collective) {
  if (collective.kind() != CollectiveKind::kAllreduce || collective.num_members() < 2) return {};
  std::vector<RoundsBound> bounds;
  for (const bool reversed : {false, true}) {
    RatioCutProblem cut = CutsOf(topology, reversed);
    for (Rank r : collective.ranks()) cut.sinks.push_back(topology.NodeOf(r).value);
    cut.supply[cut.sinks[0]] = 1;
    if (const std::optional<RatioCut> worst = FindRatioCut(std::move(cut)))
      if (const auto bound = InRounds(*worst, machine)) bounds.push_back(*bound);
  }
  const bool alone = machine.complete && collective.num_members() == machine.ranks;
  const int64_t in = std::accumulate(machine.in_per_round.begin(), machine.in_per_round.end(), int64_t{0});
  const int64_t out = std::accumulate(machine.out_per_round.begin(), machine.out_per_round.end(), int64_t{0});
  if (alone && std::min(in, out) > 0)
    bounds.push_back(InLowestTerms({2 * (int64_t{machine.ranks} - 1), std::min(in, out)}));
  return bounds;
}

std::string_view ToString(ProvedBy by) {
  constexpr std::string_view kNames[] = {"open", "distance", "cut", "flow", "smt-unsat"};
  return kNames[static_cast<size_t>(by)];
}

std::string ToText(const RoundsBound& bound) {
  const auto [numerator, denominator] = InLowestTerms(bound);
  return denominator == 1 ? std::to_string(numerator) : fmt::format("{}/{}", numerator, denominator);
}

}  // namespace xccl::smt
