// A group is a coset of the subgroup of the innermost levels. Each group gets one piece. Owners of successive
// groups stand at different places in their groups, so that all ranks are busy. If the levels inside a group
// have links of their own, the root first hands a piece to a relay: the rank of the root's group that stands
// where the owner stands in the owner's group. All NICs of the root's host then deal pieces.
#include "synth/levels/deal.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "synth/levels/send.h"

namespace xccl {
namespace {

double SecondsOfByte(const PeerPath& path, const Topology& topology) {
  int64_t narrowest = std::numeric_limits<int64_t>::max();
  for (const LinkId l : path.links) narrowest = std::min(narrowest, topology.link(l).bandwidth_bytes_per_s);
  return 1 / static_cast<double>(narrowest);
}

}  // namespace

StatusOr<Dealing> Dealing::Create(const LevelFinder& finder, const Levels& levels, const Topology& topology,
                                  const SymmetryGroup& group, int64_t most_transfers,
                                  std::string_view engine) {
  const int64_t n = group.order();
  Dealing made;
  made.finder_ = &finder;
  made.levels_ = &levels;
  made.topology_ = &topology;
  made.group_ = &group;
  const auto inside = [&](size_t level) { return level < levels.size() ? levels[level].inside : n; };
  made.inner_ = levels.size() > 1 ? 1 : 0;
  while (made.inner_ + 1 < levels.size() && n / inside(made.inner_) * n > most_transfers) ++made.inner_;
  made.inside_ = inside(made.inner_);
  made.pieces_ = static_cast<int32_t>(n / made.inside_);
  if (made.pieces_ * n > most_transfers)
    return LimitReached(fmt::format("{}: {} pieces for each of {} ranks; expected at most {} transfers",
                                    engine, made.pieces_, n, most_transfers));
  const int64_t all[] = {n};
  XCCL_ASSIGN_OR_RETURN(Levels direct, finder.Make(all, engine));
  made.direct_ = std::move(direct.front());
  made.way_to_.assign(static_cast<size_t>(n), -1);
  for (size_t p = 0; p < made.direct_.peers.size(); ++p)
    made.way_to_[static_cast<size_t>(made.direct_.peers[p].from[0].element)] = static_cast<int32_t>(p);
  made.relays_ = made.inner_ > 0;
  for (size_t i = 0; i < made.inner_; ++i)
    for (size_t o = made.inner_; o < levels.size(); ++o)
      made.relays_ &= !ShareLinks(levels[i], levels[o], group);
  return made;
}

double Dealing::TimePs(int64_t size_bytes) const {
  const double piece_bytes = static_cast<double>(size_bytes) / pieces_;
  const auto add = [&](const Level& level, double pieces_of_sender, double& time_ps) {
    int64_t farthest_ps = 0;
    double bytes_ps = 0;
    for (const Peer& peer : level.peers) {
      farthest_ps = std::max(farthest_ps, peer.from[0].latency_ps);
      bytes_ps += pieces_of_sender * piece_bytes * SecondsOfByte(peer.from[0], *topology_) * 1e12;
    }
    time_ps += static_cast<double>(farthest_ps) + bytes_ps;
  };
  double time_ps = 0;
  // The root's links alone deal the pieces or, with relays, the links of all ranks of its group.
  Level dealt;
  for (size_t p = 0; p < direct_.peers.size(); p += static_cast<size_t>(inside_))
    dealt.peers.push_back(direct_.peers[p]);
  add(dealt, relays_ ? 1.0 / static_cast<double>(inside_) : 1, time_ps);
  double copies = pieces_;  // of all pieces together, before the level sends
  for (size_t i = levels_->size(); i-- > 0;) {
    const Level& level = (*levels_)[i];
    add(level, std::max(1.0, copies / static_cast<double>(group_->order())), time_ps);
    copies *= static_cast<double>(level.peers.size() + 1);
  }
  return time_ps;
}

// Adds the transfers of one piece.
class Dealing::Piece {
 public:
  Piece(const Dealing& of, int64_t root, int32_t chunk, Schedule& schedule)
      : of_(of), group_(*of.group_), root_(root), chunk_(chunk), schedule_(schedule) {}

