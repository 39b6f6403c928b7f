// Searches for the best plan in one loop over turns (synth/portfolio/turns.h).
// 1. Every engine that serves the request and does not search long offers its own plan as a turn (Ask).
// 2. The first turn is the cheapest, so that a plan is there at once, or the best if the budget is for one
//    plan (FirstTurn). Every later turn promises the largest gain for its work (NextTurn), but ComesFirst and
//    LastChanceBefore name turns that go before.
// 3. Take makes the plan. Consider simulates it, which also finds wrong plans.
// 4. Keep puts the plan among the best plans and queues its variations as turns (Add).
// 5. The loop ends if no turn is worth its work, or if the work or the time is used up.
// 6. Best returns the preferred plan of those that are kept.
// Turns that need too much memory or time are refused before they are made (Fits). If the first plan costs
// more than kOverdraft × the limit of work, it is made but not simulated.
#include "synth/portfolio/portfolio.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/units.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "synth/common/cost_model.h"
#include "synth/common/rank_graph.h"
#include "synth/common/serves.h"
#include "synth/common/why_chosen.h"
#include "synth/portfolio/preference.h"
#include "synth/portfolio/turns.h"

namespace xccl {
namespace {

constexpr double kQuickSeconds = 0.1;  // a first plan that takes less is made even if the time is over
// The limits of the search. Work is in moves (synth/common/cost_model.h).
constexpr int64_t kBudget = 1'200'000;  // of all turns: about two seconds; a search gets at most half
// A turn may cost up to this multiple of the work left: on a large machine one plan may cost more than
// kBudget, and is still to be simulated.
constexpr int64_t kOverdraft = 4;
// Least gain of a turn for each move that it costs, as a fraction of the best plan's time: 1 % for 0.3 s.
constexpr double kGainPerMove = 5e-8;
// A turn of another kind counts as a gain of at least this fraction of the best time. Its plan may be faster
// than promised, or have a faster program or fewer messages. The second value is for short messages, and for
// plans that are chosen by their programs.
constexpr double kChance = 5e-5, kChanceOfFewer = 5e-4;
// A plan slower than this multiple of the best time is not kept. A turn that promises a slower plan does not
// count as a gain of kChance. Neither holds for an engine's own plan if programs decide.
constexpr double kNoChance = 4;
// If more plans than kMostKept are kept, LeastMissed is dropped. It stays if it MayHaveTheProgram or has at
// most kTinyPlan transfers: such programs cost next to nothing. A slower schedule may have the faster
// program, because passes overlap and whole chunks do not.
constexpr size_t kMostKept = 8;
constexpr int64_t kTinyPlan = 200;
constexpr double kLeftForFirst = 0.5;  // share of the time limit; if less is left, no further engine is asked
// With many members, a plan within this multiple of the bound ends the search if its engine had estimated a
// time within it.
constexpr double kEnough = 1.1;

class Portfolio {
 public:
  Portfolio(const SynthesisRequest& request, std::span<const Engine> engines)
      : request_(request),
        engines_(engines),
        pairs_(int64_t{request.collective->num_members()} * request.collective->num_members()),
        began_with_s_(request.limits.deadline.SecondsLeft()) {}

  StatusOr<Synthesis> Run() {
    XCCL_ASSIGN_OR_RETURN(bound_, BoundOf(request_));
    request_.bound = &bound_;
    left_ = request_.limits.work_units > 0 ? request_.limits.work_units : kBudget;
    // With many members, engines that look at no pairs of ranks are asked first, since a table of all pairs
    // takes seconds to make. If the table is too large, the others are asked one by one, until some engine
    // has an offer.
    for (const Engine& engine : engines_)
      if (HasManyMembers() && !engine.asks_pairs) AskIfQuick(engine);
    if (HasManyMembers() && Settles()) return Best();
    const bool may_ask_pairs = pairs_ <= (HasEstimate() ? kMostTransfers : kMostCells);
    if (may_ask_pairs) request_.graphs = std::make_shared<RankGraphs>(*request_.topology);
    for (const Engine& engine : engines_)
      if (may_ask_pairs ? !HasManyMembers() || engine.asks_pairs : queue_.empty() && engine.asks_pairs)
        AskIfQuick(engine);
    while (!(HasPlan() && request_.limits.deadline())) {
      std::optional<Turn> turn = NextTurn();
      if (!turn) break;
      Take(*turn);
    }
    if (kept_.empty() && unsimulated_) {
      unsimulated_->note = fmt::format("{}; the limit of work or time was reached", unsimulated_->engine);
      unsimulated_->faults = std::move(faults_);
      return *std::move(unsimulated_);
    }
    return kept_.empty() ? StatusOr<Synthesis>(Refusal()) : Best();
  }

 private:
  // Returns true if a plan with one transfer for each pair of members would have many transfers.
  bool HasManyMembers() const { return pairs_ > kManyTransfers; }

  void AskIfQuick(const Engine& engine) {
    if (!engine.searches_long && !engine.asks_others) Ask(engine);
  }

  // Returns true if the turn's time is an estimate by an engine that looks at no pairs. The bound is no
  // estimate: searches promise it.
  bool IsEstimate(const Turn& turn) const {
    return !turn.engine->asks_pairs && turn.promised_ps > static_cast<double>(bound_.bound_ps);
  }
  bool HasEstimate() const {
    return std::ranges::any_of(queue_, [&](const Turn& turn) { return IsEstimate(turn); });
  }

  // Takes the turn with the least estimate, if it is near the bound, no plan is there and programs do not
  // decide. Returns true if the turn's plan is near the bound, too.
  bool Settles() {
    const double enough_ps = kEnough * static_cast<double>(bound_.bound_ps);
    const auto least = std::ranges::min_element(queue_, {}, [&](const Turn& turn) {
      return IsEstimate(turn) ? turn.promised_ps : std::numeric_limits<double>::infinity();
    });
    if (request_.programs_decide || HasPlan() || least == queue_.end() || !IsEstimate(*least) ||
        least->promised_ps > enough_ps)
      return false;
    const Turn turn = std::move(*least);
    queue_.erase(least);
    Take(turn);
    return !kept_.empty() && best_ps_ <= enough_ps;
  }

  void Ask(const Engine& engine) {
    if (request_.IsPassedOver(engine.name) || in_haste_ || !engine.MayServe(request_.collective->kind()))
      return;
    StatusOr<Turn> turn = TurnOf(engine, request_);
    if (turn.ok())
      queue_.push_back(*std::move(turn));
    else
      Refuse(engine, turn.status());
    // If half of the time is over and there is a turn, no engine is asked. Without a plan, one is made now.
    if (queue_.empty() || request_.limits.deadline.SecondsLeft() >= kLeftForFirst * began_with_s_) return;
    in_haste_ = true;
    if (HasPlan()) return;
    if (std::optional<Turn> first = NextTurn()) Take(*std::move(first));
  }

  // Returns the fraction of the best time that the turn promises to gain; 1 if there is no plan. Gains within
  // kNear count as 0. A turn of another kind gains at least chance_ (see kChance and kNoChance).
  double GainOf(const Turn& turn) const {
    if (!HasPlan()) return 1;
    const double promised_ps = std::max(turn.promised_ps, static_cast<double>(bound_.bound_ps));
    const bool has_chance =
        turn.is_of_another_kind && (turn.promised_ps <= kNoChance * best_ps_ || MayHaveTheProgram(turn));
    const double gain = kNear * promised_ps < best_ps_ ? 1 - promised_ps / best_ps_ : 0;
    return std::max(gain, has_chance ? chance_ : 0);
  }

  // Returns the work that a turn will use. A search gets at most half of the rest, and no more than its gain
  // is worth, but at least turn.work.
  int64_t CostOf(const Turn& turn) const {
    if (!turn.fills_budget) return turn.work;
    return std::max(turn.work, std::min(left_ / 2, static_cast<int64_t>(GainOf(turn) / kGainPerMove)));
  }

  // Returns kLimit if the turn needs more memory than the process may take. Without a plan, also returns
  // kLimit if the turn takes more than kQuickSeconds and more than twice the time that is left.
  Status Fits(const Turn& turn, const std::optional<MemoryLeft>& memory) const {
    const auto work = static_cast<double>(turn.work);
    XCCL_RETURN_IF_ERROR(CheckMemory(turn.engine->name,
                                     fmt::format("a plan of {} moves of a chunk", turn.work),
                                     work * kBytesPerMove + static_cast<double>(turn.bytes), memory));
    const double seconds = work * kSecondsPerMove;
    if (HasPlan() || seconds <= std::max(kQuickSeconds, 2 * request_.limits.deadline.SecondsLeft()))
      return OkStatus();
    return LimitReached(
        fmt::format("{}: a plan of {} moves of a chunk takes about {:.0f} s; expected at most {}; "
                    "hint: --time-limit={:.0f}s",
                    turn.engine->name, turn.work, std::ceil(seconds), request_.limits.deadline.ToString(),
                    std::ceil(2 * seconds)));
  }

