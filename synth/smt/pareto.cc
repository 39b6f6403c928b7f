// For each number of steps S, in ascending order:
// 1. Compute a bound b on R/C from cuts and prices.
// 2. List questions (C, R) whose R/C is at least b and less than the best R/C of fewer steps (Ratios).
// 3. Ask the questions in order of R/C. The first schedule is the point of the front for S.
// 4. If the schedule's R/C equals b, the bound is the proof. Otherwise, if all questions before it were
//    refuted, they are the proof, up to a number of chunks (ChunksBelow).
#include "synth/smt/pareto.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

#include "synth/smt/decider.h"

namespace xccl::smt {
namespace {

// The most chunks per part of copies if --chunks is not given. 12 chunks divide into halves, thirds and
// quarters. Also the most rounds above the bound that are tried.
constexpr int32_t kMostChunks = 12;
constexpr int32_t kFurtherSteps = 8;    // steps beyond the distance if --steps is not given
constexpr int64_t kWork = 600'000'000;  // limit of one front in Z3's units: a few minutes

class FrontSearch {
 public:
  FrontSearch(Decider& decider, const SynthesisRequest& request)
      : decider_(decider),
        order_(decider.form() == Form::kSums ? std::max<int32_t>(1, std::ssize(decider.images())) : 1),
        most_given_(request.limits.chunks.has_value()),
        most_chunks_(request.limits.chunks.value_or(
            decider.form() == Form::kSums ? kFewChunks * decider.machine().ranks : kMostChunks)),
        most_steps_(request.limits.steps.value_or(decider.LeastSteps() + kFurtherSteps)) {}

  StatusOr<Front> Run() {
    front_.least_steps = decider_.LeastSteps();
    std::tie(front_.least_rounds, front_.least_by) = decider_.BoundOf({});
    for (int32_t steps = std::max(1, front_.least_steps); steps <= most_steps_; ++steps) {
      began_ = std::chrono::steady_clock::now();
      decider_.Say(fmt::format("{} steps", steps));
      XCCL_RETURN_IF_ERROR(Step(steps));
      if (IsDone() || decider_.IsOver()) break;
    }
    if (front_.points.empty() && decider_.IsOver())
      return LimitReached(
          fmt::format("smt: {} on {} ranks: no point of the front was found{}",
                      decider_.request().collective->name(), decider_.request().collective->num_members(),
                      decider_.IsInterrupted() ? "; interrupted"
                      : decider_.TimeIsUp()    ? fmt::format(" within {}; hint: a longer --time-limit",
                                                             decider_.request().limits.deadline.ToString())
                                               : "; hint: --time-limit=60s"));
    front_.complete =
        IsDone() && !gaps_ && std::all_of(front_.points.begin(), front_.points.end(), [](const auto& point) {
          return point.proved_by != ProvedBy::kNothing && point.proved_chunks == 0;
        });
    if (!front_.complete)
      front_.stopped = decider_.TimeIsUp() ? decider_.request().limits.deadline.ToString()
                       : decider_.IsOver() ? "its limit of work; hint: --time-limit=60s"
                       : IsDone()          ? Limit("--chunks", most_chunks_, decider_.request().limits.chunks)
                                           : Limit("--steps", most_steps_, decider_.request().limits.steps);
    return std::move(front_);
  }

 private:
  // Returns "--steps=4", and adds ", its default" if the user did not give the flag.
  static std::string Limit(const char* flag, int32_t most, const std::optional<int32_t>& given) {
    return fmt::format("{}={}{}", flag, most, given ? "" : ", its default");
  }
  bool IsDone() const { return !front_.points.empty() && !front_.least_rounds.IsLessThan(Best()); }
  RoundsBound Best() const {
    if (front_.points.empty()) return {std::numeric_limits<int32_t>::max(), 1};
    return {front_.points.back().rounds, front_.points.back().chunks};
  }

  struct Ratio {
    int32_t chunks;
    int64_t rounds;
  };
  // Returns (C, R) with bound <= R/C < best, multiples included, sorted by R/C: for each C up to most_chunks_
  // the R up to MostRounds(). Among equal ratios, chunks that the group can translate come first, then fewer
  // chunks.
  std::vector<Ratio> Ratios(const RoundsBound& bound, const RoundsBound& best, int32_t steps) const {
    std::vector<Ratio> ratios;
    // Adds the bound itself if its fraction needs more chunks than are tried otherwise.
    if (!most_given_ && bound.denominator > most_chunks_ && bound.numerator >= steps &&
        bound.denominator <= Decider::kMostVariables && bound.IsLessThan(best) &&
        decider_.SizeOf(static_cast<int32_t>(bound.denominator), steps) <= Decider::kMostVariables)
      ratios.push_back({static_cast<int32_t>(bound.denominator), bound.numerator});
    for (int32_t c = 1; c <= most_chunks_; ++c)
      for (int64_t r = std::max<int64_t>(1, bound.Rounds(c)); r <= MostRounds(bound, c); ++r) {
        if (!RoundsBound{r, c}.IsLessThan(best)) break;
        // A question with fewer rounds than steps is a question about fewer steps. It is answered already,
        // unless gaps_ is set.
        if (r >= steps || gaps_) ratios.push_back({c, r});
      }
    // Z3 finds schedules soonest if the chunks are translates of each other.
    std::stable_sort(ratios.begin(), ratios.end(), [&](const Ratio& a, const Ratio& b) {
      const RoundsBound cost_a{a.rounds, a.chunks}, cost_b{b.rounds, b.chunks};
      if (cost_a.IsLessThan(cost_b) || cost_b.IsLessThan(cost_a)) return cost_a.IsLessThan(cost_b);
      return (a.chunks % order_ != 0) < (b.chunks % order_ != 0);
    });
    return ratios;
  }

  // Returns the most rounds that are tried with `chunks` chunks per part. Beyond kMostChunks chunks only a
  // ratio equal to the bound is tried, so that the search soon goes on to the next ratio.
  static int64_t MostRounds(const RoundsBound& bound, int32_t chunks) {
    const int64_t least = std::max<int64_t>(1, bound.Rounds(chunks));
    if (chunks <= kMostChunks) return least + kMostChunks;
    return bound.IsLessThan({least, chunks}) ? least - 1 : least;
  }
  // Returns the most chunks per part up to which Ratios() lists every ratio below the ratio `found`.
  int32_t ChunksBelow(const RoundsBound& bound, const Ratio& found) const {
    int32_t c = 1;
    while (c <= most_chunks_ && (found.rounds * c - 1) / found.chunks <= MostRounds(bound, c)) ++c;
    return c - 1;
  }

  Status Step(int32_t steps) {
    const auto known = decider_.BestBoundOf(steps);
    if (!known && front_.points.empty()) {
      front_.least_steps = steps + 1;
      front_.steps_by = ProvedBy::kSmtUnsat;
    }
    if (!known) return OkStatus();
    const auto& [bound, by] = *known;
    if (!front_.points.empty() && !bound.IsLessThan(Best())) return OkStatus();
    bool all_refuted = true;
    for (const Ratio& ratio : Ratios(bound, Best(), steps)) {
      if (decider_.IsOver()) break;
      const Question question{ratio.chunks, steps, ratio.rounds};
      const int64_t work = decider_.work_left() / kShare;
      XCCL_ASSIGN_OR_RETURN(Outcome outcome, decider_.Ask(question, work));
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
        point.proved_chunks = ChunksBelow(bound, ratio);
        if (point.proved_chunks > 0) point.proved_by = ProvedBy::kSmtUnsat;
      }
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
      point.seconds = passed.count();
      gaps_ |= point.proved_by == ProvedBy::kNothing;
      front_.points.push_back(std::move(point));
      return OkStatus();
    }
    gaps_ = true;
    return OkStatus();
  }

  Decider& decider_;
  const int32_t order_;  // of the group that may translate the chunks of an allreduce
  const bool most_given_;
  const int32_t most_chunks_, most_steps_;
  std::chrono::steady_clock::time_point began_;
  Front front_;
  bool gaps_ = false;  // some number of steps so far may still have a better schedule
};

}  // namespace

StatusOr<Front> FindFront(const SynthesisRequest& request, std::span<const Engine> engines) {
  SynthesisRequest asked = request;
  if (asked.limits.work_units == 0) asked.limits.work_units = kWork;
  asked.limits.deadline =
      request.limits.deadline.Leaving(0, 0);  // no other work follows, not even after Ctrl-C
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<Decider> decider, Decider::Create(asked, engines));
  if (decider->form() == Form::kNothing) {
    Front front;
    front.complete = true;
    return front;
  }
  decider->SetThorough(false);
  return FrontSearch(*decider, asked).Run();
}

}  // namespace xccl::smt
