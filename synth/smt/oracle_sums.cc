// Questions about sums that several ranks need: as chunks that are each summed along a tree and given out
// along another, or as a gather and then a spread; then as sets of contributions, which alone can refute
// them.
#include <algorithm>

#include "ir/bitwise_same.h"
#include "synth/common/compose.h"
#include "synth/smt/in_out.h"
#include "synth/smt/oracle.h"

namespace xccl::smt {
namespace {

constexpr int64_t kNarrowWork = 6'000'000;  // of a search among symmetric schedules
constexpr int64_t kPerVariable = 50;        // what making a question costs, in Z3's resource units
constexpr int32_t kFewChunks = 8;           // that all schedules are searched for, in any case
constexpr int32_t kShorter = 4;             // of the work, what one way to share out the steps may use up

}  // namespace

// A gather and then a spread that share out the steps and rounds.
StatusOr<Outcome> Oracle::AskComposed(const Question& question, int64_t work) {
  Outcome outcome;
  const Phases& phases = PhasesOf(question.chunks);
  const int32_t least_gather = FarthestNeed(backwards_, phases.gather).steps;
  const int32_t least_spread = FarthestNeed(forwards_, phases.spread).steps;
  for (int32_t first = least_gather; first + least_spread <= question.steps; ++first) {
    const int32_t second = question.steps - first;
    const int64_t most = question.rounds - LeastRoundsOf(false, second, question.chunks);
    for (int64_t rounds = std::max<int64_t>(first, LeastRoundsOf(true, first, question.chunks));
         rounds <= most; ++rounds) {
      if (IsOver() || question.rounds - rounds < second) break;
      const int64_t before = left_;
      XCCL_ASSIGN_OR_RETURN(const Answer gather,
                            AskCopies(true, question.chunks, first, rounds, work / kShorter));
      work -= before - left_;
      if (gather.verdict != Verdict::kFeasible) continue;
      const int64_t middle = left_;
      XCCL_ASSIGN_OR_RETURN(const Answer spread, AskCopies(false, question.chunks, second,
                                                           question.rounds - rounds, work / kShorter));
      work -= middle - left_;
      if (spread.verdict != Verdict::kFeasible) break;
      Schedule sums =
          RunBackwards(phases.gather, CopiesOf(reversed_, backwards_, phases.gather, gather.sends), false);
      Schedule copies = CopiesOf(topology_, forwards_, phases.spread, spread.sends);
      Normalize(sums);
      Normalize(copies);
      outcome.verdict = Verdict::kFeasible;
      outcome.how = "z3";
      outcome.made = Wrap(question.chunks, Compose(sums, copies));
      return outcome;
    }
  }
  return outcome;
}

// Takes what the solver found, unless ranks would round a sum differently.
bool Oracle::Accept(int32_t chunks, const Answer& answer, Outcome& outcome) const {
  if (answer.verdict != Verdict::kFeasible) return false;
  Synthesis made = FromSums(chunks, answer.sends);
  outcome.divergent =
      can_compose_ && !request_.allow_divergent && !IsBitwiseSame(made.schedule, made.collective, topology_);
  if (outcome.divergent) return false;
  outcome.verdict = Verdict::kFeasible;
  outcome.how = "z3";
  outcome.made = std::move(made);
  return true;
}

StatusOr<Outcome> Oracle::AskSums(const Question& question, int64_t work) {
  Outcome outcome;
  const int32_t chunks = question.chunks;
  const int32_t rounds = static_cast<int32_t>(question.rounds);
  const int32_t steps = std::min(question.steps, rounds);
  const std::vector<Image> images = SumImages();
  const auto [at, added] = sums_.try_emplace(chunks);
  if (added) at->second = *SumsOf(request_.collective->WithChunks(chunks), forwards_.ranks);
  const bool translates = !images.empty() && static_cast<size_t>(chunks) % images.size() == 0;
  if (const int64_t size = SizeOf(chunks, steps); size > kMostVariables) {
    too_large_ = too_large_ == 0 ? size : std::min(too_large_, size);
    return outcome;
  }
  const int64_t sum_size = SumSize(forwards_, at->second, steps);
  if (!images.empty() && steps >= LeastInOutSteps(forwards_)) {
    const std::vector<Image> group = translates ? images : std::vector<Image>{images[0]};
    SolverQuestion in_out =
        InOutQuestion(forwards_, group, chunks / static_cast<int32_t>(group.size()), steps, rounds);
    XCCL_ASSIGN_OR_RETURN(const Answer answer, in_out.Ask(LimitsOf(thorough_ ? work / 2 : work)));
    left_ -= answer.work + kPerVariable * SizeOf(chunks, steps);
    if (Accept(chunks, answer, outcome)) return outcome;
  } else if (images.empty() && can_compose_) {
    XCCL_ASSIGN_OR_RETURN(outcome, AskComposed(question, work / 2));
    if (outcome.verdict == Verdict::kFeasible) return outcome;
  }
  // What is found below mostly gives every rank an order of its own.
  if (!thorough_ && !request_.allow_divergent && !images.empty()) return outcome;
  for (const Shape shape : {Shape::kTranslated, Shape::kSymmetric, Shape::kAll}) {
    if (IsOver() || (shape != Shape::kAll && images.size() < 2)) continue;
    if (shape == Shape::kTranslated && !translates) continue;
    if (shape == Shape::kAll && !thorough_ && chunks > kFewChunks) continue;
    if (sum_size / static_cast<int64_t>(shape == Shape::kAll ? 1 : images.size()) > kMostVariables) continue;
    SolverQuestion sums = SumQuestion(forwards_, at->second, images, shape, steps, rounds);
    XCCL_ASSIGN_OR_RETURN(const Answer answer,
                          sums.Ask(LimitsOf(shape == Shape::kAll ? work : std::min(kNarrowWork, work))));
    left_ -= answer.work;
    if (Accept(chunks, answer, outcome)) return outcome;
    if (answer.verdict != Verdict::kInfeasible || shape != Shape::kAll || !forwards_.complete) continue;
    XCCL_RETURN_IF_ERROR(AskSumsInFewer(question, steps, work, outcome));
  }
  return outcome;
}

// A question about S steps has at least one round in each, and a step of sums is not always the sum of two:
// ranks that exchange what they hold do so at once. So fewer and longer steps are asked for too: infeasible
// where that is so of all of them.
Status Oracle::AskSumsInFewer(const Question& question, int32_t steps, int64_t work, Outcome& outcome) {
  const std::vector<Image> none;
  const int32_t rounds = static_cast<int32_t>(question.rounds);
  const auto problem = sums_.find(question.chunks);
  XCCL_CHECK(problem != sums_.end());
  for (int32_t fewer = LeastSteps(); fewer < steps; ++fewer) {
    if (IsOver()) return OkStatus();
    SolverQuestion sums = SumQuestion(forwards_, problem->second, none, Shape::kAll, fewer, rounds);
    XCCL_ASSIGN_OR_RETURN(const Answer answer, sums.Ask(LimitsOf(work)));
    left_ -= answer.work;
    if (Accept(question.chunks, answer, outcome) || answer.verdict != Verdict::kInfeasible) return OkStatus();
  }
  outcome.verdict = Verdict::kInfeasible;
  outcome.refusal = Refusal{ProvedBy::kSmtUnsat, "", {}, {}};
  return OkStatus();
}

}  // namespace xccl::smt
