// Questions (steps, rounds, chunks) that the limits leave open are asked in order of the time that they
// promise, steps × alpha + rounds × the time of one, so that the first that has an answer is the best of
// them. What distance or bandwidth alone forbid is not asked. Sums are solved on the reversed topology and
// run backwards; an allreduce is two questions, each with half of the steps and rounds.
#include "synth/smt.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/units.h"
#include "ir/bound.h"
#include "ir/simulate.h"
#include "ir/sizes.h"
#include "synth/compose.h"
#include "synth/greedy_phases.h"
#include "synth/greedy_search.h"
#include "synth/reverse.h"
#include "synth/smt_instance.h"

namespace xccl {
namespace {

using greedy::CopyProblem;
using greedy::Phases;
using smt::Answer;
using smt::Instance;
using smt::Machine;
using smt::Verdict;

constexpr int32_t kMostRanks = 64;
constexpr int64_t kMostVariables = 400'000;
constexpr int64_t kDefaultWork = 8'000'000;  // solver resource units, in all
constexpr int32_t kFurtherSteps = 4;         // beyond the distance, where steps are not given
constexpr int32_t kFurtherRounds = 2;        // beyond the bandwidth's need, where rounds are not given
constexpr int32_t kMostChunks = 8;           // a part, where chunks are not given

struct Question {
  int32_t steps = 0, rounds = 0, chunks = 0;
  double promise_ps = 0;
};

class Attempt {
 public:
  explicit Attempt(const SynthesisRequest& request)
      : request_(request),
        topology_(*request.topology),
        reversed_(ReverseTopology(topology_)),
        forwards_(smt::MakeMachine(topology_)),
        backwards_(smt::MakeMachine(reversed_)),
        left_(request.limits.work_units > 0 ? request.limits.work_units : kDefaultWork),
        began_(std::chrono::steady_clock::now()) {}

  StatusOr<Synthesis> Run() {
    XCCL_ASSIGN_OR_RETURN(const std::vector<Question> questions, Questions());
    const SynthesisLimits& limits = request_.limits;
    bool stopped = false;
    for (const Question& question : questions) {
      // Where several are to be asked, none may use up what the others need.
      const int64_t share = questions.size() == 1 ? left_ : std::max<int64_t>(left_ / 8, 1);
      XCCL_ASSIGN_OR_RETURN(Verdict verdict, Ask(question, share));
      if (verdict == Verdict::kFeasible) return Finish(question, stopped);
      stopped |= verdict == Verdict::kStopped;
      if (left_ <= 0 || TimeIsUp()) return Stopped();
    }
    if (stopped) return Stopped();
    if (too_large_ > 0)
      return LimitReached(
          fmt::format("smt: {} on {} ranks: the encoding has {} variables; at most {} are tried", Name(),
                      Ranks(), too_large_, kMostVariables));
    return NothingFits(questions.empty() ? Question{limits.steps.value_or(0), limits.rounds.value_or(0),
                                                    limits.chunks.value_or(1)}
                                         : questions.back());
  }

 private:
  std::string Name() const { return request_.collective->name(); }
  int32_t Ranks() const { return request_.collective->num_members(); }
  bool TimeIsUp() const { return request_.limits.time_limit_s && TimeLeft() <= 0; }
  double TimeLeft() const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
    return *request_.limits.time_limit_s - passed.count();
  }

  StatusOr<Phases> PhasesOf(int32_t chunks) const {
    return MakePhases(topology_, reversed_, request_.collective->WithChunks(chunks), request_.size_bytes,
                      request_.model, greedy::SumAt::kEach);
  }

  // What one phase gets of a total, so that both add up to it.
  static int32_t Share(int32_t total, const Phases& phases, bool gather) {
    if (!phases.has_gather || !phases.has_spread) return total;
    return gather ? total / 2 : total - total / 2;
  }

  // Chunk counts worth asking for: one owner takes turns with the others where every rank needs the sum.
  std::vector<int32_t> ChunkCounts() const {
    if (request_.limits.chunks) return {*request_.limits.chunks};
    const Collective& collective = *request_.collective;
    const bool in_turn = collective.kind() == CollectiveKind::kAllreduce;
    std::vector<int32_t> counts;
    if (in_turn) counts.push_back(1);
    if (collective.kind() == CollectiveKind::kBarrier) return {1};
    for (int32_t c = 1; c <= kMostChunks; ++c) counts.push_back(in_turn ? c * Ranks() : c);
    return counts;
  }

  // Least steps and rounds of both phases by distance and bandwidth.
  void Least(const Phases& phases, int32_t& steps, int32_t& rounds) const {
    steps = rounds = 0;
    const auto add = [&](const Machine& machine, const CopyProblem& problem) {
      const int32_t least = smt::FarthestNeed(machine, problem).steps;
      steps += least;
      const int64_t full =
          std::max(smt::FullestRank(machine, problem).rounds, smt::TotalSends(machine, problem).rounds());
      rounds += std::max(least, static_cast<int32_t>(std::min<int64_t>(full, int64_t{1} << 20)));
    };
    if (phases.has_gather) add(backwards_, phases.gather);
    if (phases.has_spread) add(forwards_, phases.spread);
  }

  // Error: why no question within the given limits can have an answer.
  StatusOr<std::vector<Question>> Questions() {
    std::vector<Question> questions;
    const SynthesisLimits& limits = request_.limits;
    Status reason = OkStatus();
    for (int32_t chunks : ChunkCounts()) {
      XCCL_ASSIGN_OR_RETURN(const Phases phases, PhasesOf(chunks));
      if (!phases.has_gather && !phases.has_spread) return std::vector<Question>{{0, 0, chunks, 0}};
      int32_t least_steps = 0, least_rounds = 0;
      Least(phases, least_steps, least_rounds);
      const int64_t largest = *std::max_element(phases.spread.bytes.begin(), phases.spread.bytes.end());
      const double round_ps =
          static_cast<double>(largest) / static_cast<double>(forwards_.bytes_per_s_of_one) * 1e12;
      const int32_t first_step = limits.steps.value_or(least_steps),
                    last_step = limits.steps.value_or(least_steps + kFurtherSteps);
      for (int32_t steps = first_step; steps <= last_step; ++steps) {
        const int32_t first_round = limits.rounds.value_or(std::max(steps, least_rounds)),
                      last_round = limits.rounds.value_or(std::max(steps, least_rounds) + kFurtherRounds);
        for (int32_t rounds = first_round; rounds <= last_round; ++rounds) {
          if (Status why = Forbidden(phases, steps, rounds, chunks); !why.ok()) {
            if (reason.ok()) reason = why;
            continue;
          }
          questions.push_back({steps, rounds, chunks,
                               static_cast<double>(steps) * static_cast<double>(forwards_.alpha_ps) +
                                   static_cast<double>(rounds) * round_ps});
        }
      }
    }
    if (questions.empty() && !reason.ok()) return reason;
    std::stable_sort(questions.begin(), questions.end(),
                     [](const Question& a, const Question& b) { return a.promise_ps < b.promise_ps; });
    return questions;
  }

  // OK, or the distance or the bandwidth that forbids it.
  Status Forbidden(const Phases& phases, int32_t steps, int32_t rounds, int32_t chunks) const {
    int32_t least_steps = 0, least_rounds = 0;
    Least(phases, least_steps, least_rounds);
    for (const bool gather : {true, false}) {
      if (gather ? !phases.has_gather : !phases.has_spread) continue;
      const Machine& machine = gather ? backwards_ : forwards_;
      const CopyProblem& problem = gather ? phases.gather : phases.spread;
      const smt::Farthest far = smt::FarthestNeed(machine, problem);
      if (far.steps > Share(steps, phases, gather))
        return Infeasible(
            fmt::format("smt: no {} on {} ranks in {} steps: rank {} is {} links from rank {}; hint: "
                        "--steps={}",
                        Name(), Ranks(), steps, gather ? far.holder : far.needer, far.steps,
                        gather ? far.needer : far.holder,
                        phases.has_gather && phases.has_spread ? 2 * far.steps : far.steps));
      if (rounds < steps) continue;
      const smt::Fullest full = smt::FullestRank(machine, problem);
      if (full.rounds > Share(rounds, phases, gather))
        return Infeasible(
            fmt::format("smt: no {} on {} ranks with {} chunks in {} rounds: rank {} must {} {} chunks, {} a "
                        "round; hint: "
                        "--rounds={}",
                        Name(), Ranks(), chunks, rounds, full.rank,
                        full.incoming != gather ? "receive" : "send", full.chunks, full.per_round,
                        phases.has_gather && phases.has_spread ? 2 * full.rounds : full.rounds));
      const smt::Total total = smt::TotalSends(machine, problem);
      if (total.rounds() > Share(rounds, phases, gather))
        return Infeasible(
            fmt::format("smt: no {} on {} ranks with {} chunks in {} rounds: {} sends are needed, {} a round "
                        "fit; hint: --rounds={}",
                        Name(), Ranks(), chunks, rounds, total.sends, total.per_round,
                        phases.has_gather && phases.has_spread ? 2 * total.rounds() : total.rounds()));
    }
    if (rounds < steps)
      return Infeasible(
          fmt::format("smt: no {} on {} ranks in {} steps and {} rounds: a step has at least one "
                      "round; hint: --rounds={}",
                      Name(), Ranks(), steps, rounds, std::max(steps, least_rounds)));
    return OkStatus();
  }

