// Reads a schedule as trees (Reader), and writes trees as a schedule (Writer).
// 1. Sort counts contributions to find the edges of a chunk's two trees. A transfer of fewer contributions
//    than the postcondition asks for carries a partial sum.
// 2. AddToGroup puts chunks of one part with equal paths into one group.
// 3. Deal chooses the number of trees for a group's chunks, so that balancing has small trees to move.
// 4. AddTrees makes the trees in the new names.
// 5. Order lists the ranks of a tree from its root outwards, for the writer.
// 6. WriteCopies and WriteSums give every edge the earliest step that its data and the plan's order allow.
#include "synth/replan/trees.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/graph/grouped.h"
#include "ir/analysis/chunk_index.h"
#include "synth/common/cost_model.h"

namespace xccl::replan {
namespace {

// The number of trees to aim at on the fullest link. One tree too many then costs at most 1/24 of a link's
// time.
constexpr int64_t kFewTrees = 24;
// The number of chunks to aim at if copies follow sums: a pipeline of n chunks is idle for 1/n of its time.
constexpr int32_t kFewWaves = 8;

// One chunk's transfers, as edges of ranks in its tree of sums (up) and its tree of copies (down).
struct ChunkFlow {
  std::vector<std::pair<int32_t, int32_t>> up, down;  // (old rank, transfer), sorted by rank
  std::optional<int32_t> up_root;                     // the rank at which the sum ends
  int32_t first_step = 0;
};

// Old chunks of one part that take the same paths. AddTrees sorts them by their first step.
struct Group {
  ChunkFlow flow;                                   // of the chunk with the earliest step
  std::vector<std::pair<int32_t, int32_t>> chunks;  // first step, old chunk
};

class Reader {
 public:
  Reader(const Schedule& schedule, const Collective& collective, const Topology& old,
         const Renaming& renaming, int32_t new_ranks)
      : schedule_(schedule),
        collective_(collective),
        old_(old),
        renaming_(renaming),
        steps_(schedule.num_steps()) {
    out_.num_ranks = new_ranks;
    const size_t ranks = static_cast<size_t>(old.num_ranks());
    held_.assign(ranks, 0);
    up_.assign(ranks, std::nullopt);
    down_.assign(ranks, std::nullopt);
    walked_.assign(ranks, 0);
  }

  StatusOr<Trees> Read() {
    XCCL_RETURN_IF_ERROR(RenamePaths());
    Status read = OkStatus();
    ForEachMovedChunk(schedule_, [&](ChunkId c, std::span<const int32_t> transfers) {
      if (!read.ok() || !renaming_.part[collective_.PartOf(c)] || transfers.empty() ||
          collective_.AlwaysEmpty(c))
        return;
      StatusOr<ChunkFlow> flow = Sort(c.value, transfers);
      flow.ok() ? AddToGroup(c.value, *std::move(flow)) : void(read = flow.status());
    });
    XCCL_RETURN_IF_ERROR(read);
    const int32_t dealt = Deal();
    NumberChunks();
    for (Group& group : groups_) XCCL_RETURN_IF_ERROR(AddTrees(group, dealt));
    return std::move(out_);
  }

 private:
  Status RenamePaths() {
    std::vector<LinkId> links;
    for (int32_t p = 0; p < schedule_.paths.size(); ++p) {
      links.clear();
      bool whole = true;
      for (LinkId l : schedule_.paths[PathId(p)]) {
        whole &= renaming_.link[l].has_value();
        links.push_back(renaming_.link[l].value_or(l));
      }
      if (!IsChain(old_, schedule_.paths[PathId(p)]))
        return InvalidInput("a switch multicasts or reduces; such plans are not repaired");
      path_.push_back(whole ? std::optional(out_.paths.Intern(links)) : std::nullopt);
    }
    return OkStatus();
  }

