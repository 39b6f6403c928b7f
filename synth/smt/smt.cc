// 1. List the questions (chunks, steps, rounds) that the request's limits allow and arithmetic does not
//    refute.
// 2. Ask them in order of promised time: steps × alpha + rounds × the time of a round. The first schedule is
//    best if all questions before it were refuted.
// 3. If a question stays undecided, return the fastest plan: the schedule, if any, or another engine's plan.
// 4. If no engine has a plan, ask the widest question with all work that is left: fewest chunks, most steps.
// The request is refuted only if a question that covers all its schedules is refuted.
#include "synth/smt/smt.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/violation.h"
#include "synth/smt/decider.h"

namespace xccl {
namespace {

using smt::Decider;
using smt::Form;
using smt::Outcome;
using smt::Question;
using smt::Refusal;
using smt::Verdict;

constexpr const char* kName = "smt";
// After the search, other engines may make plans. They get this fraction of the time, at most
// kMostLeftSeconds.
constexpr double kLeftForOthers = 0.2, kMostLeftSeconds = 5;
constexpr int32_t kMostLimit = 1000;  // for --chunks, --steps and --rounds: far beyond what Z3 decides
// Steps beyond the distance, and rounds beyond the bound, that are asked for if the request sets no limit.
constexpr int32_t kFurther = 4;
// The most questions about sums in one request. With one search each, which uses at most 1/kShare of the work
// that is left, about half of the work remains for the widest question.
constexpr size_t kMostAsked = 12;

struct Asked {
  Question question;
  double promise_ps = 0;
};

class RequestSearch {
 public:
  RequestSearch(const SynthesisRequest& request, Decider& decider, std::span<const Engine> engines)
      : request_(request), decider_(decider), engines_(engines) {}

  StatusOr<Synthesis> Run() {
    if (decider_.form() == Form::kNothing) return NothingToMove(kName, request_);
    XCCL_ASSIGN_OR_RETURN(const std::vector<Asked> asked, Questions());
    if (asked.size() > 1) decider_.SetThorough(false);
    for (const Asked& one : asked) {
      const int64_t share =
          std::max<int64_t>(decider_.work_left() / (asked.size() == 1 ? 1 : smt::kShare), 1);
      XCCL_RETURN_IF_ERROR(Ask(one.question, share));
      if (made_) return *(stopped_ ? BestSoFar() : std::move(made_));
      if (decider_.IsOver()) break;
    }
    if (!refuted_) {
      const Status why = WhyOpen(asked.size());
      if (std::optional<Synthesis> best = BestSoFar()) return *std::move(best);
      if (asked.size() == 1 || decider_.IsOver()) return why;
      // One question decides whether the request has any answer. It gets all work that is left.
      decider_.SetThorough(true);
      XCCL_RETURN_IF_ERROR(Ask(Widest(), decider_.work_left()));
      if (made_) return *std::move(made_);
    }
    return refuted_ ? NothingFits(*refuted_) : WhyOpen(asked.size());
  }

 private:
  Status Ask(const Question& question, int64_t work) {
    XCCL_ASSIGN_OR_RETURN(Outcome outcome, decider_.Ask(question, work));
    if (outcome.made) made_ = Finish(question.chunks, *std::move(outcome.made), outcome.how, stopped_);
    stopped_ |= outcome.verdict == Verdict::kStopped;
    divergent_ |= outcome.divergent;
    if (outcome.verdict == Verdict::kInfeasible && IsHardest(question)) refuted_ = question;
    return OkStatus();
  }

  // Returns kLimit with the text "smt: alltoall on 8 ranks: " followed by `what`.
  Status Limit(const std::string& what) const {
    return LimitReached(fmt::format("smt: {} on {} ranks: {}", Name(), Ranks(), what));
  }

  // Returns the status that says why the search found neither a schedule nor a proof that there is none.
  Status WhyOpen(size_t questions) const {
    if (decider_.IsInterrupted()) return Limit("interrupted, nothing found");
    if (decider_.TimeIsUp()) return Limit("nothing found within " + request_.limits.deadline.ToString());
    if (!decider_.IsOver()) {
      if (divergent_) return Limit("only found with different roundings of a sum; hint: --allow-divergent");
      if (stopped_ && decider_.too_large() > 0)
        return Limit(fmt::format("the encoding has {} variables, too many to try", decider_.too_large()));
      if (questions != 1)
        return Limit(
            fmt::format("nothing found by {} short searches; hint: --chunks, --steps and --rounds "
                        "for one long one",
                        questions));
      if (!decider_.machine().complete)
        return Limit(
            "nothing found, and no proof: not searched are in-switch multicast and reduction, and more than "
            "a few ways between two GPUs");
    }
    return Limit(
        fmt::format("nothing found within {} solver units; hint: --time-limit=60s, or fewer --chunks",
                    decider_.work_limit()));
  }

  // Returns the request's easiest question: fewest chunks, and the most steps and rounds that may help.
  Question Widest() {
    const SynthesisLimits& limits = request_.limits;
    Question widest{.chunks = limits.chunks.value_or(1), .steps = 0, .rounds = 0};
    widest.steps = limits.steps.value_or(limits.rounds.value_or(decider_.LeastSteps() + Further(kFurther)));
    widest.rounds = limits.rounds
                        ? *limits.rounds
                        : std::min<int64_t>(decider_.MostRounds(widest.steps, widest.chunks), kMostLimit);
    return widest;
  }

  // Returns true if every schedule that the request allows is an answer to this question too, perhaps without
  // some of its chunks, or spread over more steps.
  bool IsHardest(const Question& question) const {
    const SynthesisLimits& limits = request_.limits;
    const bool chunks = question.chunks == limits.chunks.value_or(1);
    const bool steps =
        limits.steps ? question.steps == *limits.steps : limits.rounds && question.steps >= *limits.rounds;
    const bool rounds = limits.rounds
                            ? question.rounds == *limits.rounds
                            : question.rounds >= decider_.MostRounds(question.steps, question.chunks);
    return chunks && steps && rounds;
  }

  std::string Name() const { return request_.collective->name(); }
  int32_t Ranks() const { return request_.collective->num_members(); }

  // Returns the numbers of chunks per part to ask for. For an allreduce they are 1 and multiples of the
  // number of ranks, so that every rank can own equally many chunks.
  std::vector<int32_t> ChunkCounts() {
    if (request_.limits.chunks) return {*request_.limits.chunks};
    const CollectiveKind kind = request_.collective->kind();
    if (kind == CollectiveKind::kBarrier) return {1};
    const bool in_turn = kind == CollectiveKind::kAllreduce;
    std::vector<int32_t> counts;
    counts.push_back(1);
    // Leaves out numbers whose questions are too large for the solver. One chunk stays for a witness.
    for (int32_t c = in_turn ? 1 : 2; c <= smt::kFewChunks; ++c) {
      const int32_t chunks = in_turn ? c * Ranks() : c;
      if (decider_.SizeOf(chunks, decider_.LeastSteps()) <= Decider::kMostVariables) counts.push_back(chunks);
    }
    return counts;
  }

  double RoundPs(int32_t chunks) const {
    const Collective cut = request_.collective->WithChunks(chunks);
    const CollectiveSizes sizes(cut, request_.size_bytes);
    int64_t largest = 0;
    for (int32_t c = 0; c < cut.num_chunks(); ++c) largest = std::max(largest, sizes.ChunkBytes(ChunkId(c)));
    return static_cast<double>(largest) / static_cast<double>(decider_.machine().bytes_per_s_of_one) * 1e12;
  }

  // Returns the questions to ask, in order of promised time. Error: the reason if arithmetic refutes all
  // questions within the given limits.
  StatusOr<std::vector<Asked>> Questions() {
    const SynthesisLimits& limits = request_.limits;
    std::vector<Asked> asked;
    Status reason = OkStatus();
    const int32_t least_steps = decider_.LeastSteps();
    const std::vector<int32_t> chunk_counts = ChunkCounts();
    const int32_t first_chunks = chunk_counts[0];
    for (int32_t chunks : chunk_counts) {
      const double round_ps = RoundPs(chunks);
      const int32_t first_step = limits.steps.value_or(decider_.FirstSteps()),
                    last_step = limits.steps.value_or(least_steps + Further(kFurther));
      std::vector<int32_t> step_counts;
      for (int32_t steps = first_step; steps <= last_step; ++steps) step_counts.push_back(steps);
      // A schedule has at most as many steps as rounds, so this number of steps covers all larger ones.
      if (!limits.steps && limits.rounds && *limits.rounds > last_step) step_counts.push_back(*limits.rounds);
      for (int32_t steps : step_counts) {
        const int64_t least = decider_.LeastRounds(std::max(steps, least_steps), chunks);
        const int64_t first_round = limits.rounds ? *limits.rounds : least,
                      last_round = limits.rounds ? *limits.rounds : least + Further(kFurther);
        for (int64_t rounds = first_round; rounds <= last_round; ++rounds) {
          const Question question{chunks, steps, rounds};
          if (const std::optional<Refusal> why = decider_.Forbidden(question)) {
            if (reason.ok() || chunks == first_chunks) reason = ToStatus(question, *why);
            continue;
          }
          asked.push_back(
              {question, static_cast<double>(steps) * static_cast<double>(decider_.machine().alpha_ps) +
                             static_cast<double>(rounds) * round_ps});
        }
      }
    }
    if (asked.empty() && !reason.ok()) return reason;
    std::stable_sort(asked.begin(), asked.end(),
                     [](const Asked& a, const Asked& b) { return a.promise_ps < b.promise_ps; });
    if (decider_.form() == Form::kSums && asked.size() > kMostAsked) asked.resize(kMostAsked);
    return asked;
  }

  // Returns `most`, plus LeastSteps() for sums. A gather followed by a spread may take twice the steps
  // and rounds of the farthest need.
  int32_t Further(int32_t most) const {
    return most + (decider_.form() == Form::kSums ? decider_.LeastSteps() : 0);
  }

  Status ToStatus(const Question& question, const Refusal& refusal) const {
    std::string text = fmt::format("smt: no {} on {} ranks", Name(), Ranks());
    if (refusal.steps) {
      text += fmt::format(" in {} step{}: {}", question.steps, question.steps == 1 ? "" : "s", refusal.text);
    } else {
      text += fmt::format(" with {} chunks in {} rounds: {}", question.chunks, question.rounds, refusal.text);
    }
    if (refusal.steps || refusal.rounds) text += "; hint:";
    if (refusal.steps) text += fmt::format(" --steps={}", *refusal.steps);
    // In the fewest steps ranks mostly add in different orders, which --allow-divergent permits.
    if (refusal.steps && request_.collective->kind() == CollectiveKind::kAllreduce &&
        !request_.allow_divergent)
      text += " --allow-divergent";
    if (refusal.rounds) text += fmt::format(" --rounds={}", *refusal.rounds);
    return Infeasible(std::move(text));
  }

  Synthesis Finish(int32_t chunks, Synthesis made, std::string_view how, bool stopped_before) {
    made.engine = kName;
    if (!bound_)
      bound_ = LowerBound(*request_.topology, *request_.collective, request_.size_bytes, request_.model);
    made.simulation = Simulate(made.schedule, made.collective, *request_.topology, TimingOf(request_));
    made.exact = bound_->ok() && MeetsBound(made.simulation->time_ps, **bound_);
    const smt::StepsAndRounds took = smt::Take(made.schedule, *request_.topology, decider_.machine());
    made.note = fmt::format("{} steps, {} rounds, {} chunk{} a part, found by {}{}", took.steps, took.rounds,
                            chunks, chunks == 1 ? "" : "s", how,
                            stopped_before ? "; cheaper ones were not decided within the limit" : "");
    return made;
  }

  // Returns the fastest plan within the request's limits: the schedule that was made, or a plan of another
  // engine. Returns nullopt if there is no plan.
  std::optional<Synthesis> BestSoFar() {
    const SynthesisLimits& limits = request_.limits;
    std::optional<Synthesis> best = std::move(made_);
    const auto consider = [&](Synthesis made) {
      if (!best || made.simulation->time_ps < best->simulation->time_ps) best = std::move(made);
    };
    SynthesisRequest asked = request_;
    asked.limits.deadline = limits.deadline.ForTheRest();
    const bool is_open = !limits.chunks && !limits.steps && !limits.rounds;
    for (const Engine& engine : engines_) {
      if (!is_open || !engine.asks_others) continue;
      if (StatusOr<Synthesis> made = engine.Plan(asked); made.ok()) {
        const std::string by = made->engine;
        const int32_t chunks = made->collective.ChunksOf(PartId(0));
        consider(Finish(chunks, *std::move(made), by, true));
      }
    }
    for (int32_t chunks : ChunkCounts()) {
      if (best && asked.limits.deadline()) break;
      for (const smt::Witness& witness : decider_.WitnessesOf(chunks)) {
        if ((limits.steps && witness.took.steps > *limits.steps) ||
            (limits.rounds && witness.took.rounds > *limits.rounds))
          continue;
        consider(Finish(chunks, witness.made, witness.made.engine, true));
      }
    }
    return best;
  }

  // Returns the error for a question that was refuted. Spends the rest of the work on a hint: asks with more
  // rounds, with more steps, and with both, up to kFurther more, until a question is feasible.
  Status NothingFits(const Question& question) {
    const std::string conflict = decider_.Conflict(question);
    std::string hint;
    for (int32_t more = 1; more <= kFurther && hint.empty() && !decider_.IsOver(); ++more) {
      for (const Question& other :
           {Question{question.chunks, question.steps, question.rounds + more},
            Question{question.chunks, question.steps + more, question.rounds},
            Question{question.chunks, question.steps + more, question.rounds + more}}) {
        if (other.steps > other.rounds || !hint.empty()) continue;
        const StatusOr<Outcome> outcome = decider_.Ask(other, decider_.work_left() / 2);
        if (!outcome.ok()) return outcome.status();
        if (outcome->verdict != Verdict::kFeasible) continue;
        hint = "; hint:";
        if (other.steps != question.steps && request_.limits.steps)
          hint += fmt::format(" --steps={}", other.steps);
        if (other.rounds != question.rounds && request_.limits.rounds)
          hint += fmt::format(" --rounds={}", other.rounds);
      }
    }
    std::string limits = fmt::format("{} steps and {} rounds", question.steps, question.rounds);
    if (!request_.limits.rounds) limits = fmt::format("{} steps", question.steps);
    if (!request_.limits.steps) limits = fmt::format("{} rounds", question.rounds);
    return Infeasible(fmt::format("smt: no {} on {} ranks with {} chunks in {}{}{}", Name(), Ranks(),
                                  question.chunks, limits,
                                  conflict.empty() ? "" : ": in conflict are " + conflict, hint));
  }

  const SynthesisRequest& request_;
  Decider& decider_;
  const std::span<const Engine> engines_;
  std::optional<StatusOr<Bound>> bound_;  // computed on first use
  std::optional<Synthesis> made_;
  std::optional<Question> refuted_;  // the refuted question that proves the request infeasible
  // stopped_: some question stayed undecided. divergent_: some question stayed undecided because the sums
  // that were found have different roundings on different ranks.
  bool stopped_ = false, divergent_ = false;
};

bool EqualParts(const Collective& collective) {
  const std::vector<int64_t>& weights = collective.kind() == CollectiveKind::kCustom
                                            ? collective.spec().custom_weights
                                            : collective.spec().counts;
  int64_t common = 0;
  for (int64_t weight : weights) {
    if (weight != 0 && common != 0 && weight != common) return false;
    if (weight != 0) common = weight;
  }
  return true;
}

Status Serves(const SynthesisRequest& request) {
  const Collective& collective = *request.collective;
  const SynthesisLimits& limits = request.limits;
  if (request.topology->num_ranks() > smt::kMostRanks)
    return InvalidInput(fmt::format("smt: {} ranks; at most {} are served; hint: --engine=greedy",
                                    request.topology->num_ranks(), smt::kMostRanks));
  for (const auto& [flag, value] : {std::pair("chunks", limits.chunks), std::pair("steps", limits.steps),
                                    std::pair("rounds", limits.rounds)})
    if (value && (*value < 1 || *value > kMostLimit))
      return InvalidInput(fmt::format("smt: --{}={}; expected 1 to {}", flag, *value, kMostLimit));
  if (!EqualParts(collective))
    return InvalidInput(
        fmt::format("smt: {}: parts of different sizes; expected equal ones; hint: "
                    "--engine=greedy",
                    collective.name()));
  return OkStatus();
}

}  // namespace

Engine SmtEngine(EngineTable table) {
  return {.name = kName,
          .summary = "k-synchronous schedules by Z3 for small machines; exact where the time meets the bound",
          .exact_on = ExactOn::kModel,
          .searches_long = true,
          .proves_fronts = true,
          .serves = Serves,
          .make = [table](const SynthesisRequest& request) -> StatusOr<Synthesis> {
            SynthesisRequest asked = request;
            asked.limits.deadline = request.limits.deadline.Leaving(kLeftForOthers, kMostLeftSeconds);
            XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<Decider> decider, Decider::Create(asked, table()));
            return RequestSearch(request, *decider, table()).Run();
          }};
}

}  // namespace xccl