  StatusOr<Verdict> Ask(const Question& question, int64_t work) {
    XCCL_ASSIGN_OR_RETURN(const Phases phases, PhasesOf(question.chunks));
    gather_.clear();
    spread_.clear();
    for (const bool gather : {true, false}) {
      if (gather ? !phases.has_gather : !phases.has_spread) continue;
      const Instance instance{.machine = gather ? &backwards_ : &forwards_,
                              .problem = gather ? &phases.gather : &phases.spread,
                              .steps = Share(question.steps, phases, gather),
                              .rounds = Share(question.rounds, phases, gather)};
      if (const int64_t size = smt::EncodingSize(instance); size > kMostVariables) {
        too_large_ = too_large_ == 0 ? size : std::min(too_large_, size);
        return Verdict::kInfeasible;
      }
      smt::SolveLimits limits{.work = work, .time_limit_s = {}};
      if (request_.limits.time_limit_s) limits.time_limit_s = std::max(0.001, TimeLeft());
      XCCL_ASSIGN_OR_RETURN(Answer answer, smt::Solve(instance, limits));
      left_ -= answer.work;
      if (answer.verdict != Verdict::kFeasible) return answer.verdict;
      (gather ? gather_ : spread_) = std::move(answer.sends);
    }
    return Verdict::kFeasible;
  }

  // Copies of the sends that somebody needs; parallel lanes share a step's chunks by their bandwidth.
  static Schedule CopiesOf(const Topology& topology, const Machine& machine, const CopyProblem& problem,
                           const std::vector<smt::Send>& sends) {
    greedy::BitTable needed(machine.ranks, problem.chunks);
    for (int32_t c = 0; c < problem.chunks; ++c)
      for (int32_t r : problem.needers[c]) needed.Set(r, c);
    std::vector<char> keep(sends.size(), 0);
    for (size_t i = sends.size(); i-- > 0;) {
      const smt::Edge& edge = machine.edges[sends[i].edge];
      if (!needed.Get(edge.to, sends[i].chunk)) continue;
      keep[i] = 1;
      needed.Set(edge.from, sends[i].chunk);
    }
    Schedule schedule;
    schedule.num_chunks = problem.chunks;
    std::vector<std::vector<double>> load(machine.edges.size());
    for (size_t i = 0; i < sends.size(); ++i) {
      if (!keep[i]) continue;
      const smt::Edge& edge = machine.edges[sends[i].edge];
      std::vector<double>& lanes = load[sends[i].edge];
      lanes.resize(edge.lanes.size(), 0);
      size_t lane = 0;
      const auto with = [&](size_t k) {
        return lanes[k] + 1.0 / static_cast<double>(topology.link(edge.lanes[k][0]).bandwidth_bytes_per_s);
      };
      for (size_t k = 1; k < lanes.size(); ++k)
        if (with(k) < with(lane)) lane = k;
      lanes[lane] = with(lane);
      schedule.Add(ChunkId(sends[i].chunk), 1, Rank(edge.from), Rank(edge.to), edge.lanes[lane],
                   TransferOp::kCopy, sends[i].step);
    }
    return schedule;
  }

