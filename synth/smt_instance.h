// One k-synchronous question, without a word of the solver, and what can be said about it without solving.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "synth/greedy_problem.h"

namespace xccl::smt {

// Ways between neighbouring GPUs. A way through switches is one edge over several links; parallel direct
// links are one edge of several lanes.
struct Edge {
  int32_t from = 0, to = 0;                // ranks
  std::vector<std::vector<LinkId>> lanes;  // each a path
};

// Limits of what edges carry together: the lanes' links, each `chunks_per_round`.
struct Capacity {
  std::vector<int32_t> edges;
  int64_t chunks_per_round = 0;
};

struct Machine {
  int32_t ranks = 0;
  std::vector<Edge> edges;
  std::vector<Capacity> capacities;
  std::vector<std::vector<int32_t>> out, in;         // edges of a rank
  std::vector<int64_t> in_per_round, out_per_round;  // chunks into and out of a rank
  int64_t bytes_per_s_of_one = 1;                    // bandwidth of one chunk a round
  int64_t alpha_ps = 0;                              // largest fixed time of an edge: what a step costs
};
Machine MakeMachine(const Topology& topology);

struct Instance {
  const Machine* machine = nullptr;
  const greedy::CopyProblem* problem = nullptr;
  int32_t steps = 0, rounds = 0;
};

struct Send {
  int32_t chunk = 0, edge = 0, step = 0;
};

enum class Verdict : uint8_t { kFeasible, kInfeasible, kStopped };
struct Answer {
  Verdict verdict = Verdict::kStopped;
  std::vector<Send> sends;  // where feasible; may hold some that nobody needs
  int64_t work = 0;         // solver resource units
  int64_t variables = 0, constraints = 0;
};
struct SolveLimits {
  int64_t work = 0;                    // solver resource units, reproducible
  std::optional<double> time_limit_s;  // wall clock
};

// Errors: kBug with the solver's text when it fails.
StatusOr<Answer> Solve(const Instance& instance, const SolveLimits& limits);

// Fewest steps: how many edges lie between a chunk and its farthest needer.
struct Farthest {
  int32_t steps = 0, holder = 0, needer = 0;
};
Farthest FarthestNeed(const Machine& machine, const greedy::CopyProblem& problem);
// Fewest rounds: the rank whose chunks take longest to come in, or to go out where nobody else holds them.
struct Fullest {
  int64_t rounds = 0, chunks = 0, per_round = 0;
  int32_t rank = 0;
  bool incoming = true;
};
Fullest FullestRank(const Machine& machine, const greedy::CopyProblem& problem);
// Sends in all, at least, and chunks that all ranks together can be sent a round.
struct Total {
  int64_t sends = 0, per_round = 1;
  int64_t rounds() const { return (sends + per_round - 1) / per_round; }
};
Total TotalSends(const Machine& machine, const greedy::CopyProblem& problem);

// Size of the encoding, to refuse what cannot end.
int64_t EncodingSize(const Instance& instance);

}  // namespace xccl::smt
