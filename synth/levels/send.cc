// The columns move the data of the representative of each kind of ranks, the data's owner. For each owner,
// held_ lists the ranks that hold its data: those with a copy or, in an alltoall, those that send the data
// on. Each level adds the peers of all ranks in the list.
#include "synth/levels/send.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "ir/translated.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

// The most batches of a level. A level begins once the level before has brought the first batch, and ends
// after the last one. Two levels that take equal times then take 1/64 longer together than one of them.
constexpr double kMostBatches = 64;

// A rank that holds an owner's data.
struct Held {
  int32_t kind = 0;     // of the rank
  int64_t element = 0;  // takes the representative of the kind to the rank
  int32_t step = -1;    // of the transfer that brought the data
};

struct ChunkRun {
  int32_t first = 0, count = 0;
};

class Sender {
 public:
  Sender(const Levels& levels, const Topology& topology, const SymmetryGroup& group, const Collective& cut,
         int64_t size_bytes, int32_t tree)
      : levels_(levels),
        topology_(topology),
        group_(group),
        cut_(cut),
        block_bytes_(static_cast<double>(size_bytes) / cut.num_members()),
        of_pairs_(TraitsOf(cut.kind()).parts == KindTraits::Parts::kPerPair),
        tree_(tree),
        chunks_(static_cast<int32_t>(ChunksOfBlock(cut))) {}

  Schedule Run() {
    schedule_.num_chunks = cut_.num_chunks();
    schedule_.Reserve(group_.num_rank_orbits() * int64_t{cut_.num_members()});
    for (int32_t kind = 0; kind < group_.num_rank_orbits(); ++kind) held_.push_back({{kind, 0, -1}});
    if (of_pairs_) FindInside();
    for (size_t i = levels_.size(); i-- > 0;) {
      const bool shares =
          std::any_of(levels_.begin() + static_cast<std::ptrdiff_t>(i) + 1, levels_.end(),
                      [&](const Level& outer) { return ShareLinks(levels_[i], outer, group_); });
      if (!shares) MakeRoom(levels_[i].rounds());
      level_ = i;
      Send(levels_[i]);
    }
    return Translate(std::move(schedule_), group_);
  }

 private:
  // Inserts so many empty steps before each step, for a level that shares no link with outer levels. All its
  // rounds then come between the step that brings data and the next step. Played backwards, a sum is complete
  // before the next sum begins.
  void MakeRoom(int32_t steps) {
    for (int32_t& step : schedule_.step)
      step = (step / chunks_ * (steps + 1) + steps) * chunks_ + step % chunks_;
    for (std::vector<Held>& of_kind : held_)
      for (Held& held : of_kind) held.step = (held.step + 1) * (steps + 1) - 1;
    steps_ *= steps + 1;
    round_ = steps + 1;
  }

  // Adds a level's transfers. Ranks send data on in batches of rounds, in the order in which it arrives.
  // Ranks of all kinds send in the same order. In a step, each rank thus receives from one rank only.
  void Send(const Level& level) {
    const int32_t batch = RoundsOfBatch(level) * round_;
    const size_t before = held_.front().size();
    if (!level.trees.empty()) {
      for (const Held& held : held_.front()) SendToAll(level, held, (held.step + batch) / batch * batch);
      return;
    }
    for (size_t p = 0; p < level.peers.size(); ++p) {
      for (size_t i = 0; i < before; ++i) {
        for (int32_t owner = 0; owner < group_.num_rank_orbits(); ++owner) {
          std::vector<Held>& held = held_[static_cast<size_t>(owner)];
          const int32_t ready = (held[i].step + batch) / batch * batch;
          held.push_back(Add(level.peers[p], owner, held[i], ready + static_cast<int32_t>(p)));
          steps_ = std::max(steps_, held.back().step + 1);
        }
      }
    }
  }

  // Returns how many rounds of the outer levels make a batch. A batch brings the bytes that fill a message of
  // this level. There are at most kMostBatches batches.
  int32_t RoundsOfBatch(const Level& level) const {
    const double chunks = of_pairs_ ? static_cast<double>(level.inside) : 1;
    const double round_bytes =
        block_bytes_ * chunks * static_cast<double>(held_.front().size()) * round_ / std::max(round_, steps_);
    int64_t least = 1;
    for (const Peer& peer : level.peers)
      for (const PeerPath& path : peer.from)
        for (const LinkId l : path.links)
          least = std::max(least, LeastUsefulBytes(topology_.link(l).bandwidth_bytes_per_s));
    const double rounds = static_cast<double>(least) / std::max(round_bytes, 1e-3);
    const double all = std::max(1.0, static_cast<double>(steps_) / round_);
    return static_cast<int32_t>(std::clamp(std::ceil(rounds), std::ceil(all / kMostBatches), std::ceil(all)));
  }

  // Adds the transfer of the owner's data from a rank to its peer. Returns the peer, which
  // then holds the data.
  Held Add(const Peer& peer, int32_t owner, Held from, int32_t step) {
    const PeerPath& way = peer.from[static_cast<size_t>(from.kind)];
    const Held to = At(peer, from, step);
    links_.clear();
    for (const LinkId l : way.links) links_.push_back(group_.Image(from.element, l));
    const PathId path = schedule_.paths.Intern(links_);
    const Rank src = RankAt(from), dst = RankAt(to);
    // Each chunk of a block has a step of its own, so that messages of several ranks take turns on a link.
    for (const ChunkRun& run : Chunks(owner, to))
      for (int32_t c = 0; c < chunks_; ++c)
        for (int32_t b = 0; b < (chunks_ == 1 ? 1 : run.count); b += chunks_)
          schedule_.Add({ChunkId(run.first + b + c), chunks_ == 1 ? run.count : 1, src, dst, path,
                         TransferOp::kCopy, step * chunks_ + c});
    return to;
  }

  // Adds the transfer of rank 0's data from a rank to all its peers, through a switch. The level is the
  // innermost one, so no rank sends the data on, and held_ stays as it is.
  void SendToAll(const Level& level, const Held& from, int32_t step) {
    links_.clear();
    for (const LinkId l : level.trees[static_cast<size_t>(tree_) % level.trees.size()])
      links_.push_back(group_.Image(from.element, l));
    const Rank src = group_.Image(from.element, Rank(0)),
               dst = *topology_.RankOf(topology_.link(links_[1]).to);
    for (const ChunkRun& run : Chunks(0, from))
      for (int32_t c = 0; c < run.count; ++c)
        schedule_.Add(ChunkId(run.first + c), 1, src, dst, links_, TransferOp::kCopy, step * chunks_ + c);
    steps_ = std::max(steps_, step + 1);
  }

  // Returns a rank's peer, which gets the data in this step.
  Held At(const Peer& peer, const Held& from, int32_t step) const {
    return {(from.kind + peer.turn) % group_.num_rank_orbits(),
            group_.Compose(from.element, peer.from[static_cast<size_t>(from.kind)].element), step};
  }
  Rank RankAt(const Held& held) const { return group_.Image(held.element, group_.Representative(held.kind)); }

  void FindInside() {
    std::vector<std::vector<Held>> reached;
    for (int32_t kind = 0; kind < group_.num_rank_orbits(); ++kind) reached.push_back({{kind, 0, -1}});
    for (const Level& level : levels_) {
      inside_.push_back(reached);
      if (inside_.size() == levels_.size()) break;
      for (size_t kind = 0; kind < reached.size(); ++kind)
        for (const Peer& peer : level.peers) {
          const Held to = At(peer, inside_.back()[kind].front(), -1);
          for (const Held& from_there : inside_.back()[static_cast<size_t>(to.kind)])
            reached[kind].push_back({from_there.kind, group_.Compose(to.element, from_there.element), -1});
        }
    }
  }

  // Returns the owner's chunks that a rank needs from it for itself and, in an alltoall,
  // for the levels inside.
  std::span<const ChunkRun> Chunks(int32_t owner, const Held& rank) {
    runs_.clear();
    const int32_t n = cut_.num_members(), own = *cut_.MemberIndex(group_.Representative(owner));
    if (!of_pairs_) {
      runs_.push_back({own * chunks_, chunks_});
      return runs_;
    }
    members_.clear();
    for (const Held& inside : inside_[level_][static_cast<size_t>(rank.kind)])
      members_.push_back(
          *cut_.MemberIndex(RankAt({inside.kind, group_.Compose(rank.element, inside.element), -1})));
    std::ranges::sort(members_);
    for (const int32_t m : members_) {
      const PartId part(int64_t{own} * n + m);
      const ChunkRun run{cut_.FirstChunk(part).value, cut_.ChunksOf(part)};
      if (!runs_.empty() && runs_.back().first + runs_.back().count == run.first)
        runs_.back().count += run.count;
      else
        runs_.push_back(run);
    }
    return runs_;
  }

  const Levels& levels_;
  const Topology& topology_;
  const SymmetryGroup& group_;
  const Collective& cut_;
  const double block_bytes_;
  const bool of_pairs_;
  const int32_t tree_;    // number of the tree that a level of trees uses, modulo their number
  const int32_t chunks_;  // of a block
  Schedule schedule_;
  std::vector<std::vector<Held>> held_;  // by kind of the owner
  // In an alltoall, inside_[i][k] lists the ranks to which the representative of kind k sends data on over
  // the levels inside level i: itself first.
  std::vector<std::vector<std::vector<Held>>> inside_;
  size_t level_ = 0;  // index of the level that is sent over
  int32_t steps_ = 0;
  int32_t round_ = 1;  // steps from a round of the outer levels to the next round
  std::vector<LinkId> links_;
  std::vector<ChunkRun> runs_;
  std::vector<int32_t> members_;
};

// Calls f(path) for the paths of all peers from all kinds of ranks.
template <typename F>
void ForPaths(const Level& level, F f) {
  for (const Peer& peer : level.peers)
    for (const PeerPath& path : peer.from) f(path);
}

}  // namespace

int64_t ChunksOfBlock(const Collective& cut) {
  const bool of_pairs = TraitsOf(cut.kind()).parts == KindTraits::Parts::kPerPair;
  return cut.num_chunks() / cut.num_members() / (of_pairs ? cut.num_members() : 1);
}

bool ShareLinks(const Level& a, const Level& b, const SymmetryGroup& group) {
  std::vector<int32_t> orbits;
  ForPaths(a, [&](const PeerPath& path) {
    for (const LinkId l : path.links) orbits.push_back(group.OrbitOf(l));
  });
  std::ranges::sort(orbits);
  bool shares = false;
  ForPaths(b, [&](const PeerPath& path) {
    for (const LinkId l : path.links) shares |= std::ranges::binary_search(orbits, group.OrbitOf(l));
  });
  return shares;
}

Status CheckChunkIds(const SymmetryGroup& group, const Collective& cut, std::string_view engine) {
  for (int32_t kind = 0; kind < group.num_rank_orbits(); ++kind) {
    const Rank lowest = group.Representative(kind);
    const int64_t of_rank = cut.num_chunks() / cut.num_members(),
                  last = of_rank * (*cut.MemberIndex(lowest) + 1) - 1;
    if (last >= std::numeric_limits<int32_t>::max())
      return InvalidInput(
          fmt::format("{}: chunk {} of rank {}, the lowest of its kind; chunks are known up to 2^31-1",
                      engine, last, lowest.value));
  }
  return OkStatus();
}

Schedule SendOverLevels(const Levels& levels, const Topology& topology, const SymmetryGroup& group,
                        const Collective& cut, int64_t size_bytes, int32_t tree) {
  return Sender(levels, topology, group, cut, size_bytes, tree).Run();
}

LevelsCost CostOverLevels(const Levels& levels, const Topology& topology, const SymmetryGroup& group,
                          const Collective& cut, int64_t size_bytes) {
  const double n = cut.num_members(), block_bytes = static_cast<double>(size_bytes) / n;
  const bool of_pairs = TraitsOf(cut.kind()).parts == KindTraits::Parts::kPerPair;
  LevelsCost cost;
  cost.load_ps.assign(static_cast<size_t>(group.num_link_orbits()), 0);
  for (const Level& level : levels) {
    const double cosets = static_cast<double>(level.peers.size() + 1);
    // The blocks that a rank sends to each peer: all that outer levels have brought it. In an alltoall, outer
    // levels have brought as many blocks for each of the `inside` ranks around the peer.
    const double blocks = of_pairs ? n / cosets : n / cosets / static_cast<double>(level.inside);
    int64_t farthest_ps = 0;
    const auto add = [&](LinkId l, double times) {
      const int32_t orbit = group.OrbitOf(l);
      const double link_ps =
          times * block_bytes * 1e12 / static_cast<double>(topology.link(l).bandwidth_bytes_per_s);
      cost.load_ps[static_cast<size_t>(orbit)] += link_ps * group.LinkShare(orbit);
      cost.links_ps += link_ps * static_cast<double>(group.order());
    };
    ForPaths(level, [&](const PeerPath& path) {
      farthest_ps = std::max(farthest_ps, path.latency_ps);
      for (const LinkId l : path.links)
        if (level.trees.empty()) add(l, blocks);
    });
    for (const std::vector<LinkId>& tree : level.trees)
      for (const LinkId l : tree) add(l, blocks / static_cast<double>(level.trees.size()));
    cost.latency_ps += static_cast<double>(farthest_ps);
  }
  cost.time_ps = cost.latency_ps + (cost.load_ps.empty() ? 0 : *std::ranges::max_element(cost.load_ps));
  return cost;
}

}  // namespace xccl
