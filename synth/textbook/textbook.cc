// 1. Place asks the engine for a recipe on the machine, the reversed machine, or both, as the kind needs.
// 2. Make lets the recipes add their moves, and RouteMoves (synth/common/moves.h) finds paths for the moves.
// 3. Make reverses the schedule of the reversed machine, for a reduction or a scatter. For an allreduce, Make
// joins the reversed and the forward schedule, unless the recipe makes the allreduce itself.
// An alltoall of many moves is planned for one source of each orbit of the machine's translations, and kept
// compressed.
// EstimatePs returns the recipe's cost, or measures the recipe's moves. Time: linear in the transfers.
#include "synth/textbook/textbook.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "base/strings.h"
#include "ir/translated.h"
#include "synth/common/compose.h"
#include "synth/common/cost_model.h"
#include "synth/common/reverse.h"
#include "synth/common/step_limit.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// A measurement of more than kFewTransfers moves takes the moves of some steps, about kFewTransfers in all.
// If these steps would be fewer than kFewestSteps, it takes all moves. Measuring a move takes up to 0.3 us,
// so that kFewTransfers moves take up to 40 ms.
constexpr size_t kFewestSteps = 16;

Base BaseOf(CollectiveKind kind, const Recipe& recipe) {
  if (!IsAllreduce(kind)) return BaseOf(kind);
  return recipe.allreduce ? Base::kAllreduce : recipe.allgather ? Base::kAllgather : Base::kBroadcast;
}

bool NeedsReversed(CollectiveKind kind) { return IsReduction(kind) || kind == CollectiveKind::kScatter; }
bool NeedsForward(CollectiveKind kind) { return IsAllreduce(kind) || !NeedsReversed(kind); }

Blocks BlocksOf(const Collective& cut, const Recipe& recipe) {
  if (IsAllreduce(cut.kind()))
    return EqualBlocks({0, static_cast<int32_t>(cut.num_chunks())}, cut.num_members(),
                       recipe.allreduce_owners);
  Blocks blocks;
  for (int32_t i = 0; i < cut.num_members(); ++i)
    blocks.push_back({cut.FirstChunk(PartId(i)).value, cut.ChunksOf(PartId(i))});
  return blocks;
}

}  // namespace

Base BaseOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      return Base::kAllgather;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return Base::kBroadcast;
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return Base::kGather;
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
      return Base::kAlltoall;
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kCustom:
      return Base::kSendrecv;
  }
  return Base::kSendrecv;
}

Blocks EqualBlocks(ChunkRange whole, int32_t n, std::span<const int32_t> owners) {
  Blocks blocks(static_cast<size_t>(n));
  const int32_t pieces = owners.empty() ? n : static_cast<int32_t>(owners.size());
  for (int32_t i = 0; i < pieces; ++i) blocks[owners.empty() ? i : owners[i]] = Piece(whole, i, pieces);
  return blocks;
}

double Cost::Ps(const SynthesisRequest& request) const {
  const bool moves_nothing = request.collective->kind() == CollectiveKind::kBarrier;
  return fixed_ps + ps_per_byte * (moves_nothing ? 0 : static_cast<double>(request.size_bytes));
}

ChunkRange PairBlocks::Of(int32_t source, int32_t destination) const {
  const int64_t n = collective->num_members();
  const PartId part(source * n + destination);
  if (collective->kind() == CollectiveKind::kAlltoallv && collective->spec().counts[part.index()] == 0)
    return {};
  return {collective->FirstChunk(part).value, collective->ChunksOf(part)};
}

StatusOr<PlacedEngine> PlacedEngine::Place(const TextbookEngine& engine, RankGraphs& graphs,
                                           const SynthesisRequest& request) {
  XCCL_RETURN_IF_ERROR(ServesKind(engine.name, engine.kinds, request));
  const CollectiveKind kind = request.collective->kind();
  PlacedEngine placed;
  placed.engine_ = &engine;
  placed.request_ = &request;
  placed.forward_ = &graphs.forward();
  if (NeedsForward(kind)) {
    XCCL_ASSIGN_OR_RETURN(placed.recipe_, engine.place(graphs.forward(), request));
    if (std::optional<Recipe::Exchange> exchange = std::exchange(placed.recipe_->exchange, std::nullopt)) {
      placed.recipe_->cost = exchange->cost;
      placed.recipe_->allreduce = std::move(exchange->allreduce);
    }
    if (BaseOf(kind, *placed.recipe_) == Base::kAllreduce) return placed;
  }
  if (NeedsReversed(kind)) {
    placed.reversed_ = &graphs.reversed();
    XCCL_ASSIGN_OR_RETURN(placed.reversed_recipe_, engine.place(graphs.reversed(), request));
    // Both halves of an allreduce have the same root and owners.
    if (placed.recipe_) {
      placed.reversed_recipe_->root = placed.recipe_->root;
      placed.reversed_recipe_->allreduce_owners = placed.recipe_->allreduce_owners;
    }
  }
  return placed;
}

int32_t PlacedEngine::Chunks() const {
  if (request_->limits.chunks) return *request_->limits.chunks;
  const CollectiveKind kind = request_->collective->kind();
  const Recipe& recipe = recipe_ ? *recipe_ : *reversed_recipe_;
  if (kind == CollectiveKind::kBarrier) return 1;
  const Base base = BaseOf(kind, recipe);
  if (base == Base::kBroadcast || base == Base::kAllreduce) return recipe.pieces;
  if (base != Base::kAllgather) return 1;
  // Blocks of many ranks keep all links busy even if they are not cut.
  const int64_t n = request_->collective->num_members();
  const auto pieces =
      static_cast<int32_t>(std::clamp<int64_t>(kMovesWorthCutting / (n * n), 1, recipe.pieces));
  if (!IsAllreduce(kind)) return pieces;
  const size_t owners = recipe.allreduce_owners.size();
  return pieces * static_cast<int32_t>(owners == 0 ? static_cast<size_t>(n) : owners);
}

void PlacedEngine::AddMoves(const Recipe& recipe, const Collective& cut, Moves& moves) const {
  const ChunkRange all{0, static_cast<int32_t>(cut.num_chunks())};
  switch (BaseOf(cut.kind(), recipe)) {
    case Base::kAllgather:
      return recipe.allgather(BlocksOf(cut, recipe), moves);
    case Base::kBroadcast:
      return recipe.broadcast(cut.spec().root.value_or(recipe.root), all, moves);
    case Base::kGather:
      return recipe.gather(*cut.spec().root, BlocksOf(cut, recipe), moves);
    case Base::kAlltoall:
      return recipe.alltoall(PairBlocks{&cut}, moves);
    case Base::kSendrecv:
      return recipe.sendrecv(cut, moves);
    case Base::kAllreduce:
      return recipe.allreduce(all, moves);
  }
}

namespace {

// Returns where the recipe's copies of each chunk start, and where they end: at one rank, or at all members.
CopyGoal GoalOf(const Collective& cut, const Recipe& recipe) {
  const Base base = BaseOf(cut.kind(), recipe);
  CopyGoal goal;
  goal.members.assign(cut.ranks().begin(), cut.ranks().end());
  const size_t chunks = static_cast<size_t>(cut.num_chunks());
  const Rank root = cut.spec().root.value_or(recipe.root);
  goal.owner.assign(chunks, root);
  if (base == Base::kAllgather || base == Base::kGather) {
    const Blocks blocks = BlocksOf(cut, recipe);
    for (size_t i = 0; i < blocks.size(); ++i)
      std::fill_n(goal.owner.begin() + blocks[i].first, blocks[i].count, goal.members[i]);
  }
  const bool exchanges = base == Base::kAlltoall || base == Base::kSendrecv;
  if (base == Base::kGather || exchanges) goal.target.assign(chunks, root);
  std::vector<Holding> holding;
  for (int32_t c = 0; exchanges && c < cut.num_chunks(); ++c) {
    cut.Before(ChunkId(c), holding);
    goal.owner[static_cast<size_t>(c)] = holding[0].rank;
    cut.After(ChunkId(c), holding);  // empty if no rank needs the chunk: the chunk stays with its owner
    goal.target[static_cast<size_t>(c)] =
        holding.empty() ? goal.owner[static_cast<size_t>(c)] : holding[0].rank;
  }
  return goal;
}

}  // namespace

