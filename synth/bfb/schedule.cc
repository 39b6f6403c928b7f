// 1. The constructor finds the distances by one search from each source. Level d is the data that starts d
//    hops away.
// 2. SplitIntoWaves gives the data of a source a later wave at each rank than at the ranks one hop before.
// 3. Make plans every receiver with PlanReceiver and turns each piece into a transfer.
// 4. With translations Make plans only rank 0. The translation that takes source s to rank 0 turns a transfer
//    of s's data to rank 0 into a transfer of rank 0's data to another rank. The compressed schedule consists
//    of the turned transfers.
// 5. Make sorts the transfers of a step by TurnKey. Behind a switch all ranks then send to different ranks.
#include "synth/bfb/schedule.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/graph/grouped.h"
#include "base/status.h"

namespace xccl {
namespace {

// A transfer and the TurnKey by which the transfers of a step are sorted.
struct Item {
  int32_t key;
  Transfer transfer;
};

}  // namespace

BfbPlanner::BfbPlanner(const BfbNetwork& network, std::span<const BfbSource> sources,
                       const SymmetryGroup* symmetry)
    : network_(network), symmetry_(symmetry) {
  const size_t ranks = static_cast<size_t>(network_.num_ranks()), n = sources.size();
  source_of_rank_.assign(ranks, -1);
  for (const BfbSource& source : sources) {
    source_of_rank_[source.rank.index()] = static_cast<int32_t>(sources_.size());
    sources_.push_back(source.rank);
  }
  NumberDomains();
  if (symmetry_ != nullptr) {
    XCCL_CHECK(n == ranks && symmetry_->IsTransitive());
    const std::vector<int32_t> distance = network_.Distances(Rank(0), true);
    for (const Rank r : sources_) distance_.push_back(distance[r.index()]);
  } else {
    distance_.resize(ranks * n);
    for (size_t s = 0; s < n; ++s) {
      const std::vector<int32_t> distance = network_.Distances(sources_[s], false);
      for (size_t r = 0; r < ranks; ++r) distance_[r * n + s] = distance[r];
    }
  }
  for (const int32_t distance : distance_) num_levels_ = std::max(num_levels_, distance);
}

size_t BfbPlanner::At(Rank rank, size_t source) const {
  if (symmetry_ == nullptr) return rank.index() * sources_.size() + source;
  const int64_t back = symmetry_->Inverse(symmetry_->ElementOf(rank));
  return static_cast<size_t>(source_of_rank_[symmetry_->Image(back, sources_[source]).index()]);
}

void BfbPlanner::SplitIntoWaves() {
  if (domains_ == 1 || num_levels_ == 1) return;
  const size_t n = sources_.size();
  for (size_t i = 0; i < distance_.size(); ++i) {
    const int32_t domain = domain_of_[i / n] - domain_of_[sources_[i % n].index()];
    wave_.push_back((domain + domains_) % domains_ * num_levels_ + distance_[i]);
  }
  // A rank relays data in a later wave than the wave that brought the data.
  const auto nearest_first =
      GroupItems<int32_t, int64_t>(static_cast<size_t>(num_levels_) + 1, [&](auto add) {
        for (size_t i = 0; i < distance_.size(); ++i)
          if (distance_[i] > 0) add(distance_[i], static_cast<int32_t>(i));
      });
  for (const int32_t i : nearest_first.items) {
    const size_t here = static_cast<size_t>(i);
    for (const InHop& hop : network_.In(Rank(static_cast<int32_t>(here / n)))) {
      const size_t before = At(hop.from, here % n);
      if (distance_[before] >= 0 && distance_[before] + 1 == distance_[here])
        wave_[here] = std::max(wave_[here], wave_[before] + 1);
    }
  }
}

void BfbPlanner::NumberDomains() {
  const RankGraph& graph = network_.graph();
  const size_t ranks = static_cast<size_t>(network_.num_ranks());
  domains_ = graph.num_domains();
  std::vector<int32_t> size(static_cast<size_t>(domains_), 0);
  for (size_t r = 0; r < ranks; ++r) {
    domain_of_.push_back(graph.Domain(Rank(static_cast<int32_t>(r))));
    place_of_.push_back(size[static_cast<size_t>(domain_of_[r])]++);
  }
  places_ = *std::max_element(size.begin(), size.end());
  if (static_cast<size_t>(domains_) * static_cast<size_t>(places_) > 4 * ranks) {
    // Places do not correspond in domains of very different sizes. All ranks are then made one domain.
    domains_ = 1;
    places_ = static_cast<int32_t>(ranks);
    std::fill(domain_of_.begin(), domain_of_.end(), 0);
    std::iota(place_of_.begin(), place_of_.end(), 0);
  }
}

int32_t BfbPlanner::TurnKey(Rank from, Rank to) const {
  const int32_t domains = (domain_of_[to.index()] - domain_of_[from.index()] + domains_) % domains_;
  const int32_t places = (place_of_[to.index()] - place_of_[from.index()] + places_) % places_;
  return domains * places_ + places;
}

ReceiverView BfbPlanner::ViewOf(Rank receiver) const {
  const size_t n = sources_.size();
  ReceiverView view{.hops = network_.In(receiver),
                    .speeds = network_.PortSpeeds(receiver),
                    .distance = std::span(distance_).subspan(receiver.index() * n, n)};
  for (const InHop& hop : view.hops) {
    const LinkId first = network_.graph().Links(hop.hop).front();
    view.sender_class.push_back(symmetry_ != nullptr ? symmetry_->OrbitOf(first) : first.value);
    if (symmetry_ == nullptr) {
      view.via.push_back(std::span(distance_).subspan(hop.from.index() * n, n));
    } else {
      std::vector<int32_t>& row = view.rows.emplace_back();
      for (size_t s = 0; s < n; ++s) row.push_back(distance_[At(hop.from, s)]);
    }
  }
  if (symmetry_ != nullptr) view.via.assign(view.rows.begin(), view.rows.end());
  view.order = GroupItems<int32_t>(static_cast<size_t>(domains_ * places_), [&](auto add) {
                 for (size_t s = 0; s < n; ++s) add(TurnKey(sources_[s], receiver), static_cast<int32_t>(s));
               }).items;
  return view;
}

double BfbPlanner::Score(std::span<const BfbSource> sources, bool level_by_level, int32_t most) const {
  const int32_t ranks = network_.num_ranks(), receivers = symmetry_ != nullptr ? 1 : std::min(ranks, most);
  std::vector<int64_t> sent(static_cast<size_t>(network_.graph().topology().num_links()), 0);
  std::vector<BfbPiece> pieces;
  double worst = 0;
  for (int32_t i = 0; i < receivers; ++i) {
    pieces.clear();
    const ReceiverView view = ViewOf(Rank(static_cast<int32_t>(int64_t{i} * ranks / receivers)));
    worst = std::max(worst, PlanReceiver(sources, view, level_by_level, sent, pieces));
  }
  return worst;
}

Schedule BfbPlanner::Make(std::span<const BfbSource> sources, bool level_by_level, int32_t num_chunks) const {
  const RankGraph& graph = network_.graph();
  std::vector<int64_t> sent(static_cast<size_t>(graph.topology().num_links()), 0);
  std::vector<BfbPiece> pieces;
  std::vector<Item> items;
  int32_t steps = 1;  // steps of a wave: one for each chunk of the largest block
  for (const BfbSource& source : sources) steps = std::max(steps, source.block.count);
  std::vector<LinkId> links;
  Schedule schedule;
  schedule.num_chunks = num_chunks;
  if (symmetry_ != nullptr) schedule.symmetry = symmetry_->generators();
  for (int32_t r = 0; r < (symmetry_ != nullptr ? 1 : network_.num_ranks()); ++r) {
    pieces.clear();
    const ReceiverView view = ViewOf(Rank(r));
    PlanReceiver(sources, view, level_by_level, sent, pieces);
    // Puts neighbouring ranges of one message next to each other.
    std::ranges::stable_sort(pieces, {}, [&](const BfbPiece& piece) {
      return std::tuple(view.distance[static_cast<size_t>(piece.source)], piece.hop,
                        symmetry_ != nullptr ? 0 : piece.chunks.first);
    });
    for (const BfbPiece& piece : pieces) {
      const InHop& hop = view.hops[static_cast<size_t>(piece.hop)];
      const size_t source = static_cast<size_t>(piece.source);
      const ChunkRange block = sources[source].block;
      const int64_t home =
          symmetry_ != nullptr ? symmetry_->Inverse(symmetry_->ElementOf(sources_[source])) : 0;
      const auto image = [&](auto place) {
        return symmetry_ != nullptr ? symmetry_->Image(home, place) : place;
      };
      const int32_t moved = symmetry_ != nullptr
                                ? sources[static_cast<size_t>(source_of_rank_[0])].block.first - block.first
                                : 0;
      links.clear();
      for (const LinkId l : graph.Links(hop.hop)) links.push_back(image(l));
      const PathId path = schedule.paths.Intern(links);
      const auto add = [&](int32_t step, int32_t first, int32_t count) {
        items.push_back({TurnKey(hop.from, Rank(r)),
                         {ChunkId(first + moved), count, image(hop.from), image(Rank(r)), path,
                          TransferOp::kCopy, step}});
      };
      if (wave_.empty()) {
        add(view.distance[source] - 1, piece.chunks.first, piece.chunks.count);
        continue;
      }
      // In a wave each chunk of a block has its own step.
      const int32_t wave = wave_[static_cast<size_t>(r) * sources_.size() + source] - 1;
      for (int32_t c = piece.chunks.first; c < piece.chunks.first + piece.chunks.count; ++c)
        add(wave * steps + c - block.first, c, 1);
    }
  }
  const auto by_key = GroupItems<int32_t, int64_t>(static_cast<size_t>(domains_ * places_), [&](auto add) {
    for (size_t i = 0; i < items.size(); ++i) add(items[i].key, static_cast<int32_t>(i));
  });
  schedule.Reserve(static_cast<int64_t>(items.size()));
  for (const int32_t i : by_key.items) schedule.Add(items[static_cast<size_t>(i)].transfer);
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl
