#include "ir/testing/trees.h"

#include <algorithm>
#include <deque>
#include <string>

#include "base/random.h"
#include "base/status.h"

namespace xccl {
namespace {

TopologySpec Ranks(int32_t count) {
  TopologySpec spec;
  spec.name = "trees";
  spec.hosts.push_back({"h0"});
  for (int32_t r = 0; r < count; ++r)
    spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), HostId(0), false, false});
  return spec;
}

int64_t AddSwitch(TopologySpec& spec) {
  const int64_t id = static_cast<int64_t>(spec.nodes.size());
  spec.nodes.push_back({NodeKind::kSwitch, "s" + std::to_string(id), std::nullopt, true, true});
  return id;
}

void AddCable(TopologySpec& spec, int64_t a, int64_t b, int64_t bandwidth) {
  spec.links.push_back({NodeId(a), NodeId(b), bandwidth, 500'000, 0});
  spec.links.push_back({NodeId(b), NodeId(a), bandwidth, 500'000, 0});
}

// Grows the schedule of one chunk. A rank's clock is the first step at which it may send.
class Grower {
 public:
  Grower(const Topology& topology, int32_t first_step, uint64_t seed, Schedule& schedule)
      : topology_(topology),
        random_(seed),
        detours_(seed > 0),
        clock_(static_cast<size_t>(topology.num_ranks()), first_step),
        schedule_(schedule) {}

  // Sums at `root`, one of `ranks`, what all of `ranks` hold.
  void Sum(ChunkId chunk, Rank root, std::vector<Rank> ranks) {
    std::erase(ranks, root);
    while (!ranks.empty()) {
      const std::vector<Rank> some = TakeSome(ranks);
      // A detour sums at one of the remaining ranks, which later adds its sum to the root's.
      const bool detour = detours_ && !ranks.empty() && random_.Below(2) == 0;
      const Rank to = detour ? ranks[random_.Below(ranks.size())] : root;
      Move(chunk, to, some, true);
    }
  }
  // Copies the chunk from `root` to `ranks`.
  void Spread(ChunkId chunk, Rank root, std::vector<Rank> ranks) {
    std::erase(ranks, root);
    std::vector<Rank> holders = {root};
    while (!ranks.empty()) {
      const std::vector<Rank> some = TakeSome(ranks);
      const Rank from = detours_ ? holders[random_.Below(holders.size())] : root;
      Move(chunk, from, some, false);
      holders.insert(holders.end(), some.begin(), some.end());
    }
  }

 private:
  std::vector<Rank> TakeSome(std::vector<Rank>& ranks) {
    size_t count = ranks.size();
    if (detours_) {
      random_.Shuffle(std::span(ranks));
      count = random_.Below(ranks.size()) + 1;
    }
    std::vector<Rank> some(ranks.end() - static_cast<int64_t>(count), ranks.end());
    ranks.resize(ranks.size() - count);
    std::ranges::sort(some);
    return some;
  }

  void Move(ChunkId chunk, Rank root, const std::vector<Rank>& ends, bool sums) {
    const auto turn = static_cast<int32_t>(chunk.value);
    const std::vector<LinkId> path = TreePath(topology_, root, ends, sums, turn);
    std::vector<Rank> sources, destinations;
    PathEnds(topology_, path, sources, destinations);
    int32_t step = clock_[root];
    for (Rank end : ends) step = std::max(step, clock_[end]);
    schedule_.Add(chunk, 1, sources[0], destinations[0], path, sums ? TransferOp::kReduce : TransferOp::kCopy,
                  step);
    clock_[root] = step + 1;
    for (Rank end : ends) clock_[end] = step + 1;
  }

  const Topology& topology_;
  Random random_;
  const bool detours_;
  IdVector<Rank, int32_t> clock_;
  Schedule& schedule_;
};

}  // namespace

Topology TreeSwitch(int32_t ranks) {
  TopologySpec spec = Ranks(ranks);
  const int64_t middle = AddSwitch(spec);
  for (int32_t r = 0; r < ranks; ++r) AddCable(spec, r, middle, 50'000'000'000);
  return Topology::Create(std::move(spec)).value();
}

Topology TreeLeaves(int32_t per_leaf, int32_t rails) {
  TopologySpec spec = Ranks(2 * per_leaf);
  for (int32_t rail = 0; rail < rails; ++rail) {
    const int64_t left = AddSwitch(spec), right = AddSwitch(spec), spine = AddSwitch(spec);
    for (int32_t r = 0; r < per_leaf; ++r) {
      AddCable(spec, r, left, 50'000'000'000);
      AddCable(spec, per_leaf + r, right, 50'000'000'000);
    }
    AddCable(spec, left, spine, 100'000'000'000);
    AddCable(spec, right, spine, 100'000'000'000);
  }
  return Topology::Create(std::move(spec)).value();
}

std::vector<LinkId> TreePath(const Topology& topology, Rank root, std::span<const Rank> ends, bool into_root,
                             int32_t turn) {
  // Breadth-first from the root, with links in a rotated order.
  std::vector<LinkId> by(static_cast<size_t>(topology.num_nodes()), LinkId(-1));
  std::vector<NodeId> order = {topology.NodeOf(root)};
  const auto near = [&](LinkId l) { return into_root ? topology.link(l).to : topology.link(l).from; };
  const auto far = [&](LinkId l) { return into_root ? topology.link(l).from : topology.link(l).to; };
  for (size_t i = 0; i < order.size(); ++i) {
    const NodeId at = order[i];
    if (i > 0 && topology.IsGpu(at)) continue;
    for (int32_t k = 0; k < topology.num_links(); ++k) {
      // An odd `turn` tries the second half of the links first, which prefers the other rail.
      const LinkId l((k + (turn % 2) * topology.num_links() / 2) % topology.num_links());
      const NodeId next = far(l);
      if (near(l) != at || next == order[0] || by[next.index()].value >= 0) continue;
      by[next.index()] = l;
      order.push_back(next);
    }
  }
  std::vector<bool> wanted(static_cast<size_t>(topology.num_nodes()), false);
  for (Rank end : ends) wanted[topology.NodeOf(end).index()] = true;
  std::vector<LinkId> path;
  for (size_t i = order.size(); i-- > 1;) {
    const NodeId at = order[i];
    if (!wanted[at.index()]) continue;
    path.push_back(by[at.index()]);
    wanted[near(path.back()).index()] = true;
  }
  if (!into_root) std::ranges::reverse(path);
  return path;
}

void RouteThrough(const Topology& tree_switch, Program& program) {
  for (Connection& c : program.connections)
    c.path = TreePath(tree_switch, c.src, std::span(&c.dst, 1), false, 0);
  for (Group& group : program.groups)
    group.path = TreePath(tree_switch, group.root, group.members, group.kind == Group::Kind::kReduce, 0);
}

Schedule TreeSchedule(const Collective& collective, const Topology& topology, uint64_t seed) {
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  std::vector<Holding> before, after;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    const ChunkId chunk(c);
    collective.Before(chunk, before);
    collective.After(chunk, after);
    if (before.empty() || after.empty()) continue;
    const uint64_t own = seed == 0 ? 0 : seed * 1000 + static_cast<uint64_t>(c) + 1;
    Grower grower(topology, 0, own, schedule);
    std::vector<Rank> holders, wanting;
    for (const Holding& holding : before) holders.push_back(holding.rank);
    for (const Holding& holding : after) wanting.push_back(holding.rank);
    const Rank root = collective.Reduces() ? wanting[static_cast<size_t>(c) % wanting.size()] : holders[0];
    if (collective.Reduces()) grower.Sum(chunk, root, holders);
    grower.Spread(chunk, root, wanting);
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl
