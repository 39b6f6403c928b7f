// Computes bounds on steps and rounds without a search: from distance, from every rank's own links, from all
// links together, and from cuts. All bounds are whole numbers or exact rationals.
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

// A lower bound on steps: the largest number of edges between the nearest holder of a contribution and a rank
// that needs the contribution. `holder` is the first of the holders, not always the nearest.
struct Farthest {
  int32_t steps = 0, holder = 0, needer = 0;
};
// Requires `reversed` if the links of `machine` are reversed (Form::kGather).
Farthest FarthestNeed(const Machine& machine, const Collective& collective, bool reversed = false);

// A lower bound on rounds: the rank whose chunks take the most rounds to come in or to go out. An outgoing
// chunk counts only if no other rank holds it.
struct Fullest {
  int64_t rounds = 0, chunks = 0, per_round = 0;
  int32_t rank = 0;
  bool incoming = true;
};
Fullest FullestRank(const Machine& machine, const CopyProblem& problem);

// A lower bound on the sends of a problem, and the most chunks that all ranks together can receive in a
// round.
struct Total {
  int64_t sends = 0, per_round = 1;
  int64_t rounds() const { return (sends + per_round - 1) / per_round; }
};
Total TotalSends(const Machine& machine, const CopyProblem& problem);

// Returns the rounds that the worst cut (ir/bounds/bound_cut.h) needs for the problem's chunks, in any number
// of steps. Returns nullopt if nothing is needed, if a chunk has several holders, or if some rank needs one
// chunk but neither needs nor holds another; also if no cut is found, or if the numbers are too large.
std::optional<RoundsBound> CutRounds(const Topology& topology, const Machine& machine,
                                     const CopyProblem& problem);

// Returns bounds on the rounds of an allreduce for one chunk per part, in any number of steps. They come from
// cuts in both directions. If the machine is complete and all ranks are members, another bound comes from the
// partition with every rank as a block (docs/ir.md, Lower bounds). Empty for other collectives.
std::vector<RoundsBound> SumBounds(const Topology& topology, const Machine& machine,
                                   const Collective& collective);

// How a claim about steps or rounds was proved.
enum class ProvedBy : uint8_t { kNothing, kDistance, kCut, kFlow, kSmtUnsat };
std::string_view ToString(ProvedBy by);  // "open", "distance", "cut", "flow", "smt-unsat"

// Returns the bound in lowest terms: "7" or "3/2".
std::string ToText(const RoundsBound& bound);

}  // namespace xccl::smt