  // Sorts a chunk's transfers into edges of its tree of sums and edges of its tree of copies.
  StatusOr<ChunkFlow> Sort(int32_t c, std::span<const int32_t> transfers) {
    ChunkFlow flow;
    flow.first_step = schedule_.step[transfers.front()];
    int32_t whole = 0;
    collective_.After(ChunkId(c), holdings_);
    for (const Holding& h : holdings_) {
      const auto needed = static_cast<int32_t>(h.contributions.size());
      if (whole > 0 && needed != whole)
        return InvalidInput(fmt::format("ranks end with different sums of chunk {}", c));
      whole = needed;
    }
    collective_.Before(ChunkId(c), holdings_);
    for (const Holding& h : holdings_) held_[h.rank.index()] = static_cast<int32_t>(h.contributions.size());
    for (size_t i = 0; i < transfers.size();) {
      size_t end = i;
      read_.clear();
      for (; end < transfers.size() && schedule_.step[transfers[end]] == schedule_.step[transfers[i]]; ++end)
        read_.push_back(held_[schedule_.src[transfers[end]].index()]);
      for (size_t k = i; k < end; ++k) {
        const int32_t t = transfers[k];
        const Rank from = schedule_.src[t], to = schedule_.dst[t];
        const int32_t amount = read_[k - i];
        int32_t& held = held_[to.index()];
        held = schedule_.op[t] == TransferOp::kReduce ? held + amount : amount;
        const bool sums = amount < whole;
        std::optional<int32_t>& edge = sums ? up_[from.index()] : down_[to.index()];
        if (edge)
          return InvalidInput(sums ? fmt::format("rank {} sends two partial sums of chunk {}", from.value, c)
                                   : fmt::format("rank {} is sent chunk {} twice", to.value, c));
        edge = t;
        (sums ? flow.up : flow.down).emplace_back(sums ? from.value : to.value, t);
      }
      i = end;
    }
    for (const auto& [rank, t] : flow.up) {
      const int32_t to = schedule_.dst[t].value;
      if (up_[static_cast<size_t>(to)] || to == flow.up_root) continue;
      if (flow.up_root)
        return InvalidInput(
            fmt::format("chunk {} is summed up at two ranks, {} and {}", c, *flow.up_root, to));
      flow.up_root = to;
    }
    if (HasCycle(flow.up, up_, schedule_.dst))
      return InvalidInput(fmt::format("ranks exchange partial sums of chunk {}", c));
    if (HasCycle(flow.down, down_, schedule_.src) || (flow.up_root && down_[*flow.up_root]))
      return InvalidInput(fmt::format("a rank is sent chunk {}, which it has", c));
    for (const Holding& h : holdings_) held_[h.rank.index()] = 0;
    for (int32_t t : transfers) held_[schedule_.dst[t].index()] = 0;
    for (const auto& [rank, t] : flow.up) up_[static_cast<size_t>(rank)].reset();
    for (const auto& [rank, t] : flow.down) down_[static_cast<size_t>(rank)].reset();
    std::sort(flow.up.begin(), flow.up.end());
    std::sort(flow.down.begin(), flow.down.end());
    return flow;
  }

  // Returns true if the edges contain a cycle. Cost: linear.
  bool HasCycle(const std::vector<std::pair<int32_t, int32_t>>& edges,
                const std::vector<std::optional<int32_t>>& edge_of, const std::vector<Rank>& next) {
    const int64_t before = walks_;
    for (const auto& [rank, t] : edges) {
      ++walks_;
      for (int32_t at = rank; edge_of[at]; at = next[*edge_of[at]].value) {
        int64_t& walked = walked_[at];
        if (walked == walks_) return true;
        if (walked > before) break;
        walked = walks_;
      }
    }
    return false;
  }

  // Returns the part and, for every edge, its ends and its path.
  std::vector<int32_t> Signature(int32_t c, const ChunkFlow& flow) const {
    std::vector<int32_t> signature = {collective_.PartOf(ChunkId(c)).value,
                                      static_cast<int32_t>(flow.up.size())};
    for (const auto* edges : {&flow.up, &flow.down})
      for (const auto& [rank, t] : *edges)
        signature.insert(signature.end(),
                         {schedule_.src[t].value, schedule_.dst[t].value, schedule_.path[t].value});
    return signature;
  }

  void AddToGroup(int32_t c, ChunkFlow flow) {
    const auto [at, fresh] = group_of_.emplace(Signature(c, flow), groups_.size());
    if (fresh) groups_.emplace_back();
    Group& group = groups_[at->second];
    group.chunks.emplace_back(flow.first_step, c);
    if (fresh || flow.first_step < group.flow.first_step) group.flow = std::move(flow);
  }