  // Drops turns that do not fit. Keeps the refusal of the cheapest of them, which names the least that is
  // needed.
  void DropWhatCannotFit() {
    const std::optional<MemoryLeft> memory = LeftOfMemory();
    int64_t least = std::numeric_limits<int64_t>::max();
    std::erase_if(queue_, [&](const Turn& turn) {
      Status fits = Fits(turn, memory);
      if (fits.ok()) return false;
      if (turn.work <= least) too_much_ = std::move(fits);
      least = std::min(least, turn.work);
      return true;
    });
  }

  // Returns true if the turn comes before variations and searches, whatever they promise. It is then an
  // engine's own plan, and programs decide or, with many members, its estimate is below the best time. The
  // budget is then a few plans, and a variation only hopes to gain all that its plan is above the bound.
  bool ComesFirst(const Turn& turn) const {
    if (turn.variation != kOwn || turn.fills_budget) return false;
    return request_.programs_decide || (HasManyMembers() && IsEstimate(turn) && turn.promised_ps < best_ps_);
  }

  // Returns the cheapest turn if the search is in haste, or if enough work is left after it for another like
  // it. Otherwise the budget is for one plan: of the turns that fit, returns the one that promises the least
  // time. Times near the bound count as equal; the cheapest is then taken.
  std::vector<Turn>::iterator FirstTurn() {
    const auto cost = [&](const Turn& turn) { return CostOf(turn); };
    const auto cheapest = std::ranges::min_element(queue_, {}, cost);
    if (in_haste_ || CostOf(*cheapest) <= kOverdraft * (left_ - CostOf(*cheapest))) return cheapest;
    const int64_t most = std::max(left_, CostOf(*cheapest));
    return std::ranges::min_element(queue_, {}, [&](const Turn& turn) {
      const double promised_ps = std::max(turn.promised_ps, kNear * static_cast<double>(bound_.bound_ps));
      return std::tuple(CostOf(turn) > most, promised_ps, CostOf(turn));
    });
  }

  // Returns the cheapest of the engines' own plans that gain at least what the variation gains and that would
  // cost too much after it. Returns the variation if there is none.
  std::vector<Turn>::iterator LastChanceBefore(std::vector<Turn>::iterator variation) {
    const int64_t left = std::max<int64_t>(0, left_ - CostOf(*variation));
    auto first = variation;
    for (auto turn = queue_.begin(); turn != queue_.end(); ++turn)
      if (turn->variation == kOwn && turn->work > kOverdraft * left && GainOf(*turn) >= GainOf(*variation) &&
          (first == variation || turn->work < first->work))
        first = turn;
    return first;
  }

  // Removes a turn from the queue and returns it: FirstTurn if there is no plan, otherwise the turn with the
  // largest gain for its work (but see ComesFirst and LastChanceBefore). Drops turns that do not fit the
  // limits or, if there is a plan, are not worth their work. Returns nullopt if no turn is left.
  std::optional<Turn> NextTurn() {
    DropWhatCannotFit();
    std::erase_if(queue_, [&](const Turn& turn) {
      const bool is_worth_it =
          MayHaveTheProgram(turn) || GainOf(turn) >= kGainPerMove * static_cast<double>(turn.work);
      return HasPlan() &&
             (!is_worth_it || turn.work > kOverdraft * left_ ||
              kSecondsPerMove * static_cast<double>(turn.work) > request_.limits.deadline.SecondsLeft());
    });
    if (queue_.empty()) return std::nullopt;
    const auto most_gain = [&](const Turn& turn) {
      const double gain = GainOf(turn) / static_cast<double>(std::max<int64_t>(1, CostOf(turn)));
      return std::pair(ComesFirst(turn), gain);
    };
    auto next = HasPlan() ? std::ranges::max_element(queue_, {}, most_gain) : FirstTurn();
    if (next->variation != kOwn) next = LastChanceBefore(next);
    Turn turn = std::move(*next);
    queue_.erase(next);
    return turn;
  }

  // Names the engine whose turn it is, and the best plan so far.
  void Say(const Turn& turn) const {
    if (!request_.progress) return;
    std::string best;
    if (!kept_.empty())
      best = fmt::format("; best so far {} by {}", FormatDurationShort(std::llround(best_ps_)),
                         kept_.front().turn.engine->name);
    request_.progress(fmt::format("{}{}", turn.engine->name, best));
  }

  void Take(const Turn& turn) {
    Say(turn);
    const bool simulate = HasPlan() || turn.work <= kOverdraft * left_;
    const int64_t cost = CostOf(turn);
    StatusOr<Synthesis> made = turn.make(cost);
    left_ = std::max<int64_t>(0, left_ - cost);
    if (made.ok())
      Consider(turn, *std::move(made), simulate);
    else if (turn.variation == kOwn)
      Refuse(*turn.engine, made.status());
  }

