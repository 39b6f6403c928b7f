// Bounds on steps and rounds without any search, as whole numbers and exact rationals: from distance, from
// every rank's own links, from all links together, and from cuts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/collective.h"
#include "synth/smt/instance.h"
#include "synth/smt/prices.h"

namespace xccl::smt {

// Fewest steps: how many edges lie between a contribution and the rank that is farthest from all who hold it.
struct Farthest {
  int32_t steps = 0, holder = 0, needer = 0;
};
// `reversed`: the machine has all links the other way round.
Farthest FarthestNeed(const Machine& machine, const Collective& collective, bool reversed = false);

// Fewest rounds: the rank whose chunks take longest to come in, or to go out where nobody else holds them.
struct Fullest {
  int64_t rounds = 0, chunks = 0, per_round = 0;
  int32_t rank = 0;
  bool incoming = true;
};
Fullest FullestRank(const Machine& machine, const CopyProblem& problem);

// Sends in all, at least, and chunks that all ranks together can be sent a round.
struct Total {
  int64_t sends = 0, per_round = 1;
  int64_t rounds() const { return (sends + per_round - 1) / per_round; }
};
Total TotalSends(const Machine& machine, const CopyProblem& problem);

// The worst cut (ir/bounds/bound_cut.h): rounds for the problem's chunks, however many steps there are.
// Absent where chunks differ in who needs them, or have several holders.
std::optional<RoundsBound> CutRounds(const Topology& topology, const Machine& machine,
                                     const CopyProblem& problem);

// Rounds of an allreduce for each chunk a part, whatever the steps: cuts in both directions, and every rank
// as a block (docs/ir.md, lower bounds). Empty for other collectives.
std::vector<RoundsBound> SumBounds(const Topology& topology, const Machine& machine,
                                   const Collective& collective);

// How a claim about steps or rounds was proved.
enum class ProvedBy : uint8_t { kNothing, kDistance, kCut, kFlow, kSmtUnsat };
std::string_view ToString(ProvedBy by);  // "open", "distance", "cut", "flow", "smt-unsat"

// "7", "3/2", in lowest terms.
std::string ToText(const RoundsBound& bound);

}  // namespace xccl::smt