  // Returns the number of trees for each group's chunks. Sets out_.cut so that there are enough chunks, if
  // the limits allow.
  int32_t Deal() {
    if (groups_.empty()) return 1;
    std::vector<int64_t> trees(static_cast<size_t>(old_.num_links()), 0);
    size_t fewest = std::numeric_limits<size_t>::max();
    int64_t places = 0;
    bool pipeline = false;
    for (const Group& group : groups_) {
      fewest = std::min(fewest, group.chunks.size());
      const bool both = !group.flow.up.empty() && !group.flow.down.empty();
      pipeline |= both;
      places += static_cast<int64_t>(both ? 2 : 1) * out_.num_ranks;
      for (const auto* edges : {&group.flow.up, &group.flow.down})
        for (const auto& [rank, t] : *edges)
          for (LinkId l : schedule_.paths[schedule_.path[t]]) ++trees[l.index()];
    }
    const int64_t most = trees.empty() ? 0 : *std::max_element(trees.begin(), trees.end());
    int32_t dealt = 1;
    while (most * dealt < kFewTrees && places * dealt * 2 <= kManyTransfers) dealt *= 2;
    const int32_t least = std::max(dealt, pipeline ? kFewWaves : 1);
    while (out_.cut * 2 <= renaming_.most_cut && static_cast<int64_t>(fewest) * out_.cut < least &&
           places * dealt * out_.cut <= kManyTransfers)
      out_.cut *= 2;
    return dealt;
  }

  // Fills new_chunk_ with the first new chunk of every old chunk.
  void NumberChunks() {
    std::vector<std::pair<PartId, PartId>> parts;  // new, old
    for (int32_t p = 0; p < collective_.num_parts(); ++p)
      if (const std::optional<PartId> now = renaming_.part[PartId(p)]) parts.emplace_back(*now, p);
    std::sort(parts.begin(), parts.end());
    new_chunk_.assign(static_cast<size_t>(collective_.num_chunks()), 0);
    int32_t next = 0;
    for (const auto& [now, old] : parts)
      for (int32_t i = 0; i < collective_.ChunksOf(old); ++i, next += out_.cut)
        new_chunk_[collective_.FirstChunk(old).index() + static_cast<size_t>(i)] = next;
  }

  // Deals the group's chunks to `dealt` trees and adds the trees. All first pieces come before all second
  // pieces.
  Status AddTrees(Group& group, int32_t dealt) {
    std::sort(group.chunks.begin(), group.chunks.end());
    std::vector<Tree> trees(static_cast<size_t>(dealt));
    size_t turn = 0;
    for (int32_t piece = 0; piece < out_.cut; ++piece) {
      for (const auto& [step, chunk] : group.chunks) {
        Tree& tree = trees[turn++ % trees.size()];
        tree.chunks.emplace_back(new_chunk_[static_cast<size_t>(chunk)] + piece);
        tree.later.push_back(piece * steps_ + step - group.flow.first_step);
      }
    }
    for (Tree& tree : trees) {
      if (tree.chunks.empty()) continue;
      if (!group.flow.up.empty()) {
        tree.sums = true;
        XCCL_RETURN_IF_ERROR(AddTree(tree, group.flow.up, false));
      }
      if (group.flow.down.empty()) continue;
      tree.sums = false;
      XCCL_RETURN_IF_ERROR(AddTree(tree, group.flow.down, group.flow.up_root.has_value()));
    }
    return OkStatus();
  }

