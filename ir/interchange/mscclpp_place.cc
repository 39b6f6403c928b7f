#include "ir/interchange/mscclpp_place.h"

#include <algorithm>
#include <optional>

namespace xccl::mscclpp {

Places::Places(const Program& program, const Collective& collective, const Cut& cut,
               const ProgramIndex& index, bool in_place, bool packets)
    : program_(program),
      collective_(collective),
      cut_(cut),
      index_(index),
      in_place_(in_place),
      packets_(packets),
      direct_(static_cast<size_t>(index.size()), false) {
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    plain_.push_back(cut.Width(r, BufferKind::kScratch));
    landed_.push_back(0);
  }
  if (!packets) {
    FindDirect();
    return;
  }
  for (int32_t node = 0; node < index.size(); ++node) {
    const Instruction& i = index.instruction(node);
    if (i.op != Opcode::kRecvReduceSend) continue;
    unused_[node] = plain_[RankOf(node)];
    plain_[RankOf(node)] += cut.copies() * cut.SizeOf(RankOf(node), i.src, i.count);
  }
}

// One number for what shares memory.
std::vector<int64_t> Places::CellsOf(Rank r, const Operand& operand, int32_t count) const {
  std::vector<int64_t> cells;
  const std::optional<int32_t> shift = in_place_ ? InPlaceShift(collective_, r) : std::nullopt;
  for (int64_t slot = operand.slot; slot < operand.slot + count; ++slot) {
    if (operand.buffer == BufferKind::kInput)
      cells.push_back(shift ? (slot + *shift) * 3 + 1 : slot * 3);
    else
      cells.push_back(slot * 3 + (operand.buffer == BufferKind::kOutput ? 1 : 2));
  }
  return cells;
}

// Is all that `before` lists done when `node` begins, by messages and waits alone?
bool Places::AllPrecede(std::vector<int32_t> before, int32_t node) {
  int32_t first = position_[static_cast<size_t>(node)];
  for (const int32_t b : before) first = std::min(first, position_[static_cast<size_t>(b)]);
  std::vector<int32_t> stack = {node}, previous;
  ++mark_;
  while (!stack.empty() && !before.empty()) {
    const int32_t at = stack.back();
    stack.pop_back();
    Predecessors(index_, at, ProgramEdges::kAll, 0, previous);
    for (const int32_t p : previous) {
      if (position_[static_cast<size_t>(p)] < first || seen_[static_cast<size_t>(p)] == mark_) continue;
      seen_[static_cast<size_t>(p)] = mark_;
      std::erase(before, p);
      stack.push_back(p);
    }
  }
  return before.empty();
}

void Places::FindDirect() {
  const std::vector<int32_t> order = TopologicalOrder(program_, index_, ProgramEdges::kAll);
  position_.resize(static_cast<size_t>(index_.size()));
  seen_.assign(static_cast<size_t>(index_.size()), 0);
  for (size_t i = 0; i < order.size(); ++i)
    position_[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  std::vector<std::map<int64_t, std::vector<int32_t>>> users(static_cast<size_t>(program_.ranks.size()));
  for (int32_t node = 0; node < index_.size(); ++node) {
    const Instruction& i = index_.instruction(node);
    const auto add = [&](const Operand& operand) {
      for (const int64_t cell : CellsOf(RankOf(node), operand, i.count))
        users[RankOf(node).index()][cell].push_back(node);
    };
    if (ReadsSource(i.op)) add(i.src);
    if (WritesDestination(i.op)) add(i.dst);
  }
  for (int32_t node = 0; node < index_.size(); ++node) {
    const Instruction& i = index_.instruction(node);
    if (i.op != Opcode::kRecv && i.op != Opcode::kRecvCopySend) continue;
    const std::span<const int32_t> connections = index_.RecvConnections(index_.BlockOf(node));
    if (connections.size() > 1) continue;
    std::vector<int32_t> before;
    for (const int64_t cell : CellsOf(RankOf(node), i.dst, i.count))
      for (const int32_t other : users[RankOf(node).index()][cell])
        if (position_[static_cast<size_t>(other)] < position_[static_cast<size_t>(node)])
          before.push_back(other);
    const int32_t send = index_.SendsOf(connections[0])[static_cast<size_t>(index_.RecvOrdinal(node))];
    direct_[static_cast<size_t>(node)] = before.empty() || AllPrecede(std::move(before), send);
  }
}

const Landing& Places::LandingOf(int32_t connection, int32_t receive, int32_t copy) {
  const auto [at, added] = landings_.try_emplace({connection, receive, copy});
  Landing& landing = at->second;
  if (!added) return landing;
  const Instruction& i = index_.instruction(receive);
  const Operand& operand = WritesDestination(i.op) ? i.dst : i.src;
  landing.spans = cut_.Spans(RankOf(receive), operand, i.count, copy);
  if (IsDirect(receive)) {
    landing.buffer = i.dst.buffer;
    return landing;
  }
  for (Span& span : landing.spans) {
    span.begin = PacketsBegin(RankOf(receive)) + landed_[RankOf(receive)];
    landed_[RankOf(receive)] += span.size;
  }
  return landing;
}

std::vector<Span> Places::Unused(int32_t node, int32_t copy) const {
  const Instruction& i = index_.instruction(node);
  const int64_t size = cut_.SizeOf(RankOf(node), i.src, i.count);
  std::vector<Span> spans = cut_.Spans(RankOf(node), i.src, i.count, copy);
  int64_t begin = unused_.at(node) + copy * size;
  for (Span& span : spans) {
    span.begin = begin;
    begin += span.size;
  }
  return spans;
}

int64_t Places::ScratchOf(Rank r) const { return PacketsBegin(r) + landed_[r]; }

}  // namespace xccl::mscclpp
