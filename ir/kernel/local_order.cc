// Questions about slots compare the accesses of a slot in pairs, of which there are few. A slot with more
// than kMostAccesses counts as not ordered.
#include "ir/kernel/local_order.h"

#include <algorithm>

namespace xccl {
namespace {

constexpr size_t kMostAccesses = 256;

}  // namespace

SlotAccesses::SlotAccesses(const Program& program, const Collective& collective, const ProgramIndex& index,
                           Rank rank, bool in_place)
    : index_(index), line_(program, collective, rank, in_place), of_slot_(line_.size()) {
  const int32_t end = index.BlockFirst(index.RankFirstBlock(Rank(rank.value + 1)));
  for (int32_t node = index.BlockFirst(index.RankFirstBlock(rank)); node < end; ++node) {
    const Instruction& i = index.instruction(node);
    // In place, a copy of a slot onto itself does nothing.
    if (i.op == Opcode::kCopy && !i.first && !i.final && line_.SlotOf(i.src) == line_.SlotOf(i.dst)) continue;
    if (ReadsSource(i.op)) Add(i.src, i.count, node, false);
    if (WritesDestination(i.op)) Add(i.dst, i.count, node, true);
  }
}

void SlotAccesses::Add(const Operand& operand, int32_t count, int32_t node, bool writes) {
  for (int32_t k = 0; k < count; ++k) of_slot_[line_.SlotOf(operand) + k].push_back({node, writes});
}

bool SlotAccesses::NothingBefore(int32_t node, const RankClocks& order, const Except& except) const {
  const Instruction& i = index_.instruction(node);
  for (int32_t k = 0; k < i.count; ++k) {
    const std::vector<Access>& accesses = of_slot_[line_.SlotOf(i.dst) + k];
    if (accesses.size() > kMostAccesses) return false;
    for (const Access& other : accesses)
      if (other.node != node && !order.Before(node, other.node) && !(except && except(other.node)))
        return false;
  }
  return true;
}

bool SlotAccesses::NothingWritesAfter(int32_t node, const Operand& operand, const RankClocks& order,
                                      const Except& except) const {
  for (int32_t k = 0; k < index_.instruction(node).count; ++k) {
    const std::vector<Access>& accesses = of_slot_[line_.SlotOf(operand) + k];
    if (accesses.size() > kMostAccesses) return false;
    for (const Access& other : accesses)
      if (other.writes && other.node != node && !order.Before(other.node, node) &&
          !(except && except(other.node)))
        return false;
  }
  return true;
}

bool SlotAccesses::AllOrdered(const RankClocks& order) const {
  for (const std::vector<Access>& accesses : of_slot_) {
    if (accesses.size() > kMostAccesses) return false;
    for (size_t a = 0; a < accesses.size(); ++a)
      for (size_t b = a + 1; b < accesses.size(); ++b)
        if ((accesses[a].writes || accesses[b].writes) && accesses[a].node != accesses[b].node &&
            !order.Before(accesses[a].node, accesses[b].node) &&
            !order.Before(accesses[b].node, accesses[a].node))
          return false;
  }
  return true;
}

std::optional<int32_t> RootTurns::TakenBy(int32_t node) const {
  if (!Sends(index_.instruction(node).op) || ThreadblockOf(node).send_group) return std::nullopt;
  const int32_t connection = index_.SendConnection(index_.BlockOf(node));
  const int32_t at = index_.ReceivesOf(connection)[static_cast<size_t>(index_.SendOrdinal(node))];
  return ThreadblockOf(at).recv_group ? std::optional(at) : std::nullopt;
}

std::optional<int32_t> RootTurns::SentBy(int32_t node) const {
  if (!Receives(index_.instruction(node).op) || ThreadblockOf(node).recv_group) return std::nullopt;
  const int32_t connection = index_.RecvConnection(index_.BlockOf(node));
  const int32_t at = index_.SendsOf(connection)[static_cast<size_t>(index_.RecvOrdinal(node))];
  return ThreadblockOf(at).send_group ? std::optional(at) : std::nullopt;
}

bool RootTurns::InTurn(std::optional<int32_t> taken, std::optional<int32_t> sent) const {
  return taken && sent && index_.BlockOf(*taken) == index_.BlockOf(*sent) && *taken <= *sent;
}

SlotAccesses::Except RootTurns::TakenBeforeSent(int32_t node) const {
  return [this, sent = SentBy(node)](int32_t other) { return InTurn(TakenBy(other), sent); };
}

SlotAccesses::Except RootTurns::SentAfterTaken(int32_t node) const {
  return [this, taken = TakenBy(node)](int32_t other) { return InTurn(taken, SentBy(other)); };
}

}  // namespace xccl