  Status AddTree(const Tree& tree, const std::vector<std::pair<int32_t, int32_t>>& edges, bool after_sums) {
    const int64_t places = static_cast<int64_t>(out_.places.size()) + out_.num_ranks;
    if (places > kMostCells)
      return LimitReached(fmt::format("a plan of more than {} edges is not repaired", kMostCells));
    const int32_t index = static_cast<int32_t>(out_.trees.size());
    out_.trees.push_back(tree);
    out_.places.resize(static_cast<size_t>(places));
    std::vector<std::optional<int32_t>>& mine = up_;  // reused, because up_ is empty between chunks
    for (const auto& [rank, t] : edges) mine[static_cast<size_t>(rank)] = t;
    std::optional<int32_t> orphan;  // the first rank whose edge led to a lost root
    for (const auto& [old_rank, t] : edges) {
      const Rank old_next = tree.sums ? schedule_.dst[t] : schedule_.src[t];
      const std::optional<Rank> next = renaming_.rank[old_next], rank = renaming_.rank[Rank(old_rank)];
      const bool next_is_root = !mine[old_next.index()];
      if (next_is_root && next) out_.At(index, next->value).next = kRoot;
      if (!rank) continue;
      if (next_is_root && !next && !orphan) orphan = rank->value;
      const std::optional<PathId> path = path_[schedule_.path[t].index()];
      out_.At(index, rank->value) = {.next = next && path ? next->value : kCutOff,
                                     .path = path.value_or(PathId(0)),
                                     .step = schedule_.step[t]};
    }
    for (const auto& [rank, t] : edges) mine[static_cast<size_t>(rank)].reset();
    if (orphan) Crown(index, after_sums, *orphan);
    return OkStatus();
  }

  // Gives a tree whose root is gone a new root. A tree of copies after sums takes the rank that now has the
  // sum. Any other tree takes the rank `orphan`.
  void Crown(int32_t tree, bool after_sums, int32_t orphan) {
    int32_t root = orphan;
    if (after_sums)
      for (int32_t r = 0; r < out_.num_ranks; ++r)
        if (out_.At(tree - 1, r).next == kRoot) root = r;
    out_.At(tree, root) = {.next = kRoot, .path = {}, .step = 0};
  }

  const Schedule& schedule_;
  const Collective& collective_;
  const Topology& old_;
  const Renaming& renaming_;
  const int32_t steps_;
  std::vector<std::optional<PathId>> path_;  // by old path; nullopt: a link is gone
  Trees out_;
  std::vector<int32_t> held_;                      // by old rank: number of contributions that it holds
  std::vector<std::optional<int32_t>> up_, down_;  // by old rank: transfer of its edge
  std::vector<int64_t> walked_;                    // by old rank: last walk that passed the rank
  int64_t walks_ = 0;
  std::vector<int32_t> read_;
  std::vector<Holding> holdings_;
  std::map<std::vector<int32_t>, size_t> group_of_;
  std::vector<Group> groups_;
  std::vector<int32_t> new_chunk_;  // by old chunk: its first new chunk
};

// Writes one tree after the other. A chunk's tree of sums comes before its tree of copies.
class Writer {
 public:
  Writer(const Trees& trees, const Collective& collective) : trees_(trees), collective_(collective) {
    out_.num_chunks = collective.num_chunks();
    for (int32_t p = 0; p < trees.paths.size(); ++p) out_.paths.Intern(trees.paths[PathId(p)]);
    step_.resize(static_cast<size_t>(trees.num_ranks));
    needed_.resize(step_.size());
  }

  Schedule Write() {
    for (int32_t t = 0; t < static_cast<int32_t>(trees_.trees.size()); ++t) {
      const Tree& tree = trees_.trees[static_cast<size_t>(t)];
      const bool after_sums =
          !tree.sums && t > 0 && trees_.trees[static_cast<size_t>(t) - 1].chunks == tree.chunks;
      if (!after_sums) ready_ = 0;
      Order(t);
      MarkNeeded(t, tree);
      const int64_t first = out_.size();
      tree.sums ? WriteSums(t, tree) : WriteCopies(t, tree);
      RepeatFrom(first, tree);
    }
    Normalize(out_);
    return std::move(out_);
  }

 private:
  // Repeats the first chunk's transfers for every other chunk of the tree. Delays each chunk's transfers by
  // Tree::later.
  void RepeatFrom(int64_t first, const Tree& tree) {
    const int64_t end = out_.size();
    for (size_t i = 1; i < tree.chunks.size(); ++i) {
      for (int64_t t = first; t < end; ++t) {
        Transfer transfer = out_.at(t);
        transfer.first = tree.chunks[i];
        transfer.step += tree.later[i];
        out_.Add(transfer);
      }
    }
    for (int64_t t = first; t < end; ++t) out_.step[static_cast<size_t>(t)] += tree.later[0];
  }

