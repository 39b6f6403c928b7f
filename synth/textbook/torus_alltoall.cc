// A block goes along dimension 0 to the offset of its destination from its source, the shorter way round,
// then along dimension 1, and so on. In one message, each rank sends on all blocks that have come the same
// number of hops along the dimension. So every link of a dimension of n > 2 ranks carries about n/8 of a
// rank's data, which is the bound for the longest dimension.
//
// Batches. Blocks are cut into batches by their offsets in dimensions 1 to `cut`. While one batch is in
// dimension 0, the batch before it is in dimension 1, so that all links are busy except for the first and the
// last batches. Offsets far from 0 load a dimension more than others. So the next batch is always a golden
// section of all batches farther on, and any few batches in a row have far and near offsets. The first batch
// is far; the last batch is near and soon done.
//
// Blocks half way round an even dimension can go either way. In dimension 0, one half of these blocks goes
// each way; all of them go up if the dimension is so long that its blocks are sent in ranges. In later
// dimensions, blocks whose offset in dimension 0 is even go up, and the others go down.
//
// The blocks of rank 0 are numbered by destination. For given earlier offsets, the blocks of a message are
// then one range; in dimension 0 they are one range for each offset, unless it is sent in ranges. So a plan
// of a large torus of three dimensions has only a few transfers a rank.
#include "synth/textbook/torus_alltoall.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/translated.h"
#include "synth/common/cost_model.h"
#include "synth/common/rank_graph.h"
#include "synth/common/step_limit.h"
#include "synth/textbook/grid.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "torus-alltoall";

struct Torus {
  Grid grid;
  std::vector<double> ps_per_byte = {};  // by dimension, of all links between its slowest neighbours
  double latency_ps = 0;                 // of the farthest block

  size_t num_dims() const { return grid.dims.size(); }
  int32_t Size(size_t dim) const { return dim < num_dims() ? grid.dims[dim] : 1; }
};

StatusOr<Torus> TorusOf(const SynthesisRequest& request) {
  const Topology& topology = *request.topology;
  const int32_t n = topology.num_ranks();
  const Status no_torus =
      InvalidInput(fmt::format("{}: the links form no ring or torus, or some ranks take no part; expected "
                               "one that all ranks form, in order",
                               kName));
  bool all_in_order = request.collective->num_members() == n;
  for (int32_t r = 0; all_in_order && r < n; ++r)
    all_in_order = request.collective->MemberIndex(Rank(r)) == r;
  if (topology.num_nodes() != n || !all_in_order || n < 2) return no_torus;
  std::optional<RankGraph> own;
  const RankGraph& graph = request.graphs ? request.graphs->forward() : own.emplace(topology);
  std::optional<Grid> grid = DetectGrid(graph);
  if (!grid) return no_torus;
  Torus torus{.grid = *std::move(grid)};
  const std::vector<int32_t>& dims = torus.grid.dims;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] > 2 && !torus.grid.wraps[i]) return no_torus;
  torus.ps_per_byte.assign(dims.size(), 0);
  std::vector<int64_t> latency(dims.size(), 0);
  for (int32_t h = 0; h < graph.num_hops();) {
    const Hop& hop = graph.hop(HopId(h));
    double bytes_per_s = 0;  // of all parallel links
    for (; h < graph.num_hops() && graph.hop(HopId(h)).from == hop.from && graph.hop(HopId(h)).to == hop.to;
         ++h)
      bytes_per_s += static_cast<double>(graph.hop(HopId(h)).bandwidth_bytes_per_s);
    size_t dim = 0;
    while (hop.from.value / torus.grid.Stride(dim) % dims[dim] ==
           hop.to.value / torus.grid.Stride(dim) % dims[dim])
      ++dim;
    torus.ps_per_byte[dim] = std::max(torus.ps_per_byte[dim], 1e12 / bytes_per_s);
    latency[dim] = std::max(latency[dim], hop.latency_ps);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const int32_t farthest = dims[i] / 2;
    torus.latency_ps += static_cast<double>(latency[i] * farthest);
  }
  return torus;
}