  StatusOr<Synthesis> Finish(const Question& question, bool stopped_before) {
    XCCL_ASSIGN_OR_RETURN(const Phases phases, PhasesOf(question.chunks));
    Synthesis made{.collective = request_.collective->WithChunks(question.chunks),
                   .schedule = {},
                   .exact = false,
                   .engine = "smt",
                   .note = {}};
    made.schedule.num_chunks = made.collective.num_chunks();
    if (phases.has_gather) {
      made.schedule = RunBackwards(phases.gather, CopiesOf(reversed_, backwards_, phases.gather, gather_));
      Normalize(made.schedule);
    }
    if (phases.has_spread) {
      Schedule spread = CopiesOf(topology_, forwards_, phases.spread, spread_);
      Normalize(spread);
      made.schedule = phases.has_gather ? Compose(made.schedule, spread) : std::move(spread);
    }
    const StatusOr<Bound> bound =
        LowerBound(topology_, *request_.collective, request_.size_bytes, request_.model);
    const Simulation simulation = Simulate(made.schedule, made.collective, topology_,
                                           {.size_bytes = request_.size_bytes, .model = request_.model});
    made.exact = bound.ok() && MeetsBound(simulation.time_ps, *bound);
    made.note = fmt::format("{} steps, {} rounds, {} chunks a part{}", question.steps, question.rounds,
                            question.chunks,
                            stopped_before ? "; cheaper ones were not decided within the limit" : "");
    return made;
  }

  Status Stopped() const {
    if (TimeIsUp())
      return LimitReached(fmt::format("smt: {} on {} ranks: nothing found within --time-limit={}s", Name(),
                                      Ranks(), *request_.limits.time_limit_s));
    return LimitReached(fmt::format(
        "smt: {} on {} ranks: nothing found within {} solver units; hint: "
        "--time-limit=60s, or fewer --chunks",
        Name(), Ranks(), request_.limits.work_units > 0 ? request_.limits.work_units : kDefaultWork));
  }

  // The solver proved it. What would work is tried with what is left of the work: more steps, then more
  // rounds.
  Status NothingFits(const Question& question) {
    std::string hint;
    for (int32_t more = 1; more <= kFurtherSteps && hint.empty() && left_ > 0 && !TimeIsUp(); ++more) {
      const Question steps{question.steps + more, std::max(question.rounds, question.steps + more),
                           question.chunks, 0};
      const Question rounds{question.steps, question.rounds + more, question.chunks, 0};
      for (const Question& other : {steps, rounds}) {
        const StatusOr<Verdict> verdict = Ask(other, left_);
        if (!verdict.ok()) return verdict.status();
        if (*verdict != Verdict::kFeasible || !hint.empty()) continue;
        hint = "; hint:";
        if (other.steps != question.steps) hint += fmt::format(" --steps={}", other.steps);
        if (other.rounds != question.rounds) hint += fmt::format(" --rounds={}", other.rounds);
      }
    }
    return Infeasible(fmt::format("smt: no {} on {} ranks with {} chunks in {} steps and {} rounds{}", Name(),
                                  Ranks(), question.chunks, question.steps, question.rounds, hint));
  }

  const SynthesisRequest& request_;
  const Topology& topology_;
  const Topology reversed_;
  const Machine forwards_, backwards_;
  int64_t left_;
  const std::chrono::steady_clock::time_point began_;
  int64_t too_large_ = 0;
  std::vector<smt::Send> gather_, spread_;  // of the last question that had an answer
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

class Smt : public Synthesizer {
 public:
  std::string_view name() const override { return "smt"; }
  std::string_view summary() const override {
    return "k-synchronous schedules by Z3 for small machines; exact where the time meets the bound";
  }

  Status Serves(const SynthesisRequest& request) const override {
    const Collective& collective = *request.collective;
    const SynthesisLimits& limits = request.limits;
    if (request.topology->num_ranks() > kMostRanks)
      return InvalidInput(fmt::format("smt: {} ranks; at most {} are served; hint: --engine=greedy",
                                      request.topology->num_ranks(), kMostRanks));
    for (const auto& [flag, value] : {std::pair("chunks", limits.chunks), std::pair("steps", limits.steps),
                                      std::pair("rounds", limits.rounds)})
      if (value && (*value < 1 || *value > 1000))
        return InvalidInput(fmt::format("smt: --{}={}; expected 1 to 1000", flag, *value));
    if (!EqualParts(collective))
      return InvalidInput(
          fmt::format("smt: {}: parts of different sizes; expected equal ones; hint: "
                      "--engine=greedy",
                      collective.name()));
    if (collective.kind() != CollectiveKind::kCustom) return OkStatus();
    return MakePhases(*request.topology, *request.topology, collective, request.size_bytes, request.model,
                      greedy::SumAt::kEach)
        .status();
  }

  StatusOr<Synthesis> Synthesize(const SynthesisRequest& request) const override {
    XCCL_RETURN_IF_ERROR(Serves(request));
    return Attempt(request).Run();
  }
};

}  // namespace

std::unique_ptr<Synthesizer> MakeSmt() { return std::make_unique<Smt>(); }

}  // namespace xccl
