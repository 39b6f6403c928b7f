// Walks the instructions of one rank in topological order. Every slot keeps its last writer and the readers
// since; each access must come after those that it conflicts with. If every access is ordered after the
// conflicting ones just before it, then all are ordered (Flanagan and Freund, FastTrack, 2009).
#include "ir/verify/verify_accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/violation.h"

namespace xccl {
namespace {

// Limit on the steps of the search for orders through other ranks, over the whole program.
constexpr int64_t kSearchLimit = 20'000'000;

// Decides whether a comes before b along threadblocks, dependencies and connections, by walking back from b.
class OrderSearch {
 public:
  OrderSearch(const ProgramIndex& index, const std::vector<int32_t>& order)
      : index_(index), place_(order.size()), seen_(order.size(), 0) {
    for (size_t i = 0; i < order.size(); ++i) place_[order[i]] = static_cast<int32_t>(i);
  }

  bool Before(int32_t a, int32_t b) {
    ++stamp_;
    stack_ = {b};
    while (!stack_.empty() && steps_ < kSearchLimit) {
      const int32_t node = stack_.back();
      stack_.pop_back();
      Predecessors(index_, node, ProgramEdges::kAll, 0, predecessors_);
      for (int32_t p : predecessors_) {
        ++steps_;
        if (p == a) return true;
        if (place_[p] < place_[a] || seen_[p] == stamp_) continue;
        seen_[p] = stamp_;
        stack_.push_back(p);
      }
    }
    return false;
  }

 private:
  const ProgramIndex& index_;
  std::vector<int32_t> place_, seen_, stack_, predecessors_;
  int32_t stamp_ = 0;
  int64_t steps_ = 0;
};

// Vector clocks: for each instruction of one rank, the last instruction of every threadblock that is done
// before it. A clock is stored only where a dependency changes it.
class RankClocks {
 public:
  RankClocks(const ProgramIndex& index, Rank rank)
      : index_(index),
        first_block_(index.RankFirstBlock(rank)),
        blocks_(static_cast<size_t>(index.RankFirstBlock(Rank(rank.value + 1)) - first_block_)),
        current_(blocks_ * blocks_, -1) {
    const int32_t first = index.BlockFirst(first_block_);
    const int32_t last = index.BlockFirst(first_block_ + static_cast<int32_t>(blocks_));
    first_node_ = first;
    stored_.assign(static_cast<size_t>(last - first), -1);
    latest_.assign(blocks_, -1);
  }

  // Requires: called in topological order.
  void Visit(int32_t node) {
    const size_t own = static_cast<size_t>(index_.BlockOf(node) - first_block_);
    int32_t* clock = &current_[own * blocks_];
    bool changed = false;
    for (const Dependency& dependency : index_.Dependencies(node)) {
      const size_t other = static_cast<size_t>(dependency.threadblock);
      if (other == own) continue;
      if (clock[other] >= dependency.index) continue;
      changed = true;
      clock[other] = dependency.index;
      const int32_t on = index_.BlockFirst(first_block_ + dependency.threadblock) + dependency.index;
      if (const int64_t stored = stored_[static_cast<size_t>(on - first_node_)]; stored >= 0)
        for (size_t i = 0; i < blocks_; ++i) clock[i] = std::max(clock[i], pool_[stored + i]);
    }
    if (changed) {
      latest_[own] = static_cast<int64_t>(pool_.size());
      pool_.insert(pool_.end(), clock, clock + blocks_);
    }
    stored_[static_cast<size_t>(node - first_node_)] = latest_[own];
  }

  // True if a is done before b starts, judging by this rank alone. Requires: both visited.
  bool Before(int32_t a, int32_t b) const {
    const int32_t block_a = index_.BlockOf(a), block_b = index_.BlockOf(b);
    if (block_a == block_b) return a < b;
    const int64_t stored = stored_[static_cast<size_t>(b - first_node_)];
    return stored >= 0 && pool_[static_cast<size_t>(stored) + static_cast<size_t>(block_a - first_block_)] >=
                              a - index_.BlockFirst(block_a);
  }

