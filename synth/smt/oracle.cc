// A question with S steps is first put with fewer, down to the distance: what fits there fits, and shorter
// questions are smaller. Sums that several ranks need are asked for in oracle_sums.cc.
#include "synth/smt/oracle.h"

#include <fmt/format.h>

#include <algorithm>

#include "synth/common/reverse.h"
#include "synth/smt/copies.h"
#include "synth/smt/decide.h"
#include "synth/smt/in_out.h"
#include "synth/smt/sum_prices.h"

namespace xccl::smt {
namespace {

constexpr int64_t kMostImages = 64;
constexpr int64_t kDefaultWork = 20'000'000;  // Z3's resource units, in all: five seconds or so
constexpr int32_t kMostPricedRanks = 10;      // of an allreduce whose patterns are priced
constexpr int32_t kShorter = 4;               // of a question's work, what fewer steps may use up: one part

std::string Ways(const RoundsBound& bound) {
  return fmt::format("{} round{}", ToText(bound), bound == RoundsBound{1, 1} ? "" : "s");
}

const CopyProblem& Half(const Phases& phases, bool gather) { return gather ? phases.gather : phases.spread; }

}  // namespace

Oracle::Oracle(const SynthesisRequest& request, std::span<const Engine> engines)
    : request_(request),
      engines_(engines),
      topology_(*request.topology),
      reversed_(ReverseTopology(topology_)),
      forwards_(MakeMachine(topology_)),
      backwards_(MakeMachine(reversed_, topology_)),
      forward_images_(smt::ImagesOf(topology_, forwards_, kMostImages)),
      backward_images_(smt::ImagesOf(reversed_, backwards_, kMostImages)),
      deadline_(DeadlineOf(request)),
      work_(request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork),
      left_(work_) {}

StatusOr<std::unique_ptr<Oracle>> Oracle::Create(const SynthesisRequest& request,
                                                 std::span<const Engine> engines) {
  std::unique_ptr<Oracle> oracle(new Oracle(request, engines));
  XCCL_RETURN_IF_ERROR(oracle->Prepare());
  return oracle;
}

Status Oracle::Prepare() {
  StatusOr<Phases> phases = MakePhasesOf(1);
  if (!phases.ok()) {
    const std::optional<SumProblem> sums = SumsOf(request_.collective->WithChunks(1), forwards_.ranks);
    if (!sums) return phases.status();
    form_ = Form::kSums;
    return OkStatus();
  }
  has_phases_ = true;
  const Phases& one = phases_.emplace(1, *std::move(phases)).first->second;
  // Chunks that are alike as copies are alike as sums only where the ranks that need them all contribute, or
  // all do not.
  bool alike = true;
  std::optional<bool> contributes;
  for (size_t c = 0; c < one.gather.needers.size(); ++c) {
    if (one.gather.needers[c].empty()) continue;
    const bool does = !one.gather.contributing_holders[c].empty();
    alike = alike && contributes.value_or(does) == does;
    contributes = does;
  }
  can_compose_ = one.has_gather && one.has_spread;
  form_ = can_compose_ || !alike ? Form::kSums
          : one.has_gather       ? Form::kGather
          : one.has_spread       ? Form::kSpread
                                 : Form::kNothing;
  if (form_ == Form::kSums && !SumsOf(request_.collective->WithChunks(1), forwards_.ranks))
    return InvalidInput(
        fmt::format("smt: {}: more than 64 contributions in a sum", request_.collective->name()));
  return OkStatus();
}

SolveLimits Oracle::LimitsOf(int64_t work) const {
  return {.work = std::min(work, left_), .deadline = deadline_, .stopped = request_.stopped};
}

StatusOr<Phases> Oracle::MakePhasesOf(int32_t chunks) const {
  return MakePhases(topology_, reversed_, request_.collective->WithChunks(chunks), request_.size_bytes,
                    request_.model, SumAt::kEach);
}

const Phases& Oracle::PhasesOf(int32_t chunks) {
  XCCL_CHECK(has_phases_);
  const auto at = phases_.find(chunks);
  if (at != phases_.end()) return at->second;
  StatusOr<Phases> phases = MakePhasesOf(chunks);
  XCCL_CHECK(phases.ok());  // the errors are about parts, however they are cut
  return phases_.emplace(chunks, *std::move(phases)).first->second;
}

const CopyProblem& Oracle::ProblemOf(int32_t chunks) {
  XCCL_CHECK(form_ == Form::kSpread || form_ == Form::kGather);
  return Half(PhasesOf(chunks), form_ == Form::kGather);
}

const std::vector<Image>& Oracle::ImagesOf(bool gather, int32_t chunks) {
  const auto [at, added] = images_.try_emplace({gather, chunks});
  if (added) {
    at->second = ImagesThatKeep(gather ? backward_images_ : forward_images_, Half(PhasesOf(chunks), gather));
  }
  return at->second;
}

std::vector<Image> Oracle::SumImages() const {
  const bool all = request_.collective->kind() == CollectiveKind::kAllreduce &&
                   request_.collective->num_members() == forwards_.ranks;
  return all ? forward_images_ : std::vector<Image>{};
}

int32_t Oracle::LeastSteps() {
  if (form_ == Form::kNothing) return 0;
  if (form_ != Form::kSums) return FarthestNeed(machine(), ProblemOf(1)).steps;
  return Reach(forwards_, *request_.collective).steps;
}

int32_t Oracle::FirstSteps() {
  const bool in_and_out = form_ == Form::kSums && !request_.allow_divergent && !SumImages().empty();
  return in_and_out ? std::max(LeastSteps(), LeastInOutSteps(forwards_)) : LeastSteps();
}

RoundsBound Oracle::PricesOf(bool gather, std::optional<int32_t> steps) {
  const Machine& machine = gather ? backwards_ : forwards_;
  const int32_t most = std::max(1, machine.ranks - 1);
  const auto [at, added] = prices_.try_emplace({gather, steps.value_or(0)});
  if (!added || !machine.complete) return at->second;
  PriceOptions options;
  options.steps = steps.value_or(most);
  options.untimed = !steps;
  options.stopped = [this] { return TimeIsUp() || IsInterrupted(); };
  at->second = PriceCopies(machine, Half(PhasesOf(1), gather), ImagesOf(gather, 1), options).bound;
  return at->second;
}

std::pair<RoundsBound, ProvedBy> Oracle::BoundOf(std::optional<int32_t> steps) {
  RoundsBound best;
  ProvedBy by = ProvedBy::kNothing;
  const auto raise = [&](const RoundsBound& bound, ProvedBy how) {
    if (best.IsLessThan(bound)) best = bound, by = how;
  };
  if (form_ == Form::kSums) {
    for (const RoundsBound& bound : SumBounds(topology_, forwards_, *request_.collective))
      raise(bound, ProvedBy::kCut);
    return {best, by};
  }
  if (form_ == Form::kNothing) return {best, by};
  const bool gather = form_ == Form::kGather;
  if (const auto cut = CutRounds(gather ? reversed_ : topology_, machine(), ProblemOf(1)))
    raise(*cut, ProvedBy::kCut);
  if (by == ProvedBy::kNothing || steps) raise(PricesOf(gather, steps), ProvedBy::kFlow);
  return {best, by};
}

Oracle::SumBound Oracle::SumBoundOf(int32_t steps) {
  const auto [bound, by] = BoundOf({});
  const SumBound always{.bound = bound, .by = by};
  const Collective& collective = *request_.collective;
  if (collective.kind() != CollectiveKind::kAllreduce || !forwards_.complete ||
      collective.num_members() != forwards_.ranks || forwards_.ranks > kMostPricedRanks)
    return always;
  const std::optional<SumProblem> problem = smt::SumsOf(collective.WithChunks(1), forwards_.ranks);
  int64_t work = 0;
  const PriceResult result =
      PriceSums(forwards_, *problem, SumImages(), steps, bound, LimitsOf(left_ / 2), work);
  left_ -= work;
  if (result.infeasible) return {.bound = bound, .by = by, .infeasible = true};
  return bound.IsLessThan(result.bound) ? SumBound{.bound = result.bound, .by = ProvedBy::kSmtUnsat} : always;
}

int64_t Oracle::LeastRoundsOf(bool gather, int32_t steps, int32_t chunks) {
  const Machine& machine = gather ? backwards_ : forwards_;
  const CopyProblem& problem = Half(PhasesOf(chunks), gather);
  // The owners of sums depend on the number of chunks: then what one chunk costs says nothing of several.
  const int64_t prices = form_ == Form::kSums ? 0 : PricesOf(gather, steps).Rounds(chunks);
  return std::max({int64_t{FarthestNeed(machine, problem).steps}, FullestRank(machine, problem).rounds,
                   machine.complete ? TotalSends(machine, problem).rounds() : 0, prices});
}

int64_t Oracle::LeastRounds(int32_t steps, int32_t chunks) {
  const int64_t by_distance = LeastSteps();
  const int64_t by_bound = BoundOf(steps).first.Rounds(chunks);
  if (form_ != Form::kSpread && form_ != Form::kGather) return std::max(by_distance, by_bound);
  return std::max({by_distance, by_bound, LeastRoundsOf(form_ == Form::kGather, steps, chunks)});
}

// In a step a chunk goes over an edge once.
int64_t Oracle::MostRounds(int32_t steps, int32_t chunks) {
  const int64_t all = request_.collective->WithChunks(chunks).num_chunks();
  int64_t most = 1;
  for (size_t c = 0; c < machine().capacities.size(); ++c) {
    const int64_t per_round = machine().capacities[c].per_round;
    const int64_t sends = all * static_cast<int64_t>(machine().users[c].size());
    most = std::max(most, (sends + per_round - 1) / per_round);
  }
  return most * steps;
}

std::optional<Refusal> Oracle::Forbidden(const Question& question) {
  if (form_ == Form::kNothing) return std::nullopt;
  const bool gather = form_ == Form::kGather;
  const Farthest far = form_ == Form::kSums ? Reach(forwards_, *request_.collective)
                                            : FarthestNeed(machine(), ProblemOf(question.chunks));
  const int64_t steps = std::min<int64_t>(question.steps, question.rounds);
  if (far.steps > steps) {
    Refusal refusal{ProvedBy::kDistance,
                    fmt::format("rank {} is {} links from rank {}", gather ? far.holder : far.needer,
                                far.steps, gather ? far.needer : far.holder),
                    {},
                    {}};
    if (far.steps > question.steps) refusal.steps = far.steps;
    if (far.steps > question.rounds) refusal.rounds = far.steps;
    return refusal;
  }
  if (form_ != Form::kSums) {
    const CopyProblem& problem = ProblemOf(question.chunks);
    const Fullest full = FullestRank(machine(), problem);
    if (full.rounds > question.rounds)
      return Refusal{ProvedBy::kCut,
                     fmt::format("rank {} must {} {} chunks, {} a round", full.rank,
                                 full.incoming != gather ? "receive" : "send", full.chunks, full.per_round),
                     {},
                     full.rounds};
    const Total total = TotalSends(machine(), problem);
    if (machine().complete && total.rounds() > question.rounds)
      return Refusal{ProvedBy::kFlow,
                     fmt::format("{} sends are needed, {} a round fit", total.sends, total.per_round),
                     {},
                     total.rounds()};
  }
  const auto always = BoundOf({});
  if (always.first.Rounds(question.chunks) > question.rounds)
    return Refusal{always.second,
                   fmt::format("a chunk of every part needs {}", Ways(always.first)),
                   {},
                   always.first.Rounds(question.chunks)};
  const auto now = BoundOf(static_cast<int32_t>(steps));
  if (now.first.Rounds(question.chunks) > question.rounds)
    return Refusal{now.second,
                   fmt::format("a chunk of every part needs {} in {} steps", Ways(now.first), steps),
                   {},
                   now.first.Rounds(question.chunks)};
  return std::nullopt;
}

Synthesis Oracle::Wrap(int32_t chunks, Schedule schedule) const {
  return {.collective = request_.collective->WithChunks(chunks),
          .schedule = std::move(schedule),
          .exact = false,
          .engine = "smt",
          .note = {}};
}

Synthesis Oracle::FromSends(int32_t chunks, const std::vector<Send>& sends) {
  const bool gather = form_ == Form::kGather;
  const CopyProblem& problem = ProblemOf(chunks);
  Schedule schedule = CopiesOf(gather ? reversed_ : topology_, machine(), problem, sends);
  if (gather) schedule = RunBackwards(problem, schedule, false);
  Normalize(schedule);
  return Wrap(chunks, std::move(schedule));
}

Synthesis Oracle::FromSums(int32_t chunks, const std::vector<Send>& sends) const {
  Synthesis made = Wrap(chunks, {});
  made.schedule = ScheduleOf(topology_, forwards_, made.collective.num_chunks(), sends);
  Normalize(made.schedule);
  return made;
}

StatusOr<Answer> Oracle::AskCopies(bool gather, int32_t chunks, int32_t steps, int64_t rounds, int64_t work) {
  const Machine& machine = gather ? backwards_ : forwards_;
  const CopyProblem& problem = Half(PhasesOf(chunks), gather);
  if (const int64_t size = EncodingSize(machine, problem, steps); size > Oracle::kMostVariables) {
    too_large_ = too_large_ == 0 ? size : std::min(too_large_, size);
    return Answer{};
  }
  XCCL_ASSIGN_OR_RETURN(Answer answer, DecideCopies(machine, problem, ImagesOf(gather, chunks), steps,
                                                    static_cast<int32_t>(rounds), LimitsOf(work)));
  left_ -= answer.work;
  return answer;
}

int64_t Oracle::SizeOf(int32_t chunks, int32_t steps) {
  if (form_ == Form::kNothing) return 0;
  if (form_ != Form::kSums) {
    const int64_t ways = static_cast<int64_t>(machine().edges.size()) + machine().ranks;
    int64_t parts = 0;
    for (const std::vector<int32_t>& needers : ProblemOf(1).needers) parts += needers.empty() ? 0 : 1;
    return parts * chunks * steps * ways;
  }
  const std::vector<Image> images = SumImages();
  if (images.empty())
    return SumSize(forwards_, *SumsOf(request_.collective->WithChunks(1), forwards_.ranks), steps);
  const int64_t runs = chunks % static_cast<int32_t>(images.size()) == 0
                           ? chunks / static_cast<int32_t>(images.size())
                           : chunks;
  return runs * steps * 2 *
         static_cast<int64_t>(forwards_.edges.size() + static_cast<size_t>(forwards_.ranks));
}

const std::vector<Witness>& Oracle::WitnessesOf(int32_t chunks) {
  const auto [at, added] = witnesses_.try_emplace(chunks);
  if (!added) return at->second;
  SynthesisRequest asked = request_;
  if (deadline_.has_limit()) asked.stopped = [this] { return TimeIsUp() || IsInterrupted(); };
  at->second = FindWitnesses(asked, forwards_, chunks, engines_);
  return at->second;
}

const Witness* Oracle::WitnessFor(const Question& question) {
  for (const Witness& witness : WitnessesOf(question.chunks))
    if (witness.took.steps <= question.steps && witness.took.rounds <= question.rounds) return &witness;
  return nullptr;
}

StatusOr<Outcome> Oracle::Ask(const Question& question, int64_t work) {
  XCCL_ASSIGN_OR_RETURN(Outcome outcome, Answered(question, work));
  if (!outcome.made) return outcome;
  const StepsAndRounds took = Take(outcome.made->schedule, topology_, forwards_);
  if (took.steps > question.steps || took.rounds > question.rounds)
    return BugError(fmt::format("smt: {} steps and {} rounds were found where {} and {} were asked for",
                                took.steps, took.rounds, question.steps, question.rounds));
  return outcome;
}

StatusOr<Outcome> Oracle::Answered(const Question& question, int64_t work) {
  Outcome outcome;
  if (form_ == Form::kNothing) {
    outcome.verdict = Verdict::kFeasible;
    outcome.made = NothingToMove("smt", request_);
    return outcome;
  }
  if (std::optional<Refusal> refusal = Forbidden(question)) {
    outcome.verdict = Verdict::kInfeasible;
    outcome.refusal = std::move(refusal);
    return outcome;
  }
  Say(fmt::format("{} chunks, {} steps, {} rounds", question.chunks, question.steps, question.rounds));
  if (const Witness* witness = WitnessFor(question)) {
    outcome.verdict = Verdict::kFeasible;
    outcome.how = witness->made.engine;
    outcome.made = Wrap(question.chunks, witness->made.schedule);
    return outcome;
  }
  if (form_ == Form::kSums) return AskSums(question, work);
  const int32_t last = static_cast<int32_t>(std::min<int64_t>(question.steps, question.rounds));
  bool open = false;  // is a smaller number of steps undecided, and not decided with the last one?
  for (int32_t steps = LeastSteps(); steps <= last; ++steps) {
    if (IsOver()) break;
    if (LeastRounds(steps, question.chunks) > question.rounds) continue;
    const int64_t before = left_;
    XCCL_ASSIGN_OR_RETURN(const Answer answer,
                          AskCopies(form_ == Form::kGather, question.chunks, steps, question.rounds,
                                    steps < last ? work / kShorter : work));
    work -= before - left_;
    if (answer.verdict == Verdict::kFeasible) {
      outcome.verdict = answer.verdict;
      outcome.how = "z3";
      outcome.made = FromSends(question.chunks, answer.sends);
      return outcome;
    }
    open |= answer.verdict == Verdict::kStopped && !machine().splits;
    // Otherwise refused over the ways that were listed alone.
    if (steps == last && answer.verdict == Verdict::kInfeasible && machine().complete && !open) {
      outcome.verdict = answer.verdict;
      outcome.refusal = Refusal{ProvedBy::kSmtUnsat, "", {}, {}};
    }
  }
  return outcome;
}

std::string Oracle::Conflict(const Question& question) {
  constexpr int64_t kWork = 2'000'000;
  if (form_ == Form::kSums || form_ == Form::kNothing || IsOver()) return "";
  const std::vector<Image>& images = ImagesOf(form_ == Form::kGather, question.chunks);
  const std::vector<Image> none(images.begin(), images.begin() + 1);
  const int32_t steps = static_cast<int32_t>(std::min<int64_t>(question.steps, question.rounds));
  SolverQuestion named = CopyQuestion(machine(), ProblemOf(question.chunks), none, steps,
                                      static_cast<int32_t>(question.rounds), {}, true);
  const StatusOr<Answer> answer = named.Ask(LimitsOf(kWork));
  if (!answer.ok() || answer->verdict != Verdict::kInfeasible) return "";
  Core core = named.LastCore();
  constexpr std::string_view kNeeds = "needs of rank";
  if (form_ == Form::kGather)
    for (std::string& name : core.names)
      if (name.starts_with(kNeeds)) name.replace(0, kNeeds.size(), "sends of rank");
  return Summary(core);
}

}  // namespace xccl::smt
