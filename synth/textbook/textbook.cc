// From a recipe to a schedule, by the kind of the collective. Linear in the transfers.
#include "synth/textbook/textbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/strings.h"
#include "synth/common/compose.h"
#include "synth/common/reverse.h"
#include "synth/common/step_limit.h"
#include "synth/textbook/engines.h"

namespace xccl {
namespace {

constexpr int64_t kMovesWorthCutting = 1 << 20;
constexpr int64_t kMostEstimated = 2'400'000;  // moves; estimating more costs as much as making them

// What a collective asks of a recipe, before any reversal.
enum class Base { kAllgather, kBroadcast, kGather, kAlltoall, kSendrecv, kAllreduce };

Base BaseOf(CollectiveKind kind, const Recipe& recipe) {
  switch (kind) {
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
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
      if (recipe.allreduce) return Base::kAllreduce;
      return recipe.allgather ? Base::kAllgather : Base::kBroadcast;
  }
  return Base::kSendrecv;
}

bool NeedsReversed(CollectiveKind kind) { return IsReduction(kind) || kind == CollectiveKind::kScatter; }
bool NeedsForward(CollectiveKind kind) { return IsAllreduce(kind) || !NeedsReversed(kind); }

// Member i's block of the whole.
Blocks BlocksOf(const Collective& cut, const Recipe& recipe) {
  Blocks blocks;
  if (IsAllreduce(cut.kind()) && !recipe.allreduce_owners.empty()) {
    blocks.resize(static_cast<size_t>(cut.num_members()));
    const int32_t owners = static_cast<int32_t>(recipe.allreduce_owners.size());
    for (int32_t i = 0; i < owners; ++i)
      blocks[recipe.allreduce_owners[i]] = Piece({0, cut.num_chunks()}, i, owners);
    return blocks;
  }
  for (int32_t i = 0; i < cut.num_members(); ++i) {
    if (IsAllreduce(cut.kind())) {
      blocks.push_back(Piece({0, cut.num_chunks()}, i, cut.num_members()));
    } else {
      blocks.push_back({cut.FirstChunk(PartId(i)).value, cut.ChunksOf(PartId(i))});
    }
  }
  return blocks;
}

}  // namespace

ChunkRange Pairs::Of(int32_t source, int32_t destination) const {
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
    if (BaseOf(kind, *placed.recipe_) == Base::kAllreduce) return placed;
  }
  if (NeedsReversed(kind)) {
    placed.reversed_ = &graphs.reversed();
    XCCL_ASSIGN_OR_RETURN(placed.reversed_recipe_, engine.place(graphs.reversed(), request));
    // Both halves of an allreduce meet in one place.
    if (placed.recipe_) placed.reversed_recipe_->root = placed.recipe_->root;
  }
  return placed;
}

int32_t PlacedEngine::Chunks() const {
  if (request_->limits.chunks) return *request_->limits.chunks;
  const CollectiveKind kind = request_->collective->kind();
  const Recipe& recipe = recipe_ ? *recipe_ : *reversed_recipe_;
  if (kind == CollectiveKind::kBarrier) return 1;
  switch (BaseOf(kind, recipe)) {
    case Base::kAllgather: {
      // Many ranks' blocks keep all lanes busy without being cut.
      const int64_t n = request_->collective->num_members();
      const int32_t pieces =
          static_cast<int32_t>(std::clamp<int64_t>(kMovesWorthCutting / (n * n), 1, recipe.lanes));
      if (!IsAllreduce(kind)) return pieces;
      return pieces * static_cast<int32_t>(recipe.allreduce_owners.empty() ? static_cast<size_t>(n)
                                                                           : recipe.allreduce_owners.size());
    }
    case Base::kBroadcast:
      return std::max(recipe.lanes, recipe.broadcast_pieces);
    case Base::kAllreduce:
      return recipe.lanes;
    case Base::kGather:
    case Base::kAlltoall:
    case Base::kSendrecv:
      return 1;
  }
  return 1;
}

void PlacedEngine::AddMoves(const Recipe& recipe, const Collective& cut, Moves& moves) const {
  const ChunkRange all{0, cut.num_chunks()};
  switch (BaseOf(cut.kind(), recipe)) {
    case Base::kAllgather:
      return recipe.allgather(BlocksOf(cut, recipe), moves);
    case Base::kBroadcast:
      return recipe.broadcast(cut.spec().root.value_or(recipe.root), all, moves);
    case Base::kGather:
      return recipe.gather(*cut.spec().root, BlocksOf(cut, recipe), moves);
    case Base::kAlltoall:
      return recipe.alltoall(Pairs{&cut}, moves);
    case Base::kSendrecv:
      return recipe.sendrecv(cut, moves);
    case Base::kAllreduce:
      return recipe.allreduce(all, moves);
  }
}