namespace {

// Returns the moves of the chunks whose source represents its orbit. No chunk of an alltoall depends on
// another, so these moves and their translates are all that is needed.
Moves OfRepresentatives(const Moves& all, const Collective& cut, const SymmetryGroup& group) {
  const int32_t n = cut.num_members();
  std::vector<int32_t> first;  // by source: its first chunk
  for (int64_t m = 0; m < n; ++m) first.push_back(cut.FirstChunk(PartId(m * n)).value);
  first.push_back(cut.num_chunks());
  Moves kept;
  for (const Move& move : all.items()) {
    const int32_t end = move.chunks.first + move.chunks.count;
    auto source = std::ranges::upper_bound(first, move.chunks.first) - first.begin() - 1;
    for (Move part = move; part.chunks.first < end; ++source) {
      const int32_t stop = std::min(end, first[static_cast<size_t>(source) + 1]);
      part.chunks.count = stop - part.chunks.first;
      const Rank rank = cut.ranks()[static_cast<size_t>(source)];
      if (group.Representative(group.OrbitOf(rank)) == rank) kept.Add(part);
      part.chunks.first = stop;
    }
  }
  return kept;
}

}  // namespace

StatusOr<Schedule> PlacedEngine::Gather(const RankGraph& graph, const Recipe& recipe,
                                        const Collective& cut) const {
  Moves moves;
  AddMoves(recipe, cut, moves);
  const bool is_long = cut.kind() == CollectiveKind::kAlltoall && Work() > kMovesWorthCutting;
  const SymmetryGroup group =
      is_long ? TranslationsFor(cut, graph.topology()) : SymmetryGroup(graph.topology());
  if (!group.IsTrivial()) moves = OfRepresentatives(moves, cut, group);
  XCCL_ASSIGN_OR_RETURN(Schedule schedule,
                        RouteMoves(moves, graph, GoalOf(cut, recipe), recipe.repeats, engine_->name));
  return group.IsTrivial() ? std::move(schedule) : Translate(std::move(schedule), group);
}

StatusOr<Synthesis> PlacedEngine::Make() const {
  const int64_t chunks = int64_t{Chunks()} * request_->collective->num_parts();
  if (chunks > std::numeric_limits<int32_t>::max() / 4)
    return InvalidInput(
        fmt::format("{}: {} chunks in all; at most 2^29 are supported", engine_->name, chunks));
  const bool by_weights = recipe_ && !recipe_->weights.empty() && !request_->limits.chunks;
  const Collective cut = by_weights ? request_->collective->WithWeights({recipe_->weights})
                                    : request_->collective->WithChunks(Chunks());
  Schedule schedule;
  schedule.num_chunks = cut.num_chunks();
  if (reversed_recipe_) {
    XCCL_ASSIGN_OR_RETURN(const Schedule gather, Gather(*reversed_, *reversed_recipe_, cut));
    const TransferOp op = cut.kind() == CollectiveKind::kScatter ? TransferOp::kCopy : TransferOp::kReduce;
    schedule = Reverse(gather, reversed_->topology(), cut, op);
  }
  if (recipe_) {
    XCCL_ASSIGN_OR_RETURN(Schedule gather, Gather(*forward_, *recipe_, cut));
    schedule = reversed_recipe_ ? Compose(schedule, gather) : std::move(gather);
  }
  XCCL_RETURN_IF_ERROR(CheckSteps(engine_->name, *request_, schedule.num_steps()));
  return Synthesis{cut, std::move(schedule), false, std::string(engine_->name), ""};
}

int64_t PlacedEngine::Work() const {
  const Recipe& recipe = recipe_ ? *recipe_ : *reversed_recipe_;
  const CollectiveKind kind = request_->collective->kind();
  const double n = request_->collective->num_members();
  const double parts = request_->collective->num_parts(), chunks = parts * Chunks();
  const double steps = std::max(1.0, std::log2(n));
  const Base base = BaseOf(kind, recipe);
  double moved = chunks * (n - 1) * (recipe_ && reversed_recipe_ ? 2 : 1);
  if (base == Base::kAllreduce) moved = recipe.weights.empty() ? chunks * n * steps : 2 * chunks * (n - 1);
  if (base == Base::kGather) moved = chunks * steps;
  if (base == Base::kAlltoall || base == Base::kSendrecv) moved = chunks * recipe.alltoall_hops;
  return static_cast<int64_t>(std::min(moved, 1e15));
}

Cost PlacedEngine::BaseCost(const RankGraph& graph, const Recipe& recipe) const {
  if (recipe.cost) return *recipe.cost;
  const Base base = BaseOf(request_->collective->kind(), recipe);
  const Collective cut = request_->collective->WithChunks(Chunks());
  Moves moves;
  AddMoves(recipe, cut, moves);
  // A chunk is an equal share of all data. In a sendrecv, the size is only the data of one pair; in an
  // alltoall, only the data of one rank.
  double fraction = 1.0 / static_cast<double>(std::max<int64_t>(1, cut.num_chunks()));
  if (base == Base::kSendrecv) fraction = 1.0 / Chunks();
  if (base == Base::kAlltoall) fraction *= cut.num_members();
  return MeasureMoves(moves, graph, fraction, recipe.pipelines);
}

double PlacedEngine::EstimatePs() const {
  const double reduction = reversed_recipe_ ? BaseCost(*reversed_, *reversed_recipe_).Ps(*request_) : 0;
  return reduction + (recipe_ ? BaseCost(*forward_, *recipe_).Ps(*request_) : 0);
}

namespace {

// Measures moves, step by step.
class Meter {
 public:
  Meter(const RankGraph& graph, double fraction, std::optional<TimeModel> messages)
      : graph_(graph), messages_(messages), load_(static_cast<size_t>(graph.topology().num_links())) {
    for (const Link& link : graph.topology().spec().links)
      chunk_ps_.push_back(fraction * 1e12 / static_cast<double>(link.bandwidth_bytes_per_s));
  }

  void Add(const Move& move) {
    // Consecutive moves often have the same source and destination, and so the same path.
    if (!last_ || last_->src != move.src || last_->dst != move.dst || last_->hop != move.hop) FindPath(move);
    last_ = &move;
    int64_t path_ps = 0;
    for (HopId h : path_) {
      path_ps += graph_.hop(h).latency_ps;
      for (LinkId l : graph_.Links(h)) AddLoad(l, move.chunks.count);
    }
    latency_ps_ = std::max(latency_ps_, path_ps);
  }

  void EndStep() { cost_.fixed_ps += static_cast<double>(std::exchange(latency_ps_, 0)); }

  // Adds the time of the busiest link since the last call.
  void EndLoads() {
    cost_.ps_per_byte += busiest_.ps_per_byte;
    cost_.fixed_ps += busiest_.messages_ps;
    busiest_ = {};
    for (LinkId l : touched_) load_[l.index()] = {};
    touched_.clear();
  }

  const Cost& cost() const { return cost_; }

 private:
  struct Load {
    double ps_per_byte = 0, messages_ps = 0;
  };

  void FindPath(const Move& move) {
    path_.clear();
    if (const std::optional<HopId> hop = move.hop ? move.hop : graph_.Find(move.src, move.dst)) {
      path_.push_back(*hop);
      return;
    }
    const std::vector<Rank> ranks = graph_.Route(move.src, move.dst);
    for (size_t k = 0; k + 1 < ranks.size(); ++k) path_.push_back(*graph_.Find(ranks[k], ranks[k + 1]));
  }

  void AddLoad(LinkId l, int32_t chunks) {
    Load& at = load_[l.index()];
    if (at.ps_per_byte == 0) touched_.push_back(l);
    at.ps_per_byte += chunks * chunk_ps_[l.index()];
    busiest_.ps_per_byte = std::max(busiest_.ps_per_byte, at.ps_per_byte);
    // Messages over relays get no message time here: their steps last longer in any case.
    if (!messages_ || path_.size() > 1) return;
    const Link& link = graph_.topology().link(l);
    at.messages_ps += static_cast<double>(link.overhead_ps);
    if (*messages_ == TimeModel::kBlocking) at.messages_ps += static_cast<double>(link.latency_ps);
    busiest_.messages_ps = std::max(busiest_.messages_ps, at.messages_ps);
  }

  const RankGraph& graph_;
  const std::optional<TimeModel> messages_;
  std::vector<double> chunk_ps_;  // by link: picoseconds of a chunk for each byte of the size
  std::vector<Load> load_;        // by link
  std::vector<LinkId> touched_;   // links with a load
  Load busiest_;
  int64_t latency_ps_ = 0;
  std::vector<HopId> path_;  // of the last move
  const Move* last_ = nullptr;
  Cost cost_;
};

// Returns the moves in the order of their steps. If there are many, returns only the moves of some steps,
// spread evenly (Fibonacci hashing). Sets `times` to the number of steps for which each of these steps
// stands.
std::vector<const Move*> SomeInOrder(const Moves& moves, double& times) {
  std::vector<const Move*> order;
  int32_t last = 0;
  for (const Move& move : moves.items()) last = std::max(last, move.step);
  std::vector<bool> has_moves(static_cast<size_t>(last) + 1, false);
  for (const Move& move : moves.items()) has_moves[static_cast<size_t>(move.step)] = true;
  std::vector<int32_t> steps;
  for (int32_t s = 0; s <= last; ++s)
    if (has_moves[static_cast<size_t>(s)]) steps.push_back(s);
  const auto measured = static_cast<size_t>(kFewTransfers * std::ssize(steps) /
                                            std::max<int64_t>(1, std::ssize(moves.items())));
  times = 1;
  if (measured >= kFewestSteps && measured < steps.size()) {
    std::vector<bool> is_chosen(has_moves.size(), false);
    double chosen = 0;
    for (size_t i = 0; i < measured; ++i) {
      const double place = std::fmod(static_cast<double>(i) * (std::numbers::phi - 1), 1.0);
      const int32_t step = steps[static_cast<size_t>(place * static_cast<double>(steps.size()))];
      if (is_chosen[static_cast<size_t>(step)]) continue;
      is_chosen[static_cast<size_t>(step)] = true;
      ++chosen;
    }
    times = static_cast<double>(steps.size()) / chosen;
    has_moves = std::move(is_chosen);
  }
  for (const Move& move : moves.items())
    if (has_moves[static_cast<size_t>(move.step)]) order.push_back(&move);
  if (!std::ranges::is_sorted(order, {}, &Move::step)) std::ranges::stable_sort(order, {}, &Move::step);
  return order;
}

}  // namespace

Cost MeasureMoves(const Moves& moves, const RankGraph& graph, double fraction, bool overlap,
                  std::optional<TimeModel> messages) {
  double times = 1;
  const std::vector<const Move*> order = SomeInOrder(moves, times);
  Meter meter(graph, fraction, messages);
  for (size_t i = 0; i < order.size(); ++i) {
    meter.Add(*order[i]);
    if (i + 1 < order.size() && order[i + 1]->step == order[i]->step) continue;
    meter.EndStep();
    if (!overlap || i + 1 == order.size()) meter.EndLoads();
  }
  return {times * meter.cost().fixed_ps, times * meter.cost().ps_per_byte};
}

namespace {

// Places the engine on the request's graphs. If the request has no graphs, makes them in `own`.
StatusOr<PlacedEngine> PlacedFor(const TextbookEngine& engine, const SynthesisRequest& request,
                                 std::optional<RankGraphs>& own) {
  const Topology& topology = *request.topology;
  if (engine.cables_only && topology.num_nodes() > topology.num_ranks())
    return InvalidInput(
        fmt::format("{}: {} of {} nodes are no gpus; expected links between gpus alone; hint: "
                    "--engine=auto",
                    engine.name, topology.num_nodes() - topology.num_ranks(), topology.num_nodes()));
  RankGraphs& graphs = request.graphs ? *request.graphs : own.emplace(*request.topology);
  return PlacedEngine::Place(engine, graphs, request);
}

StatusOr<Offer> OfferOf(const TextbookEngine& engine, const SynthesisRequest& request) {
  std::optional<RankGraphs> graphs;
  XCCL_ASSIGN_OR_RETURN(PlacedEngine placed, PlacedFor(engine, request, graphs));
  Offer offer{.time_ps = std::numeric_limits<double>::infinity(), .work = placed.Work()};
  if (offer.work <= kMostTransfers) offer.time_ps = placed.EstimatePs();
  if (request.graphs) offer.make = [placed = std::move(placed)](int64_t) { return placed.Make(); };
  return offer;
}

StatusOr<Synthesis> MakePlan(const TextbookEngine& engine, const SynthesisRequest& request) {
  std::optional<RankGraphs> graphs;
  XCCL_ASSIGN_OR_RETURN(const PlacedEngine placed, PlacedFor(engine, request, graphs));
  return placed.Make();
}

}  // namespace

Engine RowOf(const TextbookEngine& engine) {
  return {.name = engine.name,
          .summary = engine.summary,
          .family = engine.family,
          .kinds = engine.kinds,
          .is_witness = true,
          .asks_pairs = !engine.cables_only,
          .any_chunks = true,
          .offer = [&engine](const SynthesisRequest& request) { return OfferOf(engine, request); },
          .make = [&engine](const SynthesisRequest& request) { return MakePlan(engine, request); }};
}

}  // namespace xccl
