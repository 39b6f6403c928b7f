// Only the trees of the columns are built; an element e takes such a tree to the tree of another chunk. In
// that tree the lost rank m stands at the place e^-1·m of the tree of the columns. Lost ranks are taken out
// from the leaves up, so that a lost child has its heir before its parent looks for one.
#include "ir/taken_over.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/graph/grouped.h"

namespace xccl {
namespace {

constexpr int32_t kNone = -1;

// The tree of one chunk's copies, or of its sums.
struct Tree {
  TransferOp op = TransferOp::kCopy;
  std::vector<int32_t> edge;  // by rank: the transfer between it and its parent, or kNone
  Grouped<int32_t> children;  // by rank
};

Tree TreeOf(const Schedule& schedule, std::span<const int32_t> transfers, TransferOp op, int32_t ranks) {
  Tree tree{.op = op, .edge = std::vector<int32_t>(static_cast<size_t>(ranks), kNone), .children = {}};
  const bool copies = op == TransferOp::kCopy;
  const auto for_each = [&](auto visit) {
    for (const int32_t t : transfers)
      if (schedule.op[t] == op)
        copies ? visit(t, schedule.src[t], schedule.dst[t]) : visit(t, schedule.dst[t], schedule.src[t]);
  };
  for_each([&](int32_t t, Rank, Rank child) { tree.edge[child.index()] = t; });
  tree.children = GroupItems<int32_t>(static_cast<size_t>(ranks), [&](auto add) {
    for_each([&](int32_t, Rank parent, Rank child) { add(parent.index(), child.value); });
  });
  return tree;
}

class TakingOver {
 public:
  TakingOver(const Schedule& schedule, const Translations& translations, const Topology& whole)
      : schedule_(schedule),
        translations_(translations),
        group_(translations.group()),
        lost_(LostRanks(whole, schedule.missing)),
        turn_(lost_.size(), 0),
        at_(static_cast<size_t>(whole.num_ranks()), kNone),
        heir_(at_.size(), kNone) {}

  std::vector<TakenOver> Run() {
    const auto by_chunk = GroupItems<int32_t>(static_cast<size_t>(schedule_.num_chunks), [&](auto add) {
      for (int32_t t = 0; t < schedule_.size(); ++t)
        for (int32_t i = 0; i < schedule_.count[t]; ++i) add(schedule_.first[t].value + i, t);
    });
    for (int32_t c = 0; c < schedule_.num_chunks; ++c)
      for (const TransferOp op : {TransferOp::kReduce, TransferOp::kCopy})
        if (std::ranges::any_of(by_chunk[c], [&](int32_t t) { return schedule_.op[t] == op; }))
          TakeOver(ChunkId(c), TreeOf(schedule_, by_chunk[c], op, static_cast<int32_t>(at_.size())));
    return std::move(taken_over_);
  }

 private:
  // A child that is not lost: a child in the tree, or the heir of one. `edge`: the transfer of the child in
  // the tree.
  struct Child {
    int32_t rank = 0, edge = 0;
  };

  void TakeOver(ChunkId chunk, const Tree& tree) {
    std::vector<std::pair<int32_t, int32_t>> places;  // (transfer to the parent, number of the lost rank)
    for (int64_t e = 0; e < group_.order(); ++e) {
      if (!translations_.InMachine(translations_.Image(e, chunk))) continue;
      const int64_t back = group_.Inverse(e);
      places.clear();
      for (size_t m = 0; m < lost_.size(); ++m) {
        const Rank place = group_.Image(back, lost_[m]);
        at_[place.index()] = static_cast<int32_t>(m);
        heir_[place.index()] = kNone;
        if (tree.edge[place.index()] != kNone)
          places.emplace_back(tree.edge[place.index()], static_cast<int32_t>(m));
      }
      // Leaves come first: copies reach them last, and sums leave them first.
      std::ranges::sort(places);
      if (tree.op == TransferOp::kCopy) std::ranges::reverse(places);
      for (const auto& [edge, m] : places)
        Replace(chunk, tree, e, edge, m, group_.Image(back, lost_[static_cast<size_t>(m)]).value);
      for (const Rank m : lost_) at_[group_.Image(back, m).index()] = kNone;
    }
  }

  // Takes the lost rank m out of the tree, where it stands at `place`.
  void Replace(ChunkId chunk, const Tree& tree, int64_t e, int32_t edge, int32_t m, int32_t place) {
    children_.clear();
    for (const int32_t child : tree.children[place]) {
      const bool is_lost = at_[static_cast<size_t>(child)] != kNone;
      const int32_t there = is_lost ? heir_[static_cast<size_t>(child)] : child;
      if (there != kNone) children_.push_back({there, tree.edge[static_cast<size_t>(child)]});
    }
    if (children_.empty()) return;
    const int32_t heir = HeirOf(m);
    heir_[static_cast<size_t>(place)] = heir;
    const auto add = [&](int32_t parent, int32_t child, int32_t instead_of, bool heir_is_parent) {
      const bool copies = tree.op == TransferOp::kCopy;
      taken_over_.push_back({.chunk = translations_.Image(e, chunk),
                             .src = group_.Image(e, Rank(copies ? parent : child)),
                             .dst = group_.Image(e, Rank(copies ? child : parent)),
                             .op = tree.op,
                             .step = schedule_.step[instead_of],
                             .lost = lost_[static_cast<size_t>(m)],
                             .heir_sends = copies == heir_is_parent});
    };
    const Rank parent = tree.op == TransferOp::kCopy ? schedule_.src[edge] : schedule_.dst[edge];
    // If the parent is lost, the parent's own heir takes over the transfer between it and this heir.
    if (at_[parent.index()] == kNone) add(parent.value, heir, edge, false);
    for (const Child& child : children_)
      if (child.rank != heir) add(heir, child.rank, child.edge, true);
  }

  // Returns the next child in turn, of the children whose paths have the most common length.
  int32_t HeirOf(int32_t m) {
    std::map<size_t, size_t> children;  // by links of the path
    const auto length = [&](const Child& child) {
      return schedule_.paths[schedule_.path[child.edge]].size();
    };
    for (const Child& child : children_) ++children[length(child)];
    const auto most = std::ranges::max_element(children, {}, [](const auto& entry) { return entry.second; });
    size_t skipped = static_cast<size_t>(turn_[static_cast<size_t>(m)]++) % most->second;
    for (const Child& child : children_)
      if (length(child) == most->first && skipped-- == 0) return child.rank;
    return kNone;
  }

  const Schedule& schedule_;
  const Translations& translations_;
  const SymmetryGroup& group_;
  const std::vector<Rank> lost_;
  std::vector<int64_t> turn_;  // by number of the lost rank
  std::vector<int32_t> at_;    // by place in the tree: the number of the lost rank there, or kNone
  std::vector<int32_t> heir_;  // by place of a lost rank
  std::vector<Child> children_;
  std::vector<TakenOver> taken_over_;
};

}  // namespace

std::optional<LostRelay> FindLostRelay(const Schedule& schedule, const Translations& translations,
                                       const Topology& whole) {
  const SymmetryGroup& group = translations.group();
  const std::vector<Rank> lost = LostRanks(whole, schedule.missing);
  const auto is_lost = [&](int64_t e, Rank r) {
    return IsLost(whole.NodeOf(group.Image(e, r)), whole, schedule.missing);
  };
  for (int64_t t = 0; t < schedule.size(); ++t) {
    const Rank relay = schedule.dst[t];
    const int64_t back = group.Inverse(group.ElementOf(relay));
    for (int32_t c = schedule.first[t].value; c < schedule.first[t].value + schedule.count[t]; ++c) {
      const auto [from, to] = translations.EndsOfPair(ChunkId(c));
      if (relay == from || relay == to) continue;
      for (const Rank m : lost) {
        if (group.OrbitOf(m) != group.OrbitOf(relay)) continue;
        const int64_t e = group.Compose(group.ElementOf(m), back);
        if (!is_lost(e, from) && !is_lost(e, to)) return LostRelay{ChunkId(c), relay, m};
      }
    }
  }
  return std::nullopt;
}

std::vector<TakenOver> TransfersTakenOver(const Schedule& schedule, const Translations& translations,
                                          const Topology& whole) {
  if (translations.of_pairs()) return {};
  return TakingOver(schedule, translations, whole).Run();
}

PathsBetween::PathsBetween(const Schedule& schedule, const PathKinds& kinds, const Topology& whole,
                           const SymmetryGroup& group)
    : schedule_(schedule), kinds_(kinds), group_(group), detours_(whole, schedule.missing, schedule.detours) {
  const auto key = [&](std::span<const LinkId> links) {
    return KeyOf(whole.RankOf(whole.link(links.front()).from)->value,
                 whole.RankOf(whole.link(links.back()).to)->value);
  };
  for (int32_t k = 0; k < kinds.paths.size(); ++k) kind_.try_emplace(key(kinds.paths[PathId(k)]), k);
  for (size_t w = 0; w < schedule.ways.size(); ++w) way_.try_emplace(key(schedule.ways[w]), w);
}

bool PathsBetween::FindTranslate(Rank src, Rank dst, std::vector<LinkId>& links) const {
  const int64_t e = group_.ElementOf(src), back = group_.Inverse(e);
  const auto kind = kind_.find(KeyOf(group_.Image(back, src).value, group_.Image(back, dst).value));
  if (kind == kind_.end()) return false;
  links.clear();
  for (const LinkId l : kinds_.paths[PathId(kind->second)]) links.push_back(group_.Image(e, l));
  return true;
}

bool PathsBetween::Find(Rank src, Rank dst, std::vector<LinkId>& links) const {
  if (const auto way = way_.find(KeyOf(src.value, dst.value)); way != way_.end()) {
    links = schedule_.ways[way->second];
    return true;
  }
  if (!FindTranslate(src, dst, links)) return false;
  detours_.Apply(links);
  return true;
}

Status AddTakenOver(const Schedule& schedule, const Translations& translations, const Topology& whole,
                    Schedule& plain) {
  const PathKinds kinds = PathKindsOf(schedule.paths, whole, translations.group());
  const PathsBetween paths(schedule, kinds, whole, translations.group());
  std::vector<LinkId> links;
  for (const TakenOver& t : TransfersTakenOver(schedule, translations, whole)) {
    if (!paths.Find(t.src, t.dst, links))
      return InvalidInput(fmt::format("no way from rank {} to rank {}, in place of lost rank {}", t.src.value,
                                      t.dst.value, t.lost.value));
    plain.Add(t.chunk, 1, t.src, t.dst, links, t.op, t.step);
  }
  return OkStatus();
}

}  // namespace xccl
