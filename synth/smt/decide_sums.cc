// Decides questions of Form::kSums (decider.h) by up to three searches. The first is for an allreduce of all
// ranks by owner trees (owner_trees.h): each chunk is summed along a tree to one rank, its owner, and
// distributed along another tree. The second and the third search by sets of contributions (sums.h): first
// symmetric schedules, then all schedules. Only the third search can refute a question.
#include <algorithm>

#include "ir/analysis/bitwise_same.h"
#include "synth/smt/decider.h"
#include "synth/smt/owner_trees.h"
#include "synth/smt/sums.h"

namespace xccl::smt {

// Asks the solver and stores its schedule in `outcome`. If the schedule gives ranks different roundings of a
// sum and the request does not allow that, sets outcome.divergent instead and returns kStopped.
StatusOr<Verdict> Decider::AskForSums(SolverQuestion question, int32_t chunks, int64_t work,
                                      Outcome& outcome) {
  XCCL_ASSIGN_OR_RETURN(const Answer answer, question.Ask(LimitsOf(work)));
  left_ -= answer.work;
  if (answer.verdict != Verdict::kFeasible) return answer.verdict;
  Synthesis made = Wrap(chunks, {});
  made.schedule = ScheduleOf(topology_, machine_, made.collective.num_chunks(), answer.sends);
  Normalize(made.schedule);
  outcome.divergent = !request_.allow_divergent && !IsBitwiseSame(made.schedule, made.collective, topology_);
  if (outcome.divergent) return Verdict::kStopped;
  outcome.verdict = Verdict::kFeasible;
  outcome.how = "z3";
  outcome.made = std::move(made);
  return answer.verdict;
}

// Asks about the question's number of steps, then about fewer and longer steps. The solver gives every step
// at least one round, and a step of sums cannot always be split in two, because ranks that exchange partial
// sums do so at once. So fewer steps may be feasible even if more steps are not. The question is infeasible
// if every number of steps is infeasible.
StatusOr<Outcome> Decider::AskSums(const Question& question, int64_t work) {
  Outcome outcome;
  const int32_t chunks = question.chunks;
  const int32_t rounds = static_cast<int32_t>(question.rounds);
  const int32_t steps = std::min(question.steps, rounds);
  const int64_t size = SizeOf(chunks, steps);
  if (IsTooLarge(size)) return outcome;
  const SumProblem problem = *SumsOf(request_.collective->WithChunks(chunks), machine_.ranks);
  const int32_t order = static_cast<int32_t>(images_.size());
  const std::vector<Image> one = {Identity(machine_)};
  const std::vector<Image>& group = order > 0 && chunks % order == 0 ? images_ : one;
  if (order > 0 && steps >= LeastOwnerTreesSteps(machine_)) {
    left_ -= kWorkPerVariable * size;
    const int32_t runs = chunks / static_cast<int32_t>(group.size());
    XCCL_RETURN_IF_ERROR(AskForSums(OwnerTreesQuestion(machine_, group, runs, steps, rounds), chunks,
                                    thorough_ ? work / 2 : work, outcome)
                             .status());
    if (outcome.made) return outcome;
  }
  // The searches below mostly find schedules in which every rank adds in its own order. The request does not
  // allow such schedules.
  if (!thorough_ && !request_.allow_divergent && order > 0) return outcome;
  const int64_t sum_size = SumSize(machine_, problem, steps);
  if (group.size() > 1 && !IsOver() && sum_size / order <= kMostVariables) {
    XCCL_RETURN_IF_ERROR(
        AskForSums(ReductionQuestion(machine_, problem, group, steps, rounds), chunks, work / 2, outcome)
            .status());
    if (outcome.made) return outcome;
  }
  if ((!thorough_ && chunks > kFewChunks) || sum_size > kMostVariables) return outcome;
  for (int32_t fewer = steps; fewer >= LeastSteps(); --fewer) {
    if (IsOver()) return outcome;
    XCCL_ASSIGN_OR_RETURN(
        const Verdict verdict,
        AskForSums(ReductionQuestion(machine_, problem, one, fewer, rounds), chunks, work, outcome));
    if (verdict != Verdict::kInfeasible || !machine_.complete) return outcome;
  }
  outcome.verdict = Verdict::kInfeasible;
  outcome.refusal = Refusal{ProvedBy::kSmtUnsat};
  return outcome;
}

}  // namespace xccl::smt
