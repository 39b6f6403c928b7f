#include "synth/textbook/engines.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace xccl {
namespace {

using enum CollectiveKind;
using enum EngineFamily;
using Kinds = std::vector<CollectiveKind>;

// The kinds that one function of a recipe serves.
constexpr std::initializer_list<CollectiveKind> kAllreduces = {kAllreduce, kBarrier};
constexpr std::initializer_list<CollectiveKind> kAllgathers = {kAllgather, kAllgatherv};
constexpr std::initializer_list<CollectiveKind> kReduceScatters = {kReduceScatter, kReduceScatterv};
constexpr std::initializer_list<CollectiveKind> kBroadcasts = {kBroadcast, kReduce};
constexpr std::initializer_list<CollectiveKind> kGathers = {kGather, kScatter};
constexpr std::initializer_list<CollectiveKind> kAlltoalls = {kAlltoall, kAlltoallv};

Kinds KindsOf(std::initializer_list<std::initializer_list<CollectiveKind>> groups) {
  Kinds kinds;
  for (const auto& group : groups) kinds.insert(kinds.end(), group);
  std::ranges::sort(kinds);
  return kinds;
}

Kinds Broadcasting() { return KindsOf({kAllreduces, kAllgathers, kReduceScatters, kBroadcasts}); }

Kinds All() {
  return KindsOf({kAllreduces, kAllgathers, kReduceScatters, kBroadcasts, kGathers, kAlltoalls});
}

// Engines that need neither a grid nor hosts.
std::vector<TextbookEngine> EnginesOfLines() {
  const Kinds gathering = KindsOf({kAllreduces, kAllgathers, kReduceScatters});
  const Kinds rooted = KindsOf({kAllreduces, kBroadcasts, kGathers});
  const Kinds exchanging = KindsOf({kAllreduces, kAllgathers, kReduceScatters, kAlltoalls});
  return {
      {"ring", kTrees,
       "rings along the links, as many as share them well; bandwidth-optimal where they use all; not exact",
       Broadcasting(), PlaceRing},
      {"tree", kTrees, "one breadth-first spanning tree of the widest links; low latency; not exact", rooted,
       PlaceTree},
      {"binomial", kTrees, "binomial tree, far halves first: ceil(log2 n) steps, for small sizes; not exact",
       rooted, PlaceBinomial},
      {"k-nomial", kTrees, "trees of radix k, chosen by size: ceil(log_k n) steps of k-1 sends; not exact",
       rooted, PlaceKnomial},
      {"double-binary-tree", kTrees,
       "two complementary binary trees, half of the data each: full bandwidth at log2 n depth; not exact",
       KindsOf({kAllreduces, kBroadcasts}), PlaceDoubleBinaryTree},
      {"halving-doubling", kExchanges,
       "recursive halving and doubling, far partners while there is little to send; 2 log2 n steps; not "
       "exact",
       Broadcasting(), PlaceHalvingDoubling},
      {"recursive-doubling", kExchanges,
       "whole vectors exchanged at distances 1, 2, 4..; log2 n steps, for small sizes; not exact",
       KindsOf({kAllreduces, kAllgathers}), PlaceRecursiveDoubling},
      {"recursive-multiplying", kExchanges,
       "groups of k exchange all they have, k chosen by size: ceil(log_k n) steps; not exact", exchanging,
       PlaceRecursiveMultiplying},
      {"bruck", kExchanges,
       "distances 1, 2, 4.. round a circle: ceil(log2 n) steps for every n, for small sizes; alltoall to a "
       "radix chosen by size; not exact",
       exchanging, PlaceBruck},
      {"pairwise", kExchanges, "n-1 rounds, one partner each, so that no receiver is crowded; not exact",
       KindsOf({kAllgathers, kReduceScatters, kAlltoalls}), PlacePairwise},
      {"nhr", kExchanges,
       "Huawei's nonuniform hierarchical ring: distances n/2, n/4.. round a circle, ceil(log2 n) steps for "
       "every n; not exact",
       KindsOf({kAllreduces, kAllgathers, kReduceScatters, kBroadcasts, kGathers}), PlaceNhr},
      {"swing", kExchanges,
       "partners at 1, -1, 3, -5, 11.. on either side, all links of a torus at work; 2 ceil(log2 n) steps; "
       "not exact",
       gathering, PlaceSwing},
      {"bine", kExchanges,
       "binomial negabinary trees, partners 2/3 as far as in binomial ones; ceil(log2 n) steps; not exact",
       All(), PlaceBine},
      {"pat", kExchanges,
       "NCCL's parallel aggregated trees: log2 n steps for small sizes, bounded messages for large ones; not "
       "exact",
       gathering, PlacePat},
  };
}

// Engines that place ranks on a grid or in hosts, deal out chunks, or send straight.
std::vector<TextbookEngine> EnginesOfPlaces() {
  return {
      {"2d-ring", kTrees, "rings along one dimension of a grid after the other, both ways round; not exact",
       Broadcasting(), Place2dRing},
      {"2d-torus", kTrees,
       "as 2d-ring, with a share of the data starting along each dimension; optimal on tori of equal sides; "
       "not exact",
       Broadcasting(), Place2dTorus},
      {"2d-mesh", kTrees,
       "everyone with everyone of its row, then of its column: few partners; two trees for a broadcast on a "
       "mesh; not exact",
       All(), PlaceMesh2d},
      {"hierarchical-ring", kTrees,
       "rings inside hosts and along rails across them: few bytes over the fabric; not exact", Broadcasting(),
       PlaceHierarchicalRing},
      {"hierarchical-exchange", kExchanges,
       "sums inside hosts, exchanged along rails by some hosts at a time, or by all; for small sizes; not "
       "exact",
       kAllreduces, PlaceHierarchicalExchange},
      {"spread", kTrees,
       "chunks dealt to the ranks in turn, spread by one timetable, along rails between hosts; full rate at "
       "little depth; not exact",
       kBroadcasts, PlaceSpread},
      {"circulant", kTrees,
       "n blocks to p ranks in n-1+ceil(log2 p) rounds, the fewest there are; for the blocking model; not "
       "exact",
       kBroadcasts, PlaceCirculant},
      {"torus-trees", kTrees,
       "two trees for each dimension of a torus that share no link: the root's full rate; not exact",
       kBroadcasts, PlaceTorusTrees, /*cables_only=*/true},
      {"direct", kExchanges,
       "every block straight to where it is needed, all at once; optimal on full meshes; not exact",
       KindsOf({kAllreduces, kAllgathers, kReduceScatters, kBroadcasts, kGathers, kAlltoalls, {kSendrecv}}),
       PlaceDirect},
  };
}

}  // namespace

std::span<const TextbookEngine> TextbookEngines() {
  static const std::vector<TextbookEngine>& engines = *new std::vector<TextbookEngine>([] {
    std::vector<TextbookEngine> rows = EnginesOfLines();
    const std::vector<TextbookEngine> placed = EnginesOfPlaces();
    rows.insert(rows.end(), placed.begin(), placed.end());
    return rows;
  }());
  return engines;
}

}  // namespace xccl