 private:
  const ProgramIndex& index_;
  int32_t first_block_;
  size_t blocks_;
  int32_t first_node_ = 0;
  std::vector<int32_t> current_, pool_;
  std::vector<int64_t> stored_;  // by instruction: offset of its clock in the pool; -1: none
  std::vector<int64_t> latest_;  // likewise, of the last instruction visited in every threadblock
};

struct SlotHistory {
  int32_t writer = kNoNode;
  std::vector<int32_t> readers;
};

class RankAccessCheck {
 public:
  RankAccessCheck(const Program& program, const Collective& collective, const ProgramIndex& index, Rank rank,
                  bool in_place, OrderSearch& search, std::vector<Violation>& violations)
      : index_(index), clocks_(index, rank), in_place_(in_place), search_(search), violations_(violations) {
    sizes_[0] = SlotChunks(program, collective, rank, BufferKind::kInput).size();
    sizes_[1] = SlotChunks(program, collective, rank, BufferKind::kOutput).size();
    sizes_[2] = program.ranks[rank].scratch.size();
    if (in_place) shift_ = InPlaceShift(collective, rank);
    // There is room for the output on both sides of the input, since the shift may have either sign.
    const size_t reach = sizes_[0] + sizes_[1];
    user_.resize(2 * reach);
    scratch_.resize(sizes_[2]);
    origin_ = static_cast<int64_t>(reach);
  }

  void Visit(int32_t node) {
    clocks_.Visit(node);
    const Instruction& i = index_.instruction(node);
    if (in_place_ && i.op == Opcode::kCopy && !i.first && &At(i.src, 0) == &At(i.dst, 0)) return;
    if (ReadsSource(i.op))
      for (int32_t k = 0; k < i.count; ++k) Read(node, i.src, k);
    if (WritesDestination(i.op))
      for (int32_t k = 0; k < i.count; ++k) Write(node, i.dst, k);
  }

 private:
  SlotHistory& At(const Operand& operand, int32_t k) {
    const int64_t slot = operand.slot + k;
    switch (operand.buffer) {
      case BufferKind::kScratch:
        return scratch_[static_cast<size_t>(slot)];
      case BufferKind::kOutput:
        // Out of place, the output follows the input.
        return user_[static_cast<size_t>(origin_ + slot)];
      case BufferKind::kInput:
        return user_[static_cast<size_t>(shift_ ? origin_ + slot + *shift_
                                                : origin_ - static_cast<int64_t>(sizes_[0]) + slot)];
    }
    return scratch_.front();
  }

  void Read(int32_t node, const Operand& operand, int32_t k) {
    SlotHistory& slot = At(operand, k);
    Order(slot.writer, node, operand, k, "reads", "written");
    slot.readers.push_back(node);
  }

  void Write(int32_t node, const Operand& operand, int32_t k) {
    SlotHistory& slot = At(operand, k);
    Order(slot.writer, node, operand, k, "writes", "written");
    for (int32_t reader : slot.readers) Order(reader, node, operand, k, "writes", "read");
    slot.writer = node;
    slot.readers.clear();
  }

  void Order(int32_t earlier, int32_t node, const Operand& operand, int32_t k, const char* does,
             const char* done) {
    if (earlier == kNoNode || earlier == node || clocks_.Before(earlier, node)) return;
    if (static_cast<int32_t>(violations_.size()) >= kMaxViolations) return;
    if (search_.Before(earlier, node)) return;
    const ProgramSite other = index_.Site(earlier);
    violations_.push_back(
        {"P6", fmt::format("{}{}", in_place_ ? "in place, " : "", ToString(index_.Site(node))),
         fmt::format("{} {} slot {}, which is {} by threadblock {} instruction {}; nothing orders the two",
                     does, ToString(operand.buffer), operand.slot + k, done, other.threadblock,
                     other.index)});
  }

  const ProgramIndex& index_;
  RankClocks clocks_;
  const bool in_place_;
  OrderSearch& search_;
  std::vector<Violation>& violations_;
  size_t sizes_[3] = {0, 0, 0};
  std::optional<int32_t> shift_;
  int64_t origin_ = 0;
  std::vector<SlotHistory> user_, scratch_;
};

}  // namespace

void CheckAccesses(const Program& program, const Collective& collective, const ProgramIndex& index,
                   const std::vector<int32_t>& order, bool in_place, std::vector<Violation>& violations) {
  IdVector<Rank, std::vector<int32_t>> of_rank(static_cast<size_t>(program.ranks.size()));
  for (int32_t node : order) of_rank[index.BlockRank(index.BlockOf(node))].push_back(node);
  OrderSearch search(index, order);
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    if (of_rank[r].empty()) continue;
    RankAccessCheck check(program, collective, index, r, in_place, search, violations);
    for (int32_t node : of_rank[r]) check.Visit(node);
  }
}

}  // namespace xccl
