// Distances by one search a source; levels are distances where all hops cost 1, else the most hops of a
// shortest way, so that a step's senders have what they send from earlier steps. With translations only rank
// 0 receives: what it gets from source s over a hop is, taken by the translation from s to 0, what the image
// of rank 0 gets from source 0, and these are the columns of the compressed schedule.
//
// The columns of a step are ordered by how far, in domains and places, the receiver is from the sender, so
// that behind switches all send to different ranks at any time.
#include "synth/bfb/schedule.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/graph/grouped.h"
#include "base/status.h"

namespace xccl {
namespace {

constexpr int32_t kSteps = 16;  // of a wave

}  // namespace

// What a Receiver is shown, with the memory behind it.
struct BfbPlanner::View {
  std::vector<std::vector<int32_t>> rows;  // with symmetry
  std::vector<std::span<const int32_t>> via;
  std::vector<int32_t> order, sender_class;
  ReceiverView view;
};

BfbPlanner::BfbPlanner(const BfbNetwork& network, std::vector<Rank> sources, const SymmetryGroup* symmetry)
    : network_(network), symmetry_(symmetry), sources_(std::move(sources)) {
  const size_t ranks = static_cast<size_t>(network_.num_ranks()), n = sources_.size();
  source_of_rank_.assign(ranks, -1);
  for (size_t s = 0; s < n; ++s) source_of_rank_[sources_[s].index()] = static_cast<int32_t>(s);
  NumberDomains();
  if (symmetry_ != nullptr) {
    XCCL_CHECK(n == ranks && symmetry_->IsTransitive());
    const std::vector<int32_t> distance = network_.DistancesTo(Rank(0));
    for (const Rank r : sources_) distance_.push_back(distance[r.index()]);
  } else {
    distance_.resize(ranks * n);
    for (size_t s = 0; s < n; ++s) {
      const std::vector<int32_t> distance = network_.DistancesFrom(sources_[s]);
      for (size_t r = 0; r < ranks; ++r) distance_[r * n + s] = distance[r];
    }
  }
  const std::vector<int32_t> least(distance_.size(), 0);
  if (network_.HopsCostOne()) {
    level_ = distance_;
  } else {
    level_ = symmetry_ != nullptr ? LongestSeenFromOne(least) : Longest(least);
  }
  for (const int32_t level : level_) num_levels_ = std::max(num_levels_, level);
}

std::vector<int32_t> BfbPlanner::Longest(const std::vector<int32_t>& least) const {
  const size_t ranks = static_cast<size_t>(network_.num_ranks()), n = sources_.size();
  std::vector<int32_t> longest(distance_.size(), 0), nearest(ranks);
  for (size_t s = 0; s < n; ++s) {
    const auto distance = [&](int32_t r) { return distance_[static_cast<size_t>(r) * n + s]; };
    std::iota(nearest.begin(), nearest.end(), 0);
    std::sort(nearest.begin(), nearest.end(),
              [&](int32_t a, int32_t b) { return distance(a) < distance(b); });
    for (const int32_t r : nearest) {
      if (distance(r) <= 0) continue;
      const size_t here = static_cast<size_t>(r) * n + s;
      longest[here] = least[here];
      for (const InHop& hop : network_.In(Rank(r)))
        if (distance(hop.from.value) >= 0 && distance(hop.from.value) + hop.cost == distance(r))
          longest[here] = std::max(longest[here], longest[hop.from.index() * n + s] + 1);
    }
  }
  return longest;
}

std::vector<int32_t> BfbPlanner::LongestSeenFromOne(const std::vector<int32_t>& least) const {
  std::vector<int32_t> longest(distance_.size(), 0), nearest(sources_.size());
  std::iota(nearest.begin(), nearest.end(), 0);
  std::sort(nearest.begin(), nearest.end(),
            [&](int32_t a, int32_t b) { return distance_[a] < distance_[b]; });
  for (const int32_t s : nearest) {
    const size_t here = static_cast<size_t>(s);
    if (distance_[here] <= 0) continue;
    longest[here] = least[here];
    for (const InHop& hop : network_.In(Rank(0))) {
      const size_t seen = static_cast<size_t>(Translated(hop.from, s));
      if (distance_[seen] >= 0 && distance_[seen] + hop.cost == distance_[here])
        longest[here] = std::max(longest[here], longest[seen] + 1);
    }
  }
  return longest;
}

void BfbPlanner::SplitIntoWaves() {
  if (domains_ == 1 || num_levels_ == 1) return;
  std::vector<int32_t> least(distance_.size(), 0);
  const size_t n = sources_.size();
  for (size_t i = 0; i < least.size(); ++i) {
    const int32_t domain = domain_of_[i / n] - domain_of_[sources_[i % n].index()];
    least[i] = (domain + domains_) % domains_ * num_levels_ + level_[i];
  }
  wave_ = symmetry_ != nullptr ? LongestSeenFromOne(least) : Longest(least);
}

int32_t BfbPlanner::Translated(Rank from, int32_t source) const {
  const int64_t back = symmetry_->Inverse(symmetry_->ElementOf(from));
  return source_of_rank_[symmetry_->Image(back, sources_[static_cast<size_t>(source)]).index()];
}

void BfbPlanner::NumberDomains() {
  const RankGraph& graph = network_.graph();
  const size_t ranks = static_cast<size_t>(network_.num_ranks());
  domain_of_.assign(ranks, 0);
  place_of_.assign(ranks, 0);
  domains_ = graph.num_domains();
  std::vector<int32_t> size(static_cast<size_t>(domains_), 0);
  for (size_t r = 0; r < ranks; ++r) {
    domain_of_[r] = graph.Domain(Rank(static_cast<int32_t>(r)));
    place_of_[r] = size[static_cast<size_t>(domain_of_[r])]++;
  }
  places_ = *std::max_element(size.begin(), size.end());
  if (static_cast<size_t>(domains_) * static_cast<size_t>(places_) > 4 * ranks) {
    // Domains of very unlike sizes: one line of ranks.
    domains_ = 1;
    places_ = static_cast<int32_t>(ranks);
    std::fill(domain_of_.begin(), domain_of_.end(), 0);
    std::iota(place_of_.begin(), place_of_.end(), 0);
  }
  at_.assign(static_cast<size_t>(domains_) * static_cast<size_t>(places_), -1);
  for (size_t r = 0; r < ranks; ++r)
    at_[static_cast<size_t>(domain_of_[r] * places_ + place_of_[r])] = static_cast<int32_t>(r);
}

// All sources in the order of TurnKey(their rank, receiver).
void BfbPlanner::Turn(Rank receiver, std::vector<int32_t>& sources) const {
  sources.clear();
  for (int32_t i = 0; i < domains_; ++i)
    for (int32_t p = 0; p < places_; ++p) {
      const int32_t domain = (domain_of_[receiver.index()] + domains_ - i) % domains_;
      const int32_t place = (place_of_[receiver.index()] + places_ - p) % places_;
      const int32_t rank = at_[static_cast<size_t>(domain * places_ + place)];
      if (rank >= 0 && source_of_rank_[static_cast<size_t>(rank)] >= 0)
        sources.push_back(source_of_rank_[static_cast<size_t>(rank)]);
    }
}

int32_t BfbPlanner::TurnKey(Rank from, Rank to) const {
  const int32_t domains = (domain_of_[to.index()] - domain_of_[from.index()] + domains_) % domains_;
  const int32_t places = (place_of_[to.index()] - place_of_[from.index()] + places_) % places_;
  return domains * places_ + places;
}

// In waves every chunk of a part has steps of its own.
void BfbPlanner::ForEachStep(Rank receiver, const BfbPiece& piece, const BfbSources& sources,
                             const std::function<void(int32_t, ChunkRange)>& visit) const {
  if (wave_.empty()) return visit(piece.level - 1, piece.chunks);
  const size_t source = static_cast<size_t>(piece.source);
  const int32_t wave = wave_[receiver.index() * sources_.size() + source] - 1;
  const ChunkRange block = sources.block[source];
  for (int32_t c = piece.chunks.first; c < piece.chunks.first + piece.chunks.count; ++c)
    visit(wave * kSteps + (c - block.first) % kSteps, {c, 1});
}

BfbPlanner::View BfbPlanner::ViewOf(Rank receiver) const {
  View result;
  const size_t n = sources_.size();
  const std::span<const InHop> hops = network_.In(receiver);
  const RankGraph& graph = network_.graph();
  for (const InHop& hop : hops) {
    const LinkId first = graph.Links(hop.hop).front();
    result.sender_class.push_back(symmetry_ != nullptr ? symmetry_->OrbitOf(first) : first.value);
    if (symmetry_ == nullptr) result.via.push_back(std::span(distance_).subspan(hop.from.index() * n, n));
  }
  size_t row = receiver.index() * n;
  if (symmetry_ != nullptr) {
    row = 0;
    // What is one hop away needs no neighbour's distances.
    result.rows.resize(hops.size());
    for (size_t h = 0; h < hops.size() && num_levels_ > 1; ++h) {
      const int64_t back = symmetry_->Inverse(symmetry_->ElementOf(hops[h].from));
      for (const Rank source : sources_)
        result.rows[h].push_back(
            distance_[static_cast<size_t>(source_of_rank_[symmetry_->Image(back, source).index()])]);
    }
    result.via.assign(result.rows.begin(), result.rows.end());
  }
  Turn(receiver, result.order);
  result.view = {hops,
                 network_.PortSpeeds(receiver),
                 std::span(distance_).subspan(row, n),
                 std::span(level_).subspan(row, n),
                 result.via,
                 result.order,
                 result.sender_class};
  return result;
}

ReceiverLoad BfbPlanner::Score(const BfbSources& sources, bool level_by_level, int32_t most) const {
  std::vector<int32_t> receivers = {0};
  if (symmetry_ == nullptr) {
    // The slowest, and the rest evenly spaced.
    receivers.resize(static_cast<size_t>(network_.num_ranks()));
    std::iota(receivers.begin(), receivers.end(), 0);
    if (network_.num_ranks() > most) {
      const auto speed = [&](int32_t r) {
        const std::span<const double> speeds = network_.PortSpeeds(Rank(r));
        return std::accumulate(speeds.begin(), speeds.end(), 0.0);
      };
      std::stable_sort(receivers.begin(), receivers.end(),
                       [&](int32_t a, int32_t b) { return speed(a) < speed(b); });
      for (int32_t i = most / 2; i < most; ++i)
        receivers[static_cast<size_t>(i)] =
            receivers[static_cast<size_t>(int64_t{i} * network_.num_ranks() / most)];
      receivers.resize(static_cast<size_t>(most));
    }
  }
  Receiver receiver(sources, level_by_level);
  std::vector<int64_t> sent(static_cast<size_t>(network_.graph().topology().num_links()), 0);
  std::vector<BfbPiece> pieces;
  ReceiverLoad worst;
  for (const int32_t r : receivers) {
    pieces.clear();
    const View view = ViewOf(Rank(r));
    const ReceiverLoad load = receiver.Plan(view.view, sent, pieces);
    worst.level_by_level = std::max(worst.level_by_level, load.level_by_level);
    worst.in_all = std::max(worst.in_all, load.in_all);
  }
  return worst;
}

Schedule BfbPlanner::Make(const BfbSources& sources, bool level_by_level, int32_t num_chunks) const {
  return symmetry_ != nullptr ? MakeCompressed(sources, level_by_level, num_chunks)
                              : MakePlain(sources, level_by_level, num_chunks);
}

Schedule BfbPlanner::MakePlain(const BfbSources& sources, bool level_by_level, int32_t num_chunks) const {
  struct Item {
    ChunkRange chunks;
    HopId hop;
    int32_t step, key;
  };
  const RankGraph& graph = network_.graph();
  Receiver receiver(sources, level_by_level);
  std::vector<int64_t> sent(static_cast<size_t>(graph.topology().num_links()), 0);
  std::vector<BfbPiece> pieces;
  std::vector<Item> items;
  for (int32_t r = 0; r < network_.num_ranks(); ++r) {
    pieces.clear();
    const View view = ViewOf(Rank(r));
    receiver.Plan(view.view, sent, pieces);
    // So that neighbouring ranges of one message stand together.
    std::sort(pieces.begin(), pieces.end(), [](const BfbPiece& a, const BfbPiece& b) {
      return std::tie(a.level, a.hop, a.chunks.first) < std::tie(b.level, b.hop, b.chunks.first);
    });
    for (const BfbPiece& piece : pieces) {
      const InHop& hop = view.view.hops[static_cast<size_t>(piece.hop)];
      const int32_t key = TurnKey(hop.from, Rank(r));
      ForEachStep(Rank(r), piece, sources, [&](int32_t step, ChunkRange chunks) {
        items.push_back({chunks, hop.hop, step, key});
      });
    }
  }
  const auto by_key = GroupItems<int32_t, int64_t>(at_.size(), [&](auto add) {
    for (size_t i = 0; i < items.size(); ++i) add(items[i].key, static_cast<int32_t>(i));
  });

  Schedule schedule;
  schedule.num_chunks = num_chunks;
  schedule.Reserve(static_cast<int64_t>(items.size()));
  std::vector<int32_t> path(static_cast<size_t>(graph.num_hops()), -1);
  for (const int32_t i : by_key.items) {
    const Item& item = items[static_cast<size_t>(i)];
    int32_t& id = path[item.hop.index()];
    if (id < 0) id = schedule.paths.Intern(graph.Links(item.hop)).value;
    const Hop& hop = graph.hop(item.hop);
    schedule.Add(Transfer{ChunkId(item.chunks.first), item.chunks.count, hop.from, hop.to, PathId(id),
                          TransferOp::kCopy, item.step});
  }
  Normalize(schedule);
  return schedule;
}

Schedule BfbPlanner::MakeCompressed(const BfbSources& sources, bool level_by_level,
                                    int32_t num_chunks) const {
  const RankGraph& graph = network_.graph();
  Receiver receiver(sources, level_by_level);
  std::vector<int64_t> sent(static_cast<size_t>(graph.topology().num_links()), 0);
  std::vector<BfbPiece> pieces;
  const View view = ViewOf(Rank(0));
  receiver.Plan(view.view, sent, pieces);
  const auto key = [&](const BfbPiece& piece) {
    return std::tuple(piece.level, TurnKey(view.view.hops[static_cast<size_t>(piece.hop)].from, Rank(0)),
                      piece.hop);
  };
  std::stable_sort(pieces.begin(), pieces.end(),
                   [&](const BfbPiece& a, const BfbPiece& b) { return key(a) < key(b); });

  const ChunkRange own = sources.block[static_cast<size_t>(source_of_rank_[0])];
  Schedule schedule;
  schedule.num_chunks = num_chunks;
  schedule.symmetry = symmetry_->generators();
  schedule.Reserve(static_cast<int64_t>(pieces.size()));
  std::vector<LinkId> links;
  for (const BfbPiece& piece : pieces) {
    const size_t source = static_cast<size_t>(piece.source);
    const int64_t home = symmetry_->Inverse(symmetry_->ElementOf(sources_[source]));
    const InHop& hop = view.view.hops[static_cast<size_t>(piece.hop)];
    links.clear();
    for (const LinkId l : graph.Links(hop.hop)) links.push_back(symmetry_->Image(home, l));
    const int32_t offset = own.first - sources.block[source].first;
    const Rank from = symmetry_->Image(home, hop.from), to = symmetry_->Image(home, Rank(0));
    const PathId path = schedule.paths.Intern(links);
    ForEachStep(Rank(0), piece, sources, [&](int32_t step, ChunkRange chunks) {
      schedule.Add(
          Transfer{ChunkId(chunks.first + offset), chunks.count, from, to, path, TransferOp::kCopy, step});
    });
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl
