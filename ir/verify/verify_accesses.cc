// Walks the instructions of one rank in topological order. Every slot keeps its last writer and the readers
// since; each access must come after those that it conflicts with. If every access is ordered after the
// conflicting ones just before it, then all are ordered (Flanagan and Freund, FastTrack, 2009).
#include "ir/verify/verify_accesses.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>

#include "ir/analysis/rank_clocks.h"
#include "ir/analysis/slot_line.h"
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

struct SlotHistory {
  int32_t writer = kNoNode;
  std::vector<int32_t> readers;
};

class RankAccessCheck {
 public:
  RankAccessCheck(const Program& program, const Collective& collective, const ProgramIndex& index, Rank rank,
                  std::span<const int32_t> nodes, bool in_place, OrderSearch& search,
                  std::vector<Violation>& violations)
      : index_(index),
        protocol_(program.protocol),
        clocks_(index, rank, nodes),
        line_(program, collective, rank, in_place),
        in_place_(in_place),
        search_(search),
        violations_(violations),
        slots_(line_.size()) {}

  void Visit(int32_t node) {
    const Instruction& i = index_.instruction(node);
    if (in_place_ && i.op == Opcode::kCopy && !i.first && line_.SlotOf(i.src) == line_.SlotOf(i.dst)) return;
    if (ReadsSource(i.op))
      for (int32_t k = 0; k < i.count; ++k) Read(node, i.src, k);
    if (WritesDestination(i.op))
      for (int32_t k = 0; k < i.count; ++k) Write(node, i, k);
  }

 private:
  SlotHistory& At(const Operand& operand, int32_t k) {
    return slots_[line_.SlotOf(operand) + static_cast<size_t>(k)];
  }

  void Read(int32_t node, const Operand& operand, int32_t k) {
    SlotHistory& slot = At(operand, k);
    Order(slot.writer, node, operand, k, "reads", "written");
    slot.readers.push_back(node);
  }

  void Write(int32_t node, const Instruction& i, int32_t k) {
    const Operand& operand = i.dst;
    SlotHistory& slot = At(operand, k);
    Order(slot.writer, node, operand, k, "writes", "written");
    for (int32_t reader : slot.readers) {
      if (reader == node && line_.SlotOf(i.src) != line_.SlotOf(operand))
        Report(node, operand, k, "writes", "which it reads for another chunk; nothing orders the two");
      Order(reader, node, operand, k, "writes", "read");
    }
    slot.writer = node;
    slot.readers.clear();
  }

  void Order(int32_t earlier, int32_t node, const Operand& operand, int32_t k, const char* does,
             const char* done) {
    if (earlier == kNoNode || earlier == node || clocks_.Before(earlier, node)) return;
    if (static_cast<int32_t>(violations_.size()) >= kMaxViolations) return;
    const bool by_messages = search_.Before(earlier, node);
    if (by_messages && protocol_ == Protocol::kSimple) return;
    const ProgramSite other = index_.Site(earlier);
    std::string why = "nothing orders the two";
    if (by_messages)
      why = fmt::format(
          "only messages order the two, which needs protocol simple, not {}; hint: protocol simple",
          ToString(protocol_));
    Report(node, operand, k, does,
           fmt::format("which is {} by threadblock {} instruction {}; {}", done, other.threadblock,
                       other.index, why));
  }

  void Report(int32_t node, const Operand& operand, int32_t k, const char* does, std::string conflict) {
    if (static_cast<int32_t>(violations_.size()) >= kMaxViolations) return;
    violations_.push_back(
        {"P6", fmt::format("{}{}", in_place_ ? "in place, " : "", ToString(index_.Site(node))),
         fmt::format("{} {} slot {}, {}", does, ToString(operand.buffer), operand.slot + k, conflict)});
  }

  const ProgramIndex& index_;
  const Protocol protocol_;
  const RankClocks clocks_;
  const SlotLine line_;
  const bool in_place_;
  OrderSearch& search_;
  std::vector<Violation>& violations_;
  std::vector<SlotHistory> slots_;
};

}  // namespace

void CheckAccesses(const Program& program, const Collective& collective, const ProgramIndex& index,
                   const std::vector<int32_t>& order, bool in_place, std::vector<Violation>& violations) {
  const Grouped<int32_t> of_rank = ByRank(index, order);
  OrderSearch search(index, order);
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    const std::span<const int32_t> nodes = of_rank[r.value];
    RankAccessCheck check(program, collective, index, r, nodes, in_place, search, violations);
    for (int32_t node : nodes) check.Visit(node);
  }
}

}  // namespace xccl