namespace {

// Where the copies that a recipe makes start and end.
CopyGoal GoalOf(const Collective& cut, const Recipe& recipe) {
  const Base base = BaseOf(cut.kind(), recipe);
  CopyGoal goal;
  goal.members.assign(cut.ranks().begin(), cut.ranks().end());
  const size_t chunks = static_cast<size_t>(cut.num_chunks());
  const Rank root = cut.spec().root.value_or(recipe.root);
  goal.owner.assign(chunks, root);
  const auto own = [&](const Blocks& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i)
      std::fill_n(goal.owner.begin() + blocks[i].first, blocks[i].count, goal.members[i]);
  };
  switch (base) {
    case Base::kBroadcast:
    case Base::kAllreduce:
      break;
    case Base::kAllgather:
      own(BlocksOf(cut, recipe));
      break;
    case Base::kGather:
      own(BlocksOf(cut, recipe));
      goal.target.assign(chunks, root);
      break;
    case Base::kAlltoall:
    case Base::kSendrecv: {
      goal.target.assign(chunks, root);
      std::vector<Holding> holding;
      for (int32_t c = 0; c < cut.num_chunks(); ++c) {
        cut.Before(ChunkId(c), holding);
        goal.owner[static_cast<size_t>(c)] = holding[0].rank;
        cut.After(ChunkId(c), holding);
        goal.target[static_cast<size_t>(c)] = holding[0].rank;
      }
      break;
    }
  }
  return goal;
}

}  // namespace

StatusOr<Schedule> PlacedEngine::Gather(const RankGraph& graph, const Recipe& recipe,
                                        const Collective& cut) const {
  Moves moves;
  AddMoves(recipe, cut, moves);
  return RouteMoves(moves, graph, GoalOf(cut, recipe), recipe.repeats, engine_->name);
}

StatusOr<Synthesis> PlacedEngine::Make() const {
  const int64_t chunks = int64_t{Chunks()} * request_->collective->num_parts();
  if (chunks > std::numeric_limits<int32_t>::max() / 4)
    return InvalidInput(
        fmt::format("{}: {} chunks in all; at most 2^29 are supported", engine_->name, chunks));
  const Collective cut = request_->collective->WithChunks(Chunks());
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
  double moved = 0;
  switch (BaseOf(kind, recipe)) {
    case Base::kAllgather:
    case Base::kBroadcast:
      moved = chunks * (n - 1) * (recipe_ && reversed_recipe_ ? 2 : 1);
      break;
    case Base::kAllreduce:
      moved = chunks * n * std::max(1.0, std::log2(n));
      break;
    case Base::kGather:
      moved = chunks * std::max(1.0, std::log2(n));
      break;
    case Base::kAlltoall:
    case Base::kSendrecv:
      moved = chunks * recipe.alltoall_hops;
      break;
  }
  return static_cast<int64_t>(std::min(moved, 1e15));
}

Cost PlacedEngine::BaseCost(const RankGraph& graph, const Recipe& recipe) const {
  const CollectiveKind kind = request_->collective->kind();
  const Base base = BaseOf(kind, recipe);
  const std::optional<Cost>* given[] = {&recipe.allgather_cost, &recipe.broadcast_cost,
                                        &recipe.gather_cost,    &recipe.alltoall_cost,
                                        &recipe.alltoall_cost,  &recipe.allreduce_cost};
  if (*given[static_cast<int>(base)]) return **given[static_cast<int>(base)];
  const Collective cut = request_->collective->WithChunks(Chunks());
  Moves moves;
  AddMoves(recipe, cut, moves);
  // An even share of the size; sendrecv's size is each pair's.
  double fraction = 1.0 / std::max(1, cut.num_chunks());
  if (base == Base::kSendrecv) fraction = 1.0 / Chunks();
  if (base == Base::kAlltoall) fraction *= cut.num_members();
  return MeasureMoves(moves, graph, fraction, recipe.pipelines);
}

double PlacedEngine::EstimatePs() const {
  double total = 0;
  const double bytes = request_->collective->kind() == CollectiveKind::kBarrier
                           ? 0
                           : static_cast<double>(request_->size_bytes);
  const auto add = [&](const Cost& cost) { total += cost.fixed_ps + cost.ps_per_byte * bytes; };
  if (reversed_recipe_) add(BaseCost(*reversed_, *reversed_recipe_));
  if (recipe_) add(BaseCost(*forward_, *recipe_));
  return total;
}