  // Simulates the plan if `simulate`, and gives it to Keep unless it is unsound, divergent or late. Does
  // likewise with each of the plan's `others`.
  void Consider(const Turn& turn, Synthesis made, bool simulate) {
    for (std::string& fault : std::exchange(made.faults, {})) faults_.push_back(std::move(fault));
    for (Synthesis& other : std::exchange(made.others, {})) Consider(turn, std::move(other), simulate);
    if (simulate && !made.simulation)
      made.simulation = Simulate(made.schedule, made.collective, *request_.topology, TimingOf(request_));
    if (Status sound = CheckSound(turn.engine->name, made); !sound.ok())
      return Refuse(*turn.engine, std::move(sound));
    if (!request_.allow_divergent && !IsBitwiseSame(made.schedule, made.collective, *request_.topology))
      return Refuse(*turn.engine,
                    LimitReached(fmt::format("{}: ranks get different roundings of one sum; hint: "
                                             "--allow-divergent",
                                             made.engine)));
    if (!simulate) {
      unsimulated_ = std::move(made);
      return;
    }
    if (made.simulation->stopped && HasPlan()) return Refuse(*turn.engine, TooLate(made.engine));
    if (made.simulation->stopped) {  // the plan is kept without its simulation
      made.simulation.reset();
      unsimulated_ = std::move(made);
      return;
    }
    PlanCosts costs = CostsOf(made, request_);
    Keep({turn, std::move(made), costs});
  }

  // Adds a variation to the queue. An engine may bring several plans in one turn, whose variations ask it for
  // one new plan: one turn is added, with the least promise of all.
  void Add(Turn turn) {
    const auto asked = [](const Turn& of) { return std::tuple(of.engine, of.variation, of.asked_chunks); };
    if (!turn.asked_chunks || asked_.insert(asked(turn)).second) return queue_.push_back(std::move(turn));
    for (Turn& queued : queue_) {
      if (asked(queued) != asked(turn)) continue;
      queued.promised_ps = std::min(queued.promised_ps, turn.promised_ps);
      queued.from_ps = std::min(queued.from_ps, turn.from_ps);
    }
  }

  void Keep(Made made) {
    if (made.Ps() < best_ps_) {
      best_ps_ = made.Ps();
      chance_ = request_.programs_decide || HasShortMessages(made.costs.link_use) ? kChanceOfFewer : kChance;
    }
    made.turn.make = nullptr;  // frees the engine state that the function may hold
    RememberFastest(made);
    const auto is_too_slow = [&](const Made& plan) {
      return plan.Ps() > kNoChance * best_ps_ && !MayHaveTheProgram(plan.turn);
    };
    if (is_too_slow(made)) return;
    if (made.Ps() <= kNoChance * best_ps_ && !wrong_.contains(made.turn.engine))
      for (Turn& turn : VariationsOf(made, request_, bound_, best_ps_)) Add(std::move(turn));
    kept_.insert(std::ranges::upper_bound(kept_, made.Ps(), {}, &Made::Ps), std::move(made));
    std::erase_if(kept_, is_too_slow);
    if (kept_.size() <= kMostKept) return;
    const auto least_missed = LeastMissed();
    if (least_missed->synthesis.schedule.size() > kTinyPlan && !MayHaveTheProgram(least_missed->turn))
      kept_.erase(least_missed);
  }

  // Returns true if programs decide and the turn is an engine's own: its program is then made whatever time
  // its schedule takes on ideal links.
  bool MayHaveTheProgram(const Turn& turn) const {
    return request_.programs_decide && turn.variation == kOwn;
  }

  // Returns the slowest plan whose engine has a faster plan of no more transfers, or else the slowest plan of
  // all. Plans of many engines then stay, and a plan of few transfers stays beside a faster plan of many.
  std::vector<Made>::iterator LeastMissed() {
    for (auto made = std::prev(kept_.end()); made != kept_.begin(); --made)
      if (std::any_of(kept_.begin(), made, [&](const Made& faster) {
            return faster.turn.engine == made->turn.engine &&
                   faster.synthesis.schedule.size() <= made->synthesis.schedule.size();
          }))
        return made;
    return std::prev(kept_.end());
  }

  // Records the plan if it is the fastest of its engine.
  void RememberFastest(const Made& made) {
    Contender plan{made.synthesis.engine, made.synthesis.simulation->time_ps, made.costs.link_use.messages};
    const auto same = std::ranges::find(fastest_, plan.engine, &Contender::engine);
    if (same == fastest_.end())
      fastest_.push_back(std::move(plan));
    else if (plan.time_ps < same->time_ps)
      *same = std::move(plan);
  }

