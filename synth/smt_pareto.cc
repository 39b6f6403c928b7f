// For S steps, S rising: the bound b on R/C, from cuts and prices. Then questions (C, R) with R/C in [b, the
// best of fewer steps), in order of R/C and of C: an answer ends S. If the answer's R/C is b, that is the
// proof; else refuted questions are, as far as chunks were tried.
#include "synth/smt_pareto.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "synth/smt_search.h"

namespace xccl::smt {
namespace {

constexpr int32_t kMostChunks = 12;    // a part, where --chunks does not say
constexpr int32_t kFurtherSteps = 8;   // beyond the distance, where --steps does not say
constexpr int64_t kWork = 400'000'000;  // Z3's resource units in all, where none are given
constexpr int32_t kShare = 16;         // of what is left, what one question may use up: one part

class FrontSearch {
 public:
  FrontSearch(Search& search, const SynthesisRequest& request)
      : search_(search),
        most_chunks_(request.limits.chunks.value_or(kMostChunks)),
        most_steps_(request.limits.steps.value_or(search.LeastSteps() + kFurtherSteps)),
        steps_given_(request.limits.steps.has_value()) {}

  StatusOr<Front> Run() {
    front_.least_steps = search_.LeastSteps();
    std::tie(front_.least_rounds, front_.least_by) = search_.BoundOf({});
    for (int32_t steps = std::max(1, front_.least_steps); steps <= most_steps_; ++steps) {
      began_ = std::chrono::steady_clock::now();
      search_.Say(fmt::format("{} steps", steps));
      XCCL_RETURN_IF_ERROR(Step(steps));
      if (IsDone() || search_.IsOver()) break;
    }
    if (front_.points.empty() && search_.IsOver())
      return LimitReached(fmt::format("smt: {} on {} ranks: no point of the front was found; hint: --time-limit=60s",
                                      search_.request().collective->name(),
                                      search_.request().collective->num_members()));
    front_.complete = IsDone() && std::all_of(front_.points.begin(), front_.points.end(), [](const auto& point) {
                        return point.proved_by != ProvedBy::kNothing && point.proved_chunks == 0;
                      });
    if (!IsDone())
      front_.stopped = search_.IsInterrupted() ? "interrupted"
                       : search_.TimeIsUp()    ? "time"
                       : search_.IsOver()      ? "work"
                                               : fmt::format("--steps={}", most_steps_);
    return std::move(front_);
  }

 private:
  bool IsDone() const {
    return !front_.points.empty() && !front_.least_rounds.IsLessThan(Best());
  }
  // The least R/C so far.
  RoundsBound Best() const {
    if (front_.points.empty()) return {std::numeric_limits<int32_t>::max(), 1};
    return {front_.points.back().rounds, front_.points.back().chunks};
  }

  struct Ratio {
    int32_t chunks;
    int64_t rounds;
  };
  // All (C, R) with bound <= R/C < best, least R/C first, then fewest chunks; of one ratio all multiples.
  std::vector<Ratio> Ratios(const RoundsBound& bound, const RoundsBound& best, int32_t steps) const {
    std::vector<Ratio> ratios;
    for (int32_t c = 1; c <= most_chunks_; ++c)
      for (int64_t r = std::max<int64_t>(1, bound.Rounds(c)); r <= bound.Rounds(c) + kMostChunks; ++r) {
        if (!RoundsBound{r, c}.IsLessThan(best)) break;
        if (r >= front_.least_steps) ratios.push_back({c, r});
      }
    (void)steps;
    std::stable_sort(ratios.begin(), ratios.end(), [](const Ratio& a, const Ratio& b) {
      return RoundsBound{a.rounds, a.chunks}.IsLessThan({b.rounds, b.chunks});
    });
    return ratios;
  }

  Status Step(int32_t steps) {
    auto [bound, by] = search_.BoundOf(steps);
    if (!front_.points.empty() && !bound.IsLessThan(Best())) return OkStatus();
    bool all_refuted = true;
    for (const Ratio& ratio : Ratios(bound, Best(), steps)) {
      if (search_.IsOver()) break;
      const Question question{ratio.chunks, steps, ratio.rounds};
      XCCL_ASSIGN_OR_RETURN(Outcome outcome, search_.Ask(question, search_.work_left() / kShare));
      if (outcome.verdict != Verdict::kFeasible) {
        all_refuted &= outcome.verdict == Verdict::kInfeasible;
        continue;
      }
      FrontPoint point{.chunks = ratio.chunks,
                       .steps = steps,
                       .rounds = ratio.rounds,
                       .bound = bound,
                       .proved_by = ProvedBy::kNothing,
                       .proved_chunks = 0,
                       .found_by = outcome.how,
                       .seconds = 0,
                       .made = std::move(*outcome.made)};
      if (!bound.IsLessThan({ratio.rounds, ratio.chunks})) {
        point.proved_by = steps == front_.least_steps && by == ProvedBy::kNothing ? ProvedBy::kDistance : by;
      } else if (all_refuted) {
        point.proved_by = ProvedBy::kSmtUnsat;
        point.proved_chunks = most_chunks_;
      }
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
      point.seconds = passed.count();
      front_.points.push_back(std::move(point));
      break;
    }
    return OkStatus();
  }

  Search& search_;
  const int32_t most_chunks_, most_steps_;
  const bool steps_given_;
  std::chrono::steady_clock::time_point began_;
  Front front_;
};

}  // namespace

StatusOr<Front> FindFront(const SynthesisRequest& request) {
  SynthesisRequest asked = request;
  if (asked.limits.work_units == 0) asked.limits.work_units = kWork;
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<Search> search, Search::Create(asked));
  if (search->form() == Form::kNothing) {
    Front front;
    front.complete = true;
    return front;
  }
  return FrontSearch(*search, asked).Run();
}

}  // namespace xccl::smt