Cost MeasureMoves(const Moves& moves, const RankGraph& graph, double fraction, bool overlap) {
  Router router(graph);
  std::vector<double> load(static_cast<size_t>(graph.topology().num_links()), 0);
  std::vector<LinkId> touched;
  std::vector<size_t> order(moves.items().size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto earlier = [&](size_t a, size_t b) { return moves.items()[a].step < moves.items()[b].step; };
  if (!std::is_sorted(order.begin(), order.end(), earlier))
    std::stable_sort(order.begin(), order.end(), earlier);
  Cost cost;
  int64_t latency = 0;
  double busiest = 0;
  std::vector<HopId> way;
  const auto send = [&](HopId h, const Move& move) {
    for (LinkId l : graph.Links(h)) {
      if (load[l.index()] == 0) touched.push_back(l);
      load[l.index()] += fraction * move.chunks.count * 1e12 /
                         static_cast<double>(graph.topology().link(l).bandwidth_bytes_per_s);
      busiest = std::max(busiest, load[l.index()]);
    }
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const Move& move = moves.items()[order[i]];
    int64_t way_latency = 0;
    // Neighbouring moves often join the same ranks.
    const Move* before = i > 0 ? &moves.items()[order[i - 1]] : nullptr;
    if (before == nullptr || before->src != move.src || before->dst != move.dst || before->hop != move.hop) {
      way.clear();
      if (const std::optional<HopId> hop = move.hop ? move.hop : graph.Find(move.src, move.dst)) {
        way.push_back(*hop);
      } else {
        const std::vector<Rank> ranks = router.Route(move.src, move.dst);
        for (size_t k = 0; k + 1 < ranks.size(); ++k) way.push_back(*graph.Find(ranks[k], ranks[k + 1]));
      }
    }
    for (HopId h : way) {
      way_latency += graph.hop(h).latency_ps;
      send(h, move);
    }
    latency = std::max(latency, way_latency);
    if (i + 1 < order.size() && moves.items()[order[i + 1]].step == move.step) continue;
    cost.fixed_ps += static_cast<double>(latency);
    latency = 0;
    if (overlap) {
      cost.ps_per_byte = busiest;
      continue;
    }
    cost.ps_per_byte += busiest;
    busiest = 0;
    for (LinkId l : touched) load[l.index()] = 0;
    touched.clear();
  }
  return cost;
}

namespace {

// The asker's view of the machine, or one of its own.
class RankGraphsOf {
 public:
  explicit RankGraphsOf(const SynthesisRequest& request) : given_(request.graphs) {
    if (given_ == nullptr) own_.emplace(*request.topology);
  }
  RankGraphs& get() { return given_ != nullptr ? *given_ : *own_; }

 private:
  RankGraphs* given_;
  std::optional<RankGraphs> own_;
};

StatusOr<Offer> OfferOf(const TextbookEngine& engine, const SynthesisRequest& request) {
  RankGraphsOf graphs(request);
  XCCL_ASSIGN_OR_RETURN(PlacedEngine placed, PlacedEngine::Place(engine, graphs.get(), request));
  Offer offer{.time_ps = std::numeric_limits<double>::infinity(), .work = placed.Work()};
  if (offer.work <= kMostEstimated) offer.time_ps = placed.EstimatePs();
  if (request.graphs != nullptr) offer.make = [placed = std::move(placed)](int64_t) { return placed.Make(); };
  return offer;
}

StatusOr<Synthesis> MakePlan(const TextbookEngine& engine, const SynthesisRequest& request) {
  RankGraphsOf graphs(request);
  XCCL_ASSIGN_OR_RETURN(const PlacedEngine placed, PlacedEngine::Place(engine, graphs.get(), request));
  return placed.Make();
}

}  // namespace

std::span<const TextbookEngine* const> TextbookEngines() {
  static const TextbookEngine* const engines[] = {&RingEngine(),
                                                  &TreeEngine(),
                                                  &BinomialEngine(),
                                                  &KnomialEngine(),
                                                  &DoubleBinaryTreeEngine(),
                                                  &HalvingDoublingEngine(),
                                                  &RecursiveDoublingEngine(),
                                                  &RecursiveMultiplyingEngine(),
                                                  &BruckEngine(),
                                                  &PairwiseEngine(),
                                                  &NhrEngine(),
                                                  &SwingEngine(),
                                                  &BineEngine(),
                                                  &PatEngine(),
                                                  &Ring2dEngine(),
                                                  &Torus2dEngine(),
                                                  &Mesh2dEngine(),
                                                  &HierarchicalRingEngine(),
                                                  &HierarchicalDoublingEngine(),
                                                  &DirectEngine()};
  return engines;
}

Engine RowOf(const TextbookEngine& engine) {
  return {.name = engine.name,
          .summary = engine.summary,
          .kinds = engine.kinds,
          .is_witness = true,
          .any_chunks = true,
          .offer = [&engine](const SynthesisRequest& request) { return OfferOf(engine, request); },
          .make = [&engine](const SynthesisRequest& request) { return MakePlan(engine, request); }};
}

}  // namespace xccl