  // Returns the preferred plan of those that are kept, with the other plans in `others`.
  Synthesis Best() {
    std::vector<PlanCosts> costs;
    for (Made& made : kept_) {
      costs.push_back(made.costs);
      made.synthesis.exact |= made.synthesis.schedule.size() == 0 ||
                              (made.Ps() > 0 && MeetsBound(made.synthesis.simulation->time_ps, bound_));
    }
    const size_t preferred = Preferred(costs);
    Synthesis best = std::move(kept_[preferred].synthesis);
    for (size_t i = 0; i < kept_.size(); ++i)
      if (i != preferred) best.others.push_back(std::move(kept_[i].synthesis));
    const Contender chosen{best.engine, best.simulation->time_ps, costs[preferred].link_use.messages};
    best.note = best.schedule.size() == 0 ? "nothing to move" : WhyChosen(chosen, fastest_, fastest_.size());
    best.faults = std::move(faults_);
    return best;
  }

  bool HasPlan() const { return !kept_.empty() || unsimulated_; }

  Status TooLate(const std::string& engine) const {
    return LimitReached(
        fmt::format("{}: {} before its plan was simulated", engine, request_.limits.deadline.Passed()));
  }

  // Records the refusal. After a bug, which becomes a fault, the engine gets no further turn.
  void Refuse(const Engine& engine, Status why) {
    if (why.code() == StatusCode::kBug) {
      std::erase_if(queue_, [&](const Turn& turn) { return turn.engine == &engine; });
      wrong_.insert(&engine);
      faults_.emplace_back(why.message());
    }
    // With very many parts, the refusals of engines that serve fewer parts are not recorded.
    if (request_.collective->num_parts() > kMostParts && !engine.any_parts &&
        why.code() == StatusCode::kInvalidInput)
      return;
    refusals_.push_back(std::move(why));
  }

  // Returns the first bug, else the refusal of what did not fit the limits, else the last refusal, with the
  // fewest steps of a plan that was refused for its steps. Names an engine that searches long, which auto
  // does not ask, if it serves a request that no other engine serves.
  Status Refusal() const {
    const auto bug = std::ranges::find(refusals_, StatusCode::kBug, &Status::code);
    const Status& why = bug != refusals_.end() ? *bug : too_much_.ok() ? refusals_.back() : too_much_;
    std::optional<int64_t> steps;
    for (const Status& refusal : refusals_)
      if (refusal.needed() && (!steps || *refusal.needed() < *steps)) steps = refusal.needed();
    std::string text = fmt::format("{}: no engine has a plan for {} on {}: {}", kDefaultEngine,
                                   request_.collective->name(), request_.topology->name(), why.message());
    const auto may_search = std::ranges::find_if(
        engines_, [&](const Engine& engine) { return engine.searches_long && engine.Serves(request_).ok(); });
    if (why.code() == StatusCode::kInvalidInput && may_search != engines_.end() &&
        text.find("hint: ") == std::string::npos)
      text += fmt::format("; hint: --engine={}", may_search->name);
    return Status(why.code(), std::move(text), steps);
  }

  SynthesisRequest request_;  // the request with the bound and the graphs
  const std::span<const Engine> engines_;
  const int64_t pairs_;        // of members
  const double began_with_s_;  // seconds of the time limit at the start
  Bound bound_;
  int64_t left_ = 0;       // work left
  bool in_haste_ = false;  // no further engine is asked
  std::vector<Turn> queue_;
  // The engine, the variation and the chunks of all turns that were added with asked_chunks.
  std::set<std::tuple<const Engine*, std::string_view, std::optional<int64_t>>> asked_;
  std::vector<Made> kept_;                // kept plans, the fastest first
  std::vector<Contender> fastest_;        // the fastest plan of each engine
  std::optional<Synthesis> unsimulated_;  // set if the first plan is beyond the limits
  Status too_much_ = OkStatus();          // the refusal that DropWhatCannotFit kept last
  std::vector<Status> refusals_ = {InvalidInput("none serves it")};
  std::vector<std::string> faults_;
  std::set<const Engine*> wrong_;  // engines that made a wrong plan
  double best_ps_ = std::numeric_limits<double>::infinity();
  double chance_ = kChance;  // see kChance
};

}  // namespace

StatusOr<Synthesis> TryEngines(const SynthesisRequest& request, std::span<const Engine> engines) {
  return Portfolio(request, engines).Run();
}

}  // namespace xccl
