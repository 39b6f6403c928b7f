// Makes the turns of the search. kVariations lists the variations, each with the function that makes a turn
// from a plan. The function returns nullopt if the variation does not apply.
// - finer: the engine's plan in kChunkFactor times as many chunks, so that steps overlap more; in more chunks
//   if these would be longer than kLongChunkBytes. Applies again while it gains.
// - coarser: the engine's plan in fewer chunks, for fewer messages, if messages are short.
// - reordered: the plan's transfers in the order in which the plan's end needs them (synth/common/justify.h).
// - delayed: the plan with a lag for transfers over links that slower links hold, and for the transfers that
//   depend on them (synth/common/lag.h); applies again while it gains.
// - mirrored: the engine's plan of the dual collective on the reversed machine, played backwards.
#include "synth/portfolio/turns.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "synth/common/blocked_links.h"
#include "synth/common/cost_model.h"
#include "synth/common/justify.h"
#include "synth/common/lag.h"
#include "synth/common/reverse.h"
#include "synth/common/why_chosen.h"
#include "synth/portfolio/mirror.h"

namespace xccl {
namespace {

constexpr int64_t kLeastChunkBytes = 128;  // a line of LL128
// The longest chunk of a finer plan. A link of 25 GB/s takes about kMessagePs for it.
constexpr int64_t kLongChunkBytes = 16'384;
constexpr int32_t kChunkFactor = 4;         // chunks of the finer plan ÷ of the coarser plan, at least
constexpr int32_t kDelaysOfPlan = 200;      // steps of a plan ÷ steps of its lag
constexpr int64_t kSimulationsOfOrder = 4;  // simulations of one reordering

struct Context {
  const Made& plan;
  const SynthesisRequest& request;
  const Bound& bound;
  double best_ps;