  // `outer` takes the root's group to the owner's group. `inner` takes the root to the rank of its group that
  // stands where the owner stands in the owner's group.
  void Send(int64_t outer, int64_t inner) {
    const Place root{root_, -1};
    Place home = root, owner = root;
    if (outer != 0) {
      if (of_.relays_ && inner != 0) home = Direct(root, inner);
      const int64_t way = of_.relays_ ? outer : group_.Compose(outer, inner);
      owner = Direct(home, way);
    }
    std::vector<Place> held = {owner};
    for (size_t i = of_.levels_->size(); i-- > of_.inner_;) Spread((*of_.levels_)[i], root, home, held);
    for (size_t i = of_.inner_; i-- > 0;) Spread((*of_.levels_)[i], root, root, held);
  }

 private:
  Place Direct(const Place& from, int64_t way) {
    return Add(from, of_.direct_.peers[static_cast<size_t>(of_.way_to_[static_cast<size_t>(way)])].from[0],
               std::max(from.step + 1, chunk_));
  }

  Place Add(const Place& from, const PeerPath& path, int32_t step) {
    std::vector<LinkId> links;
    for (const LinkId l : path.links) links.push_back(group_.Image(from.element, l));
    const Place to{group_.Compose(from.element, path.element), step};
    schedule_.Add({ChunkId(chunk_), 1, group_.Image(from.element, Rank(0)), group_.Image(to.element, Rank(0)),
                   schedule_.paths.Intern(links), TransferOp::kCopy, step});
    return to;
  }

  // Returns whether the inner levels, which join `inside` ranks each, join the ranks of these two elements.
  bool AreTogether(int64_t element, int64_t place, int64_t inside) const {
    return of_.finder_->Has(group_.Compose(group_.Inverse(place), element), inside);
  }

  // Each rank that holds the piece sends it to its peers of the level. The root is not sent the piece,
  // because it has it. If there is a relay, `home`, the root's whole group is not sent the piece: the relay
  // is the group's holder.
  void Spread(const Level& level, const Place& root, const Place& home, std::vector<Place>& held) {
    const size_t before = held.size();
    for (size_t p = 0; p < level.peers.size(); ++p) {
      const PeerPath& path = level.peers[p].from[0];
      for (size_t i = 0; i < before; ++i) {
        const int64_t to = group_.Compose(held[i].element, path.element);
        if (to == root.element)
          held.push_back(root);
        else if (home.element != root.element && AreTogether(to, root.element, level.inside))
          held.push_back(home);
        else
          held.push_back(Add(held[i], path, held[i].step + 1 + static_cast<int32_t>(p)));
      }
    }
  }

  const Dealing& of_;
  const SymmetryGroup& group_;
  const int64_t root_;
  const int32_t chunk_;
  Schedule& schedule_;
};

Schedule Dealing::From(Rank root) const {
  std::vector<int64_t> outer = {0};
  for (size_t i = inner_; i < levels_->size(); ++i) {
    const size_t before = outer.size();
    for (const Peer& peer : (*levels_)[i].peers)
      for (size_t k = 0; k < before; ++k) outer.push_back(group_->Compose(outer[k], peer.from[0].element));
  }
  Schedule schedule;
  schedule.num_chunks = pieces_;
  schedule.Reserve(pieces_ * group_->order());
  const std::span<const int64_t> inner = finder_->Subgroup(inside_);
  // Pieces of far groups are dealt first, and the root keeps the last one.
  for (int32_t i = 0; i < pieces_; ++i) {
    const auto number = static_cast<size_t>(pieces_ - 1 - i);
    Piece(*this, group_->ElementOf(root), i, schedule).Send(outer[number], inner[number % inner.size()]);
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl
