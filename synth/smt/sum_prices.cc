#include "synth/smt/sum_prices.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "synth/smt/trees.h"

namespace xccl::smt {
namespace {

// Prices become whole numbers by a factor of at most 600. Z3 adds them up, and large numbers slow it down.
// All numbers up to 6 divide 600.
constexpr int64_t kScale = 600;

Machine Reversed(const Machine& machine) {
  Machine reversed = machine;
  for (Edge& edge : reversed.edges) std::swap(edge.from, edge.to);
  std::swap(reversed.in, reversed.out);
  std::swap(reversed.in_per_round, reversed.out_per_round);
  return reversed;
}

class SumPatterns {
 public:
  SumPatterns(const Machine& machine, const SumProblem& problem, int32_t steps, const SolveLimits& limits,
              int64_t& work)
      : machine_(machine),
        reversed_(Reversed(machine)),
        steps_(steps),
        limits_(limits),
        work_(work),
        question_(ReductionQuestion(machine, problem, one_, steps, std::nullopt)) {}

  Priced Search(const EdgePrices& prices, int64_t below) {
    Priced best = InAndOut(prices, below);
    int64_t asked = below;
    if (!best.pattern.empty()) {
      if (below != std::numeric_limits<int64_t>::max()) return best;
      asked = best.cost;
    }
    int64_t all = 0;
    for (const std::vector<int64_t>& of_step : prices)
      for (int64_t price : of_step) all += price;
    asked = std::min(asked, all + 1);
    for (;;) {
      // While no pattern is known, the question gets all work that is left. Each further question asks for a
      // pattern at least 1/16 cheaper, and gets little work.
      const bool first = best.pattern.empty();
      const int64_t most = first ? asked - 1 : best.cost - 1 - best.cost / 16;
      const SolveLimits limits{first ? limits_.work - work_ : kShortWork, limits_.deadline};
      StatusOr<Answer> answer = question_.Ask(limits, Budget{prices, most});
      if (answer.ok()) work_ += answer->work;
      if (!answer.ok() || (first && answer->verdict == Verdict::kStopped))
        return {.pattern = {}, .cost = 0, .proved = false, .stopped = true};
      if (answer->verdict == Verdict::kInfeasible && first) {
        best.proved = true;
        best.cost = asked;
        return best;
      }
      if (answer->verdict != Verdict::kFeasible) return best;
      best.pattern = std::move(answer->sends);
      best.cost = 0;
      for (const Send& send : best.pattern) best.cost += prices[send.step][send.edge];
    }
  }

 private:
  // Returns the cheapest pattern below `below` that sends all data to one rank in the first steps and back to
  // all ranks in the later steps. The pattern is empty if there is none.
  Priced InAndOut(const EdgePrices& prices, int64_t below) const {
    Priced best{.pattern = {}, .cost = below, .proved = false, .stopped = false};
    for (int32_t in = 1; in < steps_; ++in) {
      EdgePrices backwards(prices.begin(), prices.begin() + in);
      std::reverse(backwards.begin(), backwards.end());
      const EdgePrices forwards(prices.begin() + in, prices.end());
      TreeSearch gather(reversed_, in), spread(machine_, steps_ - in);
      for (int32_t r = 0; r < machine_.ranks; ++r) {
        std::vector<int32_t> others;
        for (int32_t q = 0; q < machine_.ranks; ++q)
          if (q != r) others.push_back(q);
        const std::vector<int32_t> self = {r};
        const int64_t first = gather.Search(backwards, self, others);
        if (first >= std::min(best.cost, TreeSearch::kInfinite)) continue;
        const int64_t second = spread.Search(forwards, self, others);
        if (second >= TreeSearch::kInfinite || first + second >= best.cost) continue;
        best.cost = first + second;
        best.pattern.clear();
        for (const Send& send : gather.Tree())
          best.pattern.push_back({.edge = send.edge, .step = in - 1 - send.step, .adds = true});
        for (const Send& send : spread.Tree())
          best.pattern.push_back({.edge = send.edge, .step = in + send.step, .adds = false});
      }
    }
    return best;
  }

  const Machine& machine_;
  const Machine reversed_;
  const int32_t steps_;
  const SolveLimits& limits_;
  int64_t& work_;
  const std::vector<Image> one_ = {Identity(machine_)};
  SolverQuestion question_;
};

}  // namespace

PriceResult PriceSums(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
                      int32_t steps, const RoundsBound& target, const SolveLimits& limits, int64_t& work) {
  int64_t room = 0;
  for (const Capacity& capacity : machine.capacities) room += capacity.per_round;
  if (room > kScale) return {};
  SumPatterns patterns(machine, problem, steps, limits, work);
  std::vector<Image> group = images;
  if (group.empty()) group = {Identity(machine)};
  PriceOptions options{.steps = steps,
                       .untimed = false,
                       .scale = kScale,
                       .target = target,
                       .stopped = [deadline = limits.deadline] { return deadline(); }};
  return SolvePrices(
      machine, group, {{0, 1}},
      [&](size_t, const EdgePrices& prices, int64_t below) { return patterns.Search(prices, below); },
      options);
}

}  // namespace xccl::smt