  // Returns the plan's time less the gap between the best plan and the bound.
  double PromisedPs() const {
    return plan.Ps() - std::max(0.0, best_ps - static_cast<double>(bound.bound_ps));
  }
  int32_t Chunks() const { return plan.synthesis.collective.ChunksOf(PartId(0)); }
  // Returns true if the plan is more than kNear times as fast as the plan that it varies.
  bool HasGained() const { return kNear * plan.Ps() < plan.turn.from_ps; }
  bool IsBy(std::string_view variation) const { return plan.turn.variation == variation; }
};

// Returns the turn of the engine's plan in `chunks` chunks a part, or nullopt if the engine refuses.
std::optional<Turn> InChunks(const Context& at, int64_t chunks, std::string_view variation,
                             double promised_ps) {
  auto request = std::make_shared<SynthesisRequest>(at.request);
  request->limits.chunks = static_cast<int32_t>(chunks);
  StatusOr<Turn> turn = TurnOf(*at.plan.turn.engine, *request);
  if (!turn.ok()) return std::nullopt;
  turn->variation = variation;
  turn->is_of_another_kind = variation == "coarser";
  turn->asked_chunks = chunks;
  turn->promised_ps = promised_ps;
  turn->make = [request, make = std::move(turn->make)](int64_t most_work) { return make(most_work); };
  return *std::move(turn);
}

bool MayRecut(const Context& at) { return at.plan.turn.engine->any_chunks && !at.request.limits.chunks; }

// Cuts the plan into kChunkFactor times as many chunks, so that steps overlap further; into more if these
// were longer than kLongChunkBytes. The finest plan takes as long as its fullest link, as the turn promises.
std::optional<Turn> Finer(const Context& at) {
  if (!MayRecut(at) || !(at.IsBy(kOwn) || (at.IsBy("finer") && at.HasGained()))) return std::nullopt;
  const int64_t part_bytes = at.request.size_bytes / at.request.collective->num_parts();
  const int64_t long_bytes = kLongChunkBytes * at.Chunks();
  const int64_t factor = std::max<int64_t>(kChunkFactor, (part_bytes + long_bytes - 1) / long_bytes);
  const int64_t chunks = factor * at.Chunks();
  if (part_bytes / chunks < kLeastChunkBytes || factor * at.plan.synthesis.schedule.size() > kManyTransfers)
    return std::nullopt;
  std::optional<Turn> turn = InChunks(at, chunks, "finer", at.plan.costs.link_use.fullest_ps);
  if (turn) turn->from_ps = at.plan.Ps();
  return turn;
}

std::optional<Turn> Coarser(const Context& at) {
  const bool may_recut = MayRecut(at) || (at.plan.turn.fills_budget && !at.request.limits.chunks);
  if (!may_recut || !(at.IsBy(kOwn) || at.IsBy("coarser")) || at.Chunks() == 1) return std::nullopt;
  if (!HasShortMessages(at.plan.costs.link_use)) return std::nullopt;
  return InChunks(at, std::max(1, at.Chunks() / kChunkFactor), "coarser", at.PromisedPs());
}

std::optional<Turn> Reordered(const Context& at) {
  if (at.request.model != TimeModel::kPipelined || at.request.limits.steps || at.IsBy("reordered"))
    return std::nullopt;
  auto plan = std::make_shared<const Synthesis>(at.plan.synthesis);
  return Turn{.engine = at.plan.turn.engine,
              .variation = "reordered",
              .promised_ps = at.PromisedPs(),
              .work = kSimulationsOfOrder * plan->schedule.size(),
              .is_of_another_kind = false,
              .make = [plan, &request = at.request](int64_t most_work) -> StatusOr<Synthesis> {
                int64_t hops = kHopsPerMove * most_work;
                std::optional<Synthesis> better = Justified(*plan, request, hops);
                if (!better) return LimitReached("no other order is faster");
                return *std::move(better);
              }};
}

std::optional<Turn> Delayed(const Context& at) {
  if (at.request.model != TimeModel::kPipelined || at.request.limits.steps ||
      !(at.IsBy(kOwn) || (at.IsBy("delayed") && at.HasGained())) || !HasBlockedLinks(*at.request.topology))
    return std::nullopt;
  const int32_t lag = at.plan.synthesis.schedule.num_steps() / kDelaysOfPlan;
  if (lag == 0) return std::nullopt;
  auto plan = std::make_shared<const Synthesis>(at.plan.synthesis);
  return Turn{.engine = at.plan.turn.engine,
              .variation = "delayed",
              .promised_ps = at.PromisedPs(),
              .from_ps = at.plan.Ps(),
              .work = plan->schedule.size(),
              .is_of_another_kind = false,
              .make = [plan, lag, &topology = *at.request.topology](int64_t) -> StatusOr<Synthesis> {
                Synthesis late = *plan;
                late.schedule = WithLag(late.schedule, topology, lag);
                late.simulation.reset();
                return late;
              }};
}

std::optional<Turn> Mirrored(const Context& at) {
  std::optional<Collective> dual = MirrorOf(*at.request.collective);
  if (!dual || !at.IsBy(kOwn)) return std::nullopt;
  struct Image {
    Topology topology;
    Collective collective;
    SynthesisRequest request;
  };
  auto image =
      std::make_shared<Image>(Image{ReverseTopology(*at.request.topology), *std::move(dual), at.request});
  image->request.topology = &image->topology;
  image->request.collective = &image->collective;
  image->request.graphs.reset();
  image->request.start.reset();
  const Engine& engine = *at.plan.turn.engine;
  return Turn{.engine = &engine,
              .variation = "mirrored",
              .promised_ps = at.PromisedPs(),
              .work = at.plan.turn.work + at.plan.synthesis.schedule.size(),
              .bytes = at.plan.turn.bytes,
              .is_of_another_kind = false,
              .asked_chunks = 0,
              .make = [&engine, image, &request = at.request](int64_t most_work) -> StatusOr<Synthesis> {
                XCCL_ASSIGN_OR_RETURN(const Turn turn, TurnOf(engine, image->request));
                XCCL_ASSIGN_OR_RETURN(const Synthesis made, turn.make(most_work));
                std::optional<Synthesis> mirrored = Mirrored(made, image->topology, *request.topology,
                                                             *request.collective, request.size_bytes);
                if (!mirrored) return LimitReached("its plan has no mirror image");
                return *std::move(mirrored);
              }};
}

struct Variation {
  std::string_view name;
  std::optional<Turn> (*turn)(const Context&);
  // True if the variation is a new plan of the engine for the request. Other variations follow the links of a
  // plan. They do not apply to a plan with `missing`, which names links of the whole machine (ir/damaged.h).
  bool by_the_engine = false;
};
constexpr Variation kVariations[] = {{"finer", Finer, true},
                                     {"coarser", Coarser, true},
                                     {"reordered", Reordered},
                                     {"delayed", Delayed},
                                     {"mirrored", Mirrored}};

}  // namespace

StatusOr<Turn> TurnOf(const Engine& engine, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(Offer offer, engine.Offered(request));
  Turn turn{.engine = &engine,
            .promised_ps = offer.time_ps,
            .work = offer.work,
            .bytes = offer.bytes,
            .fills_budget = offer.fills_budget,
            .make = std::move(offer.make)};
  if (!turn.make) turn.make = [&engine, &request](int64_t) { return engine.Plan(request); };
  return turn;
}

std::vector<Turn> VariationsOf(const Made& plan, const SynthesisRequest& request, const Bound& bound,
                               double best_ps) {
  std::vector<Turn> turns;
  if (plan.synthesis.schedule.size() == 0) return turns;  // nothing moves; the collective may have no parts
  for (const Variation& variation : kVariations) {
    if (request.IsPassedOver(variation.name)) continue;
    if (!variation.by_the_engine && !plan.synthesis.schedule.missing.empty()) continue;
    if (std::optional<Turn> turn = variation.turn({plan, request, bound, best_ps}))
      turns.push_back(*std::move(turn));
  }
  return turns;
}

}  // namespace xccl
