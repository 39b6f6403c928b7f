// How a question (chunks, S steps, rounds) is decided:
// 1. Arithmetic refutes the question if distance, links, cuts or prices forbid it.
// 2. Another engine's plan answers the question if the plan takes at most the question's steps and rounds.
// 3. Copies are put to the solver with ever more steps, from the distance up to S. A schedule of fewer steps
//    is an answer too, and its question is smaller. A gather is decided as copies on the reversed machine.
// 4. Other sums (Form::kSums) are put to the solver by decide_sums.cc.
#include "synth/smt/decider.h"

#include <fmt/core.h>

#include <algorithm>

#include "synth/common/phases.h"
#include "synth/common/reverse.h"
#include "synth/smt/copies.h"
#include "synth/smt/owner_trees.h"
#include "synth/smt/sum_prices.h"

namespace xccl::smt {
namespace {

constexpr int64_t kDefaultWork = 20'000'000;  // limit of one request in Z3's resource units: a few seconds
// The most ranks of an allreduce whose patterns are priced (sum_prices.h). Z3 then proves in seconds that no
// pattern is cheaper.
constexpr int32_t kMostPricedRanks = 10;

bool IsAllreduceOfAll(const Collective& collective, int32_t ranks) {
  return collective.kind() == CollectiveKind::kAllreduce && collective.num_members() == ranks;
}

StatusOr<Phases> PhasesOf(const SynthesisRequest& request, const Topology& reversed, int32_t chunks) {
  return MakePhases(*request.topology, reversed, request.collective->WithChunks(chunks), request.size_bytes,
                    request.model, SumAt::kEach);
}

}  // namespace

Decider::Decider(const SynthesisRequest& request, std::span<const Engine> engines, Topology reversed,
                 Form form)
    : request_(request),
      engines_(engines),
      reversed_(std::move(reversed)),
      form_(form),
      topology_(form == Form::kGather ? reversed_ : *request.topology),
      machine_(MakeMachine(topology_, *request.topology)),
      deadline_(request.limits.deadline),
      work_(request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork),
      left_(work_),
      farthest_(FarthestNeed(machine_, *request.collective, form == Form::kGather)) {
  const std::vector<Image> images = ImagesOf(topology_, machine_, kMostRanks);
  if (IsCopies()) images_ = ImagesThatKeep(images, ProblemOf(1));
  if (form == Form::kSums && IsAllreduceOfAll(*request.collective, machine_.ranks)) images_ = images;
}

StatusOr<std::unique_ptr<Decider>> Decider::Create(const SynthesisRequest& request,
                                                   std::span<const Engine> engines) {
  Topology reversed = ReverseTopology(*request.topology);
  const StatusOr<Phases> phases = PhasesOf(request, reversed, 1);
  Form form = Form::kSums;
  if (phases.ok()) {
    // Chunks with equal holders and needers are interchangeable as sums only if all ranks that need a sum
    // contribute to it, or none of them does.
    bool contribute = false, do_not = false;
    for (size_t c = 0; c < phases->gather.needers.size(); ++c)
      if (!phases->gather.needers[c].empty())
        (phases->gather.contributing_holders[c].empty() ? do_not : contribute) = true;
    const bool same_sum = phases->has_gather && phases->has_spread;  // several ranks may need the same sum
    if (!same_sum && !(contribute && do_not))
      form = phases->has_gather ? Form::kGather : phases->has_spread ? Form::kSpread : Form::kNothing;
  }
  if (form == Form::kSums && !SumsOf(request.collective->WithChunks(1), request.topology->num_ranks())) {
    if (!phases.ok()) return phases.status();
    return InvalidInput(
        fmt::format("smt: {}: more than 64 contributions in a sum", request.collective->name()));
  }
  return std::unique_ptr<Decider>(new Decider(request, engines, std::move(reversed), form));
}

SolveLimits Decider::LimitsOf(int64_t work) const {
  return {.work = std::min(work, left_), .deadline = deadline_};
}

const CopyProblem& Decider::ProblemOf(int32_t chunks) {
  XCCL_CHECK(IsCopies());
  const auto [at, added] = problems_.try_emplace(chunks);
  if (added) {
    StatusOr<Phases> phases = PhasesOf(request_, reversed_, chunks);
    XCCL_CHECK(phases.ok());  // its errors do not depend on the number of chunks
    at->second = std::move(form_ == Form::kGather ? phases->gather : phases->spread);
  }
  return at->second;
}

int32_t Decider::FirstSteps() const {
  const bool in_and_out = form_ == Form::kSums && !request_.allow_divergent && !images_.empty();
  return in_and_out ? std::max(LeastSteps(), LeastOwnerTreesSteps(machine_)) : LeastSteps();
}

RoundsBound Decider::PricesOf(std::optional<int32_t> steps) {
  const auto [at, added] = prices_.try_emplace(steps.value_or(0));
  if (!added || !machine_.complete) return at->second;
  PriceOptions options;
  options.steps = steps.value_or(std::max(1, machine_.ranks - 1));
  options.untimed = !steps;
  options.stopped = [this] { return TimeIsUp(); };
  at->second = PriceCopies(machine_, ProblemOf(1), images_, options);
  return at->second;
}

std::pair<RoundsBound, ProvedBy> Decider::BoundOf(std::optional<int32_t> steps) {
  std::pair best(RoundsBound(), ProvedBy::kNothing);
  const auto raise = [&](const RoundsBound& bound, ProvedBy how) {
    if (best.first.IsLessThan(bound)) best = {bound, how};
  };
  if (form_ == Form::kSums)
    for (const RoundsBound& bound : SumBounds(topology_, machine_, *request_.collective))
      raise(bound, ProvedBy::kCut);
  if (!IsCopies()) return best;
  if (const auto cut = CutRounds(topology_, machine_, ProblemOf(1))) raise(*cut, ProvedBy::kCut);
  if (best.second == ProvedBy::kNothing || steps) raise(PricesOf(steps), ProvedBy::kFlow);
  return best;
}

std::optional<std::pair<RoundsBound, ProvedBy>> Decider::BestBoundOf(int32_t steps) {
  if (form_ != Form::kSums) return BoundOf(steps);
  const auto always = BoundOf({});
  const Collective& collective = *request_.collective;
  if (!IsAllreduceOfAll(collective, machine_.ranks) || !machine_.complete ||
      machine_.ranks > kMostPricedRanks)
    return always;
  const SumProblem problem = *SumsOf(collective.WithChunks(1), machine_.ranks);
  int64_t work = 0;
  const PriceResult priced =
      PriceSums(machine_, problem, images_, steps, always.first, LimitsOf(left_ / 2), work);
  left_ -= work;
  if (priced.infeasible) return std::nullopt;
  return always.first.IsLessThan(priced.bound) ? std::pair(priced.bound, ProvedBy::kSmtUnsat) : always;
}

int64_t Decider::LeastRounds(int32_t steps, int32_t chunks) {
  const int64_t least = std::max<int64_t>(LeastSteps(), BoundOf(steps).first.Rounds(chunks));
  if (!IsCopies()) return least;
  const CopyProblem& problem = ProblemOf(chunks);
  return std::max({least, FullestRank(machine_, problem).rounds,
                   machine_.complete ? TotalSends(machine_, problem).rounds() : 0});
}

// Returns the steps × the rounds of a step in which every chunk crosses every edge. A chunk crosses an edge
// at most once in a step, so more rounds do not help.
int64_t Decider::MostRounds(int32_t steps, int32_t chunks) const {
  const int64_t all = request_.collective->WithChunks(chunks).num_chunks();
  int64_t most = 1;
  for (size_t c = 0; c < machine_.capacities.size(); ++c) {
    const int64_t per_round = machine_.capacities[c].per_round;
    const int64_t sends = all * static_cast<int64_t>(machine_.users[c].size());
    most = std::max(most, (sends + per_round - 1) / per_round);
  }
  return most * steps;
}

std::optional<Refusal> Decider::Forbidden(const Question& question) {
  const int64_t steps = std::min<int64_t>(question.steps, question.rounds);
  if (farthest_.steps > steps) {
    Refusal refusal{ProvedBy::kDistance, fmt::format("rank {} is {} links from rank {}", farthest_.needer,
                                                     farthest_.steps, farthest_.holder)};
    if (farthest_.steps > question.steps) refusal.steps = farthest_.steps;
    if (farthest_.steps > question.rounds) refusal.rounds = farthest_.steps;
    return refusal;
  }
  if (IsCopies()) {
    const CopyProblem& problem = ProblemOf(question.chunks);
    const Fullest full = FullestRank(machine_, problem);
    if (full.rounds > question.rounds)
      return Refusal{.by = ProvedBy::kCut,
                     .text = fmt::format("rank {} must {} {} chunks, {} a round", full.rank,
                                         full.incoming != (form_ == Form::kGather) ? "receive" : "send",
                                         full.chunks, full.per_round),
                     .rounds = full.rounds};
    const Total total = TotalSends(machine_, problem);
    if (machine_.complete && total.rounds() > question.rounds)
      return Refusal{.by = ProvedBy::kFlow,
                     .text = fmt::format("{} sends are needed, {} a round fit", total.sends, total.per_round),
                     .rounds = total.rounds()};
  }
  for (const bool any_steps : {true, false}) {
    const auto [bound, by] = BoundOf(any_steps ? std::nullopt : std::optional(static_cast<int32_t>(steps)));
    if (bound.Rounds(question.chunks) > question.rounds)
      return Refusal{.by = by,
                     .text = fmt::format("a chunk of every part needs {} round{}{}", ToText(bound),
                                         bound == RoundsBound{1, 1} ? "" : "s",
                                         any_steps ? "" : fmt::format(" in {} steps", steps)),
                     .rounds = bound.Rounds(question.chunks)};
  }
  return std::nullopt;
}

Synthesis Decider::Wrap(int32_t chunks, Schedule schedule) const {
  return {.collective = request_.collective->WithChunks(chunks),
          .schedule = std::move(schedule),
          .exact = false,
          .engine = "smt",
          .note = {}};
}

int64_t Decider::SizeOf(int32_t chunks, int32_t steps) {
  if (IsCopies()) return EncodingSize(machine_, ProblemOf(1), steps) * chunks;
  if (images_.empty())
    return SumSize(machine_, *SumsOf(request_.collective->WithChunks(1), machine_.ranks), steps);
  const int32_t order = static_cast<int32_t>(images_.size());
  return int64_t{chunks % order == 0 ? chunks / order : chunks} * steps * 2 *
         static_cast<int64_t>(machine_.edges.size() + static_cast<size_t>(machine_.ranks));
}

bool Decider::IsTooLarge(int64_t size) {
  if (size <= kMostVariables) return false;
  too_large_ = too_large_ == 0 ? size : std::min(too_large_, size);
  return true;
}

const std::vector<Witness>& Decider::WitnessesOf(int32_t chunks) {
  const auto [at, added] = witnesses_.try_emplace(chunks);
  if (!added) return at->second;
  SynthesisRequest asked = request_;
  asked.limits.deadline = deadline_.ForTheRest();
  at->second = FindWitnesses(asked, machine_, chunks, engines_);
  return at->second;
}

StatusOr<Outcome> Decider::Ask(const Question& question, int64_t work) {
  XCCL_ASSIGN_OR_RETURN(Outcome outcome, Answered(question, work));
  if (!outcome.made) return outcome;
  const StepsAndRounds took = Take(outcome.made->schedule, *request_.topology, machine_);
  if (took.steps > question.steps || took.rounds > question.rounds)
    return BugError(fmt::format("smt: {} steps and {} rounds were found where {} and {} were asked for",
                                took.steps, took.rounds, question.steps, question.rounds));
  return outcome;
}

StatusOr<Outcome> Decider::Answered(const Question& question, int64_t work) {
  if (std::optional<Refusal> refusal = Forbidden(question))
    return Outcome{.verdict = Verdict::kInfeasible, .refusal = std::move(refusal)};
  Say(fmt::format("{} chunks, {} steps, {} rounds", question.chunks, question.steps, question.rounds));
  for (const Witness& witness : WitnessesOf(question.chunks))
    if (witness.took.steps <= question.steps && witness.took.rounds <= question.rounds)
      return Outcome{.verdict = Verdict::kFeasible,
                     .made = Wrap(question.chunks, witness.made.schedule),
                     .how = witness.made.engine};
  return form_ == Form::kSums ? AskSums(question, work) : AskCopies(question, work);
}

StatusOr<Outcome> Decider::AskCopies(const Question& question, int64_t work) {
  Outcome outcome;
  const CopyProblem& problem = ProblemOf(question.chunks);
  const int32_t last = static_cast<int32_t>(std::min<int64_t>(question.steps, question.rounds));
  bool open = false;  // some number of steps is undecided, and refuting `last` steps does not refute it
  for (int32_t steps = LeastSteps(); steps <= last && !IsOver(); ++steps) {
    if (LeastRounds(steps, question.chunks) > question.rounds) continue;
    Answer answer;
    if (!IsTooLarge(SizeOf(question.chunks, steps))) {
      XCCL_ASSIGN_OR_RETURN(
          answer, DecideCopies(machine_, problem, images_, steps, static_cast<int32_t>(question.rounds),
                               LimitsOf(steps < last ? work / 2 : work)));
    }
    left_ -= answer.work;
    work -= answer.work;
    if (answer.verdict == Verdict::kFeasible) {
      Schedule schedule = CopiesOf(topology_, machine_, problem, answer.sends);
      Normalize(schedule);
      if (form_ == Form::kGather)
        schedule = Reverse(schedule, *request_.topology, request_.collective->WithChunks(question.chunks),
                           TransferOp::kReduce);
      outcome.verdict = answer.verdict;
      outcome.how = "z3";
      outcome.made = Wrap(question.chunks, std::move(schedule));
      return outcome;
    }
    open |= answer.verdict == Verdict::kStopped && !machine_.splits;
    // On a machine that is not complete, the solver refutes only schedules over the listed paths.
    if (steps == last && answer.verdict == Verdict::kInfeasible && machine_.complete && !open) {
      outcome.verdict = answer.verdict;
      outcome.refusal = Refusal{ProvedBy::kSmtUnsat};
    }
  }
  return outcome;
}

std::string Decider::Conflict(const Question& question) {
  if (!IsCopies() || IsOver()) return "";
  const std::vector<Image> none = {Identity(machine_)};
  const int32_t steps = static_cast<int32_t>(std::min<int64_t>(question.steps, question.rounds));
  SolverQuestion named = CopyQuestion(machine_, ProblemOf(question.chunks), none, steps,
                                      static_cast<int32_t>(question.rounds), false, true);
  const StatusOr<Answer> answer = named.Ask(LimitsOf(left_ / 2));
  if (!answer.ok() || answer->verdict != Verdict::kInfeasible) return "";
  return Summary(answer->core);
}

}  // namespace xccl::smt