  // Lists the ranks of the tree from the root outwards in order_, and the children of each rank in children_.
  void Order(int32_t t) {
    const auto tree = std::span(trees_.places).subspan(trees_.Index(t, 0), step_.size());
    for (const Place& place : tree) XCCL_CHECK(place.next != kCutOff);
    children_ = GroupItems<int32_t>(tree.size(), [&](auto add) {
      for (size_t r = 0; r < tree.size(); ++r)
        if (tree[r].next >= 0) add(tree[r].next, static_cast<int32_t>(r));
    });
    order_.clear();
    for (size_t r = 0; r < tree.size(); ++r)
      if (tree[r].next == kRoot) order_.push_back(static_cast<int32_t>(r));
    for (size_t i = 0; i < order_.size(); ++i)
      for (int32_t child : children_[order_[i]]) order_.push_back(child);
  }

  // Marks ranks that hold or need the chunk (own_, needed_), and ranks between them and the root (needed_).
  void MarkNeeded(int32_t t, const Tree& tree) {
    std::fill(needed_.begin(), needed_.end(), false);
    const ChunkId chunk = tree.chunks.front();
    tree.sums ? collective_.Before(chunk, holdings_) : collective_.After(chunk, holdings_);
    for (const Holding& h : holdings_) needed_[h.rank.index()] = true;
    own_ = needed_;
    for (size_t i = order_.size(); i-- > 0;) {
      const int32_t next = trees_.At(t, order_[i]).next;
      if (next >= 0 && needed_[static_cast<size_t>(order_[i])]) needed_[static_cast<size_t>(next)] = true;
    }
  }

  void WriteCopies(int32_t t, const Tree& tree) {
    for (int32_t r : order_) {
      const Place& place = trees_.At(t, r);
      if (place.next < 0) {
        step_[static_cast<size_t>(r)] = ready_ - 1;
        continue;
      }
      const int32_t step = std::max(place.step, step_[static_cast<size_t>(place.next)] + 1);
      step_[static_cast<size_t>(r)] = step;
      if (needed_[static_cast<size_t>(r)])
        out_.Add({tree.chunks.front(), 1, Rank(place.next), Rank(r), place.path, TransferOp::kCopy, step});
    }
  }

  // Writes the transfers of a tree of sums, from the leaves inwards. A rank without a contribution of its own
  // first receives a copy; further messages are added to that copy.
  void WriteSums(int32_t t, const Tree& tree) {
    for (size_t i = order_.size(); i-- > 0;) {
      const int32_t r = order_[i];
      feeders_.clear();
      for (int32_t child : children_[r])
        if (needed_[static_cast<size_t>(child)]) feeders_.push_back(child);
      std::stable_sort(feeders_.begin(), feeders_.end(), [&](int32_t a, int32_t b) {
        return step_[static_cast<size_t>(a)] < step_[static_cast<size_t>(b)];
      });
      bool empty = !own_[static_cast<size_t>(r)];
      int32_t last = -1, after = 0;
      for (int32_t child : feeders_) {
        const int32_t step = std::max(step_[static_cast<size_t>(child)], after);
        out_.Add({tree.chunks.front(), 1, Rank(child), Rank(r), trees_.At(t, child).path,
                  empty ? TransferOp::kCopy : TransferOp::kReduce, step});
        if (empty) after = step + 1;
        empty = false;
        last = std::max(last, step);
      }
      // r's own edge goes after all edges that lead to r.
      step_[static_cast<size_t>(r)] = std::max(trees_.At(t, r).step, last + 1);
      if (trees_.At(t, r).next == kRoot) ready_ = last + 1;
    }
  }

  const Trees& trees_;
  const Collective& collective_;
  Schedule out_;
  int32_t ready_ = 0;          // the first step in which the chunk's sum may be sent on
  Grouped<int32_t> children_;  // by rank
  std::vector<int32_t> order_, feeders_;
  std::vector<int32_t> step_;
  std::vector<bool> needed_, own_;
  std::vector<Holding> holdings_;
};

}  // namespace

StatusOr<Trees> TreesOf(const Schedule& schedule, const Collective& collective, const Topology& old,
                        const Renaming& renaming, int32_t new_ranks) {
  return Reader(schedule, collective, old, renaming, new_ranks).Read();
}

Schedule ScheduleOf(const Trees& trees, const Collective& collective) {
  return Writer(trees, collective).Write();
}

}  // namespace xccl::replan