// Blocks of one batch have up to `length` offsets in dimension `cut`, and one offset in each dimension from 1
// to cut - 1. A ring has one batch.
struct Batches {
  size_t cut = 1;
  int32_t length = 1;
  int64_t count = 1;
};

// Returns as many batches as the limit on transfers allows, with messages that are long enough to be of use.
Batches BatchesOf(const Torus& torus, double block_bytes) {
  const int64_t side = torus.Size(0);
  int64_t least_bytes = 1;
  for (const double ps : torus.ps_per_byte)
    least_bytes = std::max(least_bytes, LeastUsefulBytes(static_cast<int64_t>(1e12 / ps)));
  for (size_t cut = torus.num_dims() - 1; cut > 0; --cut) {
    int64_t hops = 0, outside = 1;  // half the sides up to `cut`; batches if `length` is the whole side
    for (size_t i = 0; i <= cut; ++i) hops += torus.Size(i) / 2;
    for (size_t i = 1; i < cut; ++i) outside *= torus.Size(i);
    for (int32_t length = 1; length < torus.Size(cut); length *= 2) {
      const int64_t count = outside * ((torus.Size(cut) + length - 1) / length);
      const double blocks = static_cast<double>(side) / 4 * length * torus.grid.Stride(cut);  // of a message
      if (count * side * hops <= kManyTransfers && blocks * block_bytes >= static_cast<double>(least_bytes))
        return {cut, length, count};
    }
  }
  // There is one batch on a ring, for short blocks, and if more batches make too many transfers. If dimension
  // 0 is long, SendRanges then serves it too.
  const bool is_long = side * side / 4 > kManyTransfers;
  return {static_cast<size_t>(is_long ? 0 : 1), torus.Size(is_long ? 0 : 1), 1};
}

class Writer {
 public:
  Writer(const Topology& topology, const Torus& torus, const Batches& batches, const Collective& cut)
      : topology_(topology), torus_(torus), batches_(batches), chunks_(cut.even_chunks()) {
    schedule_.num_chunks = cut.num_chunks();
    for (const int32_t side : torus.grid.dims) delay_ = std::max(delay_, side / 2);
  }

  Schedule Write() {
    // The golden section, made coprime to the number of batches.
    int64_t farther =
        std::max<int64_t>(1, std::llround(static_cast<double>(batches_.count) * (std::numbers::phi - 1)));
    while (std::gcd(farther, batches_.count) != 1) ++farther;
    for (int64_t b = 0; b < batches_.count; ++b) {
      SetBatch((batches_.count / 2 + b * farther) % batches_.count);
      step_ = static_cast<int32_t>(b) * delay_;
      for (size_t dim = 0; dim < torus_.num_dims(); ++dim, step_ += delay_) SendAlong(dim, 0, 0, true);
    }
    return std::move(schedule_);
  }

 private:
  // The offsets of a dimension that blocks of the batch have, first to last - 1.
  struct Offsets {
    int32_t first = 0, last = 0;
  };

  void SetBatch(int64_t number) {
    offsets_.clear();
    for (const int32_t side : torus_.grid.dims) offsets_.push_back({0, side});
    if (batches_.count == 1) return;
    const int32_t side = torus_.Size(batches_.cut), pieces = (side + batches_.length - 1) / batches_.length;
    const auto piece = static_cast<int32_t>(number % pieces);
    offsets_[batches_.cut] = {piece * batches_.length, std::min(side, (piece + 1) * batches_.length)};
    number /= pieces;
    for (size_t i = batches_.cut; --i > 0; number /= torus_.Size(i)) {
      const auto offset = static_cast<int32_t>(number % torus_.Size(i));
      offsets_[i] = {offset, offset + 1};
    }
  }

  // Sends the batch's blocks along `dim` from all places where they are. They have reached their offsets in
  // the dimensions before `dim`; `place` is the rank that has these offsets in the dimensions before `from`
  // and 0 in the others. Blocks half way round go up or down, as `up` says.
  void SendAlong(size_t dim, size_t from, int32_t place, bool up) {
    if (from == dim) return dim < batches_.cut ? SendEach(dim, place, up) : SendRanges(dim, place, up);
    for (int32_t o = offsets_[from].first; o < offsets_[from].last; ++o)
      SendAlong(dim, from + 1, place + o * torus_.grid.Stride(from), from == 0 ? o % 2 == 0 : up);
  }

  // Sends blocks from `place` along `dim`, offset by offset. The blocks of one offset are one range: each
  // later dimension before `cut` has one offset, and each dimension after `cut` has all offsets.
  void SendEach(size_t dim, int32_t place, bool up) {
    const int32_t side = torus_.Size(dim), stride = torus_.grid.Stride(dim);
    int32_t begin = 0, end = 0;
    for (size_t i = dim + 1; i < torus_.num_dims(); ++i) {
      begin += offsets_[i].first * torus_.grid.Stride(i);
      end += (offsets_[i].last - 1) * torus_.grid.Stride(i);
    }
    ++end;
    for (int32_t o = offsets_[dim].first; o < offsets_[dim].last; ++o) {
      // Along dimension 0 half of the blocks half way round go each way, an odd one up or down by `begin`;
      // along later dimensions all of them go up, or all down.
      const int32_t half = dim > 0 ? (up ? end : begin) : (begin + end + begin % 2) / 2;
      const int32_t middle = 2 * o < side ? end : 2 * o > side ? begin : half;
      const int32_t at = place + o * stride;
      for (int32_t k = 1; k <= o; ++k) Hop(dim, place, k, at + begin, at + middle);
      for (int32_t k = 1; k <= side - o; ++k) Hop(dim, place, -k, at + middle, at + end);
    }
  }

  // Sends blocks from `place` along `dim`. Later dimensions have all offsets, so that blocks of several
  // offsets are one range.
  void SendRanges(size_t dim, int32_t place, bool up) {
    const int32_t side = torus_.Size(dim), stride = torus_.grid.Stride(dim);
    const auto [first, last] = offsets_[dim];
    const int32_t middle = up ? side / 2 + 1 : (side + 1) / 2;  // offsets below it go up
    for (int32_t k = 1; k < middle; ++k)
      Hop(dim, place, k, place + std::max(k, first) * stride, place + std::min(middle, last) * stride);
    for (int32_t k = 1; k <= side - middle; ++k)
      Hop(dim, place, -k, place + std::max(middle, first) * stride,
          place + std::min(side - k + 1, last) * stride);
  }

  // Adds the k-th hop from a place up a dimension, or down if k is negative, for the blocks of ranks from..to
  // - 1.
  void Hop(size_t dim, int32_t place, int32_t k, int32_t from, int32_t to) {
    if (from >= to) return;
    const int32_t side = torus_.Size(dim), stride = torus_.grid.Stride(dim);
    const auto at = [&](int32_t offset) { return Rank(place + (offset + side) % side * stride); };
    const Rank src = at(k > 0 ? k - 1 : k + 1), dst = at(k);
    links_.clear();
    double all = 0, before = 0;
    for (LinkId l : topology_.Out(topology_.NodeOf(src))) {
      if (topology_.link(l).to != topology_.NodeOf(dst)) continue;
      links_.push_back(l);
      all += static_cast<double>(topology_.link(l).bandwidth_bytes_per_s);
    }
    // Parallel links share the blocks in proportion to their bandwidths. The share of a few blocks is rounded
    // up or down in turn, so that single blocks do not all use one link.
    const double turn = std::fmod(from * (std::numbers::phi - 1), 1.0);
    int32_t begin = from;
    for (const LinkId& link : links_) {
      before += static_cast<double>(topology_.link(link).bandwidth_bytes_per_s);
      const int32_t end =
          &link == &links_.back() ? to : from + static_cast<int32_t>(before / all * (to - from) + turn);
      if (begin < end)
        schedule_.Add(ChunkId(int64_t{begin} * chunks_), (end - begin) * chunks_, src, dst,
                      std::span(&link, 1), TransferOp::kCopy, step_ + std::abs(k) - 1);
      begin = std::max(begin, end);
    }
  }

  const Topology& topology_;
  const Torus& torus_;
  const Batches batches_;
  const int32_t chunks_;
  int32_t delay_ = 1;             // steps from a batch to the next, and from a dimension to the next
  std::vector<Offsets> offsets_;  // of the batch, by dimension
  int32_t step_ = 0;
  std::vector<LinkId> links_;
  Schedule schedule_;
};

// Returns the group of the shifts along each dimension.
StatusOr<SymmetryGroup> ShiftsOf(const Topology& topology, const Grid& grid) {
  std::vector<Automorphism> shifts;
  for (size_t i = 0; i < grid.dims.size(); ++i) {
    Automorphism shift{.order = grid.dims[i],
                       .image = std::vector<NodeId>(static_cast<size_t>(topology.num_nodes()))};
    const int32_t stride = grid.Stride(i);
    for (int32_t r = 0; r < topology.num_ranks(); ++r) {
      const int32_t o = r / stride % grid.dims[i];
      const Rank next(r + ((o + 1) % grid.dims[i] - o) * stride);
      shift.image[topology.NodeOf(Rank(r)).index()] = topology.NodeOf(next);
    }
    shifts.push_back(std::move(shift));
  }
  StatusOr<SymmetryGroup> group = SymmetryGroup::Create(topology, std::move(shifts));
  if (!group.ok())
    return InvalidInput(
        fmt::format("{}: the links of a dimension differ; expected equal ones; hint: --engine=flow", kName));
  return group;
}

// A torus and the group of its shifts.
struct Found {
  Torus torus;
  SymmetryGroup group;
};

StatusOr<std::shared_ptr<const Found>> Find(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(Torus torus, TorusOf(request));
  XCCL_ASSIGN_OR_RETURN(SymmetryGroup group, ShiftsOf(*request.topology, torus.grid));
  return std::make_shared<const Found>(Found{std::move(torus), std::move(group)});
}

double BlockBytes(const SynthesisRequest& request) {
  return static_cast<double>(request.size_bytes) / request.topology->num_ranks();
}

StatusOr<Synthesis> PlanOn(const Found& found, const SynthesisRequest& request) {
  Collective cut = request.collective->WithChunks(request.limits.chunks.value_or(1));
  Schedule schedule = Translate(
      Writer(*request.topology, found.torus, BatchesOf(found.torus, BlockBytes(request)), cut).Write(),
      found.group);
  XCCL_RETURN_IF_ERROR(CheckSteps(kName, request, schedule.num_steps()));
  schedule = ExpandWhereSmall(std::move(schedule), cut, *request.topology);
  return Synthesis{std::move(cut), std::move(schedule), false, std::string(kName),
                   fmt::format("{} dimensions, one after another", found.torus.num_dims())};
}

StatusOr<Offer> OfferOf(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Found> found, Find(request));
  const Torus& torus = found->torus;
  double longest_ps = 0, all_ps = 0, hops = 0;
  for (size_t i = 0; i < torus.num_dims(); ++i) {
    const double side = torus.Size(i), mean = side / 4;
    const double share = side > 2 ? mean / 2 : 0.5;  // of a rank's data, over a link
    const double busy_ps = static_cast<double>(request.size_bytes) * share * torus.ps_per_byte[i];
    longest_ps = std::max(longest_ps, busy_ps);
    all_ps += busy_ps;
    hops += mean;
  }
  const auto batches = static_cast<double>(BatchesOf(torus, BlockBytes(request)).count);
  const double n = request.topology->num_ranks(), moves = n * hops * request.limits.chunks.value_or(1);
  const bool is_plain = n * moves <= static_cast<double>(kMostTransfers);
  Offer offer{.time_ps = torus.latency_ps + longest_ps + (all_ps - longest_ps) / batches,
              .work = static_cast<int64_t>(is_plain ? n * moves : moves)};
  offer.make = [found, &request](int64_t) { return PlanOn(*found, request); };
  return offer;
}

StatusOr<Synthesis> MakePlan(const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Found> found, Find(request));
  return PlanOn(*found, request);
}

}  // namespace

Engine TorusAlltoallEngine() {
  return {
      .name = kName,
      .summary =
          "alltoall along one dimension of a ring or torus after another; plans in microseconds; not exact",
      .family = EngineFamily::kExchanges,
      .kinds = {CollectiveKind::kAlltoall},
      .any_parts = true,
      .offer = OfferOf,
      .make = MakePlan};
}

}  // namespace xccl
