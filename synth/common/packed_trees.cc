// 1. CopiesInWaves cuts each tree's share into one chunk per wave. For an allreduce, SumUpCopyDown first cuts
//    a member's share at the borders of all trees' shares.
// 2. CopiesOf makes one transfer for each (chunk, arc). StepsOf gives the steps of a tree's arcs within a
//    wave.
// 3. A stable sort orders transfers by step, then by the turn of the arc's ancestor at the root, then by the
//    arc's turn. The turn is the destination's number minus the source's number, modulo the number of ranks.
// 4. Sums are made as copies on the reversed machine, which Reverse plays backwards. Compose joins sums and
//    copies.
#include "synth/common/packed_trees.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "synth/common/compose.h"
#include "synth/common/reverse.h"

namespace xccl {
namespace {

// A chunk and the tree that carries it.
struct Piece {
  const PackedTree* tree = nullptr;
  ChunkId chunk;
  int32_t wave = 0;
};

struct Entry {
  int32_t step = 0;
  int32_t first_turn = 0;  // turn of the arc's ancestor at the root: data that leaves early goes on early
  int32_t turn = 0;
  ChunkId chunk;
  const TreeArc* arc = nullptr;
};

// Sets the steps of the arcs within a wave, from 0. Arcs with the longest path below them come first. In
// trees that will run backwards (`turned`), arcs near the root come first, so that backwards the data far
// from the root is sent first.
void StepsOf(const PackedTree& tree, bool turned, int32_t depth, std::vector<int32_t>& height,
             std::vector<int32_t>& steps) {
  steps.resize(tree.arcs.size());
  if (turned) {
    for (size_t a = 0; a < tree.arcs.size(); ++a) steps[a] = tree.arcs[a].depth - 1;
    return;
  }
  std::fill(height.begin(), height.end(), 0);  // by rank: the most arcs on a path below it
  for (size_t a = tree.arcs.size(); a-- > 0;) {
    const TreeArc& arc = tree.arcs[a];
    steps[a] = depth - 1 - height[arc.to.index()];
    height[arc.from.index()] = std::max(height[arc.from.index()], height[arc.to.index()] + 1);
  }
}

int32_t NumRanks(const PackedTrees& trees) {
  int32_t last = 0;
  for (const PackedTree& tree : trees.trees) {
    last = std::max(last, tree.root.value);
    for (const TreeArc& arc : tree.arcs) last = std::max(last, arc.to.value);
  }
  return last + 1;
}

// Returns the part whose trees the group translates into part p's trees; p if there is no symmetry.
size_t RepresentativePart(const TreeSteps& steps, size_t p) {
  if (steps.symmetry == nullptr) return p;
  return steps.symmetry->Representative(steps.symmetry->OrbitOf(Rank(static_cast<int64_t>(p)))).index();
}

// Copies the pieces down their trees. `turned` is as in StepsOf. Faster if the pieces of one tree are
// adjacent.
Schedule CopiesOf(const PackedTrees& trees, const std::vector<Piece>& pieces, int32_t num_chunks, bool turned,
                  const SymmetryGroup* symmetry) {
  const int32_t depth = trees.Depth(), num_ranks = NumRanks(trees);
  std::vector<Entry> entries;
  std::vector<int32_t> height(static_cast<size_t>(num_ranks)), first_turn(height.size()), steps;
  const PackedTree* last = nullptr;
  for (const Piece& piece : pieces) {
    if (piece.tree != last) StepsOf(*piece.tree, turned, depth, height, steps);
    last = piece.tree;
    for (size_t a = 0; a < steps.size(); ++a) {
      const TreeArc& arc = piece.tree->arcs[a];
      const int32_t turn = (arc.to.value - arc.from.value + num_ranks) % num_ranks;
      first_turn[arc.to.index()] = arc.depth == 1 ? turn : first_turn[arc.from.index()];
      entries.push_back({piece.wave * depth + steps[a], first_turn[arc.to.index()], turn, piece.chunk, &arc});
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.step, a.first_turn, a.turn) < std::tie(b.step, b.first_turn, b.turn);
  });
  Schedule schedule;
  schedule.num_chunks = num_chunks;
  schedule.paths = trees.paths;
  if (symmetry != nullptr) schedule.symmetry = symmetry->generators();
  schedule.Reserve(static_cast<int64_t>(entries.size()));
  // In a reduction each first turn has a step of its own. One message for several first turns would wait for
  // the last of their sums.
  int32_t step = -1;
  const Entry* before = nullptr;
  for (const Entry& entry : entries) {
    if (before == nullptr || before->step != entry.step || (turned && before->first_turn != entry.first_turn))
      ++step;
    before = &entry;
    schedule.Add(Transfer{.first = entry.chunk,
                          .count = 1,
                          .src = entry.arc->from,
                          .dst = entry.arc->to,
                          .path = entry.arc->path,
                          .op = TransferOp::kCopy,
                          .step = step});
  }
  Normalize(schedule);
  return schedule;
}

// A tree's share of its part: from the end of the share before to `end`, in units of the trees' weights.
struct Share {
  int64_t end = 0;
  const PackedTree* tree = nullptr;
};
std::vector<std::vector<Share>> SharesOf(const PackedTrees& trees, int32_t parts) {
  std::vector<std::vector<Share>> shares(static_cast<size_t>(parts));
  for (const PackedTree& tree : trees.trees) {
    std::vector<Share>& part = shares[tree.part.index()];
    part.push_back({(part.empty() ? 0 : part.back().end) + tree.weight, &tree});
  }
  return shares;
}

}  // namespace

int32_t PackedTrees::Depth() const {
  int32_t depth = 0;
  for (const PackedTree& tree : trees)
    for (const TreeArc& arc : tree.arcs) depth = std::max(depth, arc.depth);
  return depth;
}

int64_t PackedTrees::NumArcs() const {
  int64_t arcs = 0;
  for (const PackedTree& tree : trees) arcs += static_cast<int64_t>(tree.arcs.size());
  return arcs;
}

std::vector<int64_t> WaveWeights(int32_t waves) {
  // Small waves fill the pipeline sooner; large waves need fewer messages. kFirst × kGrowth is whole.
  constexpr double kFirst = 2, kGrowth = 1.5, kLargest = 16;
  std::vector<int64_t> weights(static_cast<size_t>(waves));
  for (int32_t w = 0; w < waves; ++w) {
    const int32_t from_end = std::min(w, waves - 1 - w);
    weights[static_cast<size_t>(w)] = std::llround(kFirst * std::min(kLargest, std::pow(kGrowth, from_end)));
  }
  // Gives equal waves weight 1.
  const int64_t common = std::accumulate(weights.begin(), weights.end(), int64_t{0},
                                         [](int64_t a, int64_t b) { return std::gcd(a, b); });
  for (int64_t& weight : weights) weight /= common;
  return weights;
}

namespace {

// Makes the schedule of copies in waves. `turned`: the schedule will run backwards, as a reduction.
ChunkedSchedule CopiesInWaves(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps,
                              bool turned) {
  const std::vector<int64_t> waves = WaveWeights(steps.waves);
  std::vector<std::vector<int64_t>> weights(static_cast<size_t>(whole.num_parts()));
  std::vector<size_t> place;  // by tree: the index of its first chunk within the part
  for (const PackedTree& tree : trees.trees) {
    std::vector<int64_t>& part = weights[tree.part.index()];
    place.push_back(part.size());
    for (int64_t wave : waves) part.push_back(tree.weight * wave);
  }
  for (size_t p = 0; p < weights.size(); ++p) {
    if (weights[p].empty()) weights[p] = weights[RepresentativePart(steps, p)];
    if (weights[p].empty()) weights[p].push_back(1);
  }

  ChunkedSchedule made{.collective = whole.WithWeights(weights), .schedule = {}};
  std::vector<Piece> pieces;
  for (size_t t = 0; t < trees.trees.size(); ++t) {
    const PackedTree& tree = trees.trees[t];
    const int64_t first = made.collective.FirstChunk(tree.part).value + static_cast<int64_t>(place[t]);
    for (int32_t w = 0; w < steps.waves; ++w) pieces.push_back({&tree, ChunkId(first + w), w});
  }
  made.schedule = CopiesOf(trees, pieces, made.collective.num_chunks(), turned, steps.symmetry);
  return made;
}

}  // namespace

ChunkedSchedule CopyDown(const PackedTrees& trees, const Collective& whole, const TreeSteps& steps) {
  return CopiesInWaves(trees, whole, steps, false);
}

ChunkedSchedule SumUp(const PackedTrees& trees, const Topology& topology, const Collective& whole,
                      const TreeSteps& steps) {
  ChunkedSchedule made = CopiesInWaves(trees, whole, steps, true);
  made.schedule = Reverse(made.schedule, topology, made.collective, TransferOp::kReduce);
  return made;
}

ChunkedSchedule SumUpCopyDown(const PackedTrees& up, const PackedTrees& down, const Topology& topology,
                              const Collective& whole, const TreeSteps& steps) {
  std::vector<std::vector<Share>> ups = SharesOf(up, whole.num_members()),
                                  downs = SharesOf(down, whole.num_members());
  const int64_t total = std::lcm(ups[0].back().end, downs[0].back().end);
  for (std::vector<std::vector<Share>>* const shares : {&ups, &downs})
    for (std::vector<Share>& part : *shares) {
      const int64_t unit = part.empty() ? 1 : total / part.back().end;
      for (Share& share : part) share.end *= unit;
    }
  const std::vector<int64_t> wave_weights = WaveWeights(steps.waves);
  std::vector<std::vector<int64_t>> weights(1);
  std::vector<Piece> up_pieces, down_pieces;
  // In a compressed schedule all members have the same number of chunks; some chunks are empty.
  size_t most = 0;
  for (size_t m = 0; steps.symmetry != nullptr && m < ups.size(); ++m)
    most = std::max(most, (ups[m].size() + downs[m].size()) * static_cast<size_t>(steps.waves));
  for (size_t m = 0; m < ups.size(); ++m) {
    const size_t first = weights[0].size();
    const size_t from = RepresentativePart(steps, m);
    int64_t begin = 0;
    for (size_t u = 0, d = 0; u < ups[from].size();) {
      const Share &up_share = ups[from][u], &down_share = downs[from][d];
      const int64_t end = std::min(up_share.end, down_share.end);
      for (int32_t w = 0; w < steps.waves; ++w) {
        const ChunkId chunk(static_cast<int64_t>(weights[0].size()));
        weights[0].push_back((end - begin) * wave_weights[static_cast<size_t>(w)]);
        if (from != m) continue;
        // The sums run backwards later, so the last wave comes first here.
        up_pieces.push_back({up_share.tree, chunk, steps.waves - 1 - w});
        down_pieces.push_back({down_share.tree, chunk, w});
      }
      begin = end;
      if (up_share.end == end) ++u;
      if (down_share.end == end) ++d;
    }
    if (weights[0].size() < first + most) weights[0].resize(first + most, 0);
  }
  ChunkedSchedule made{.collective = whole.WithWeights(weights), .schedule = {}};
  const int32_t chunks = made.collective.num_chunks();
  const Schedule sums = Reverse(CopiesOf(up, up_pieces, chunks, true, steps.symmetry), topology,
                                made.collective, TransferOp::kReduce);
  made.schedule = Compose(sums, CopiesOf(down, down_pieces, chunks, false, steps.symmetry));
  return made;
}

}  // namespace xccl
