#include "interchange/mscclpp/place.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace xccl::mscclpp {

Places::Places(const Program& program, const Collective& collective, const Cut& cut,
               const ProgramIndex& index, bool in_place, bool packets, std::vector<bool> ports)
    : program_(program),
      collective_(collective),
      cut_(cut),
      index_(index),
      in_place_(in_place),
      packets_(packets),
      ports_(std::move(ports)),
      direct_(static_cast<size_t>(index.size()), false),
      copied_(static_cast<size_t>(index.size()), false) {
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    plain_.push_back(cut.Width(r, BufferKind::kScratch));
    landed_.push_back(0);
  }
  if (!packets) {
    FindUsers();
    FindCopied();
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

// The numbers of the operand's places: equal for places that share memory.
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

void Places::FindUsers() {
  order_ = TopologicalOrder(program_, index_, ProgramEdges::kAll);
  position_.resize(static_cast<size_t>(index_.size()));
  seen_.assign(static_cast<size_t>(index_.size()), 0);
  users_.resize(static_cast<size_t>(program_.ranks.size()));
  for (size_t i = 0; i < order_.size(); ++i) {
    const int32_t node = order_[i];
    position_[static_cast<size_t>(node)] = static_cast<int32_t>(i);
    const Instruction& instruction = index_.instruction(node);
    const auto add = [&](const Operand& operand) {
      for (const int64_t cell : CellsOf(RankOf(node), operand, instruction.count)) {
        std::vector<int32_t>& users = users_[RankOf(node).index()][cell];
        if (users.empty() || users.back() != node) users.push_back(node);
      }
    };
    if (ReadsSource(instruction.op)) add(instruction.src);
    if (WritesDestination(instruction.op)) add(instruction.dst);
  }
}

const Operand& Places::SourceOfSend(int32_t send) const {
  const Instruction& i = index_.instruction(send);
  return WritesDestination(i.op) ? i.dst : i.src;
}

std::vector<int32_t> Places::LateReadersOf(int32_t send) const {
  std::vector<int32_t> receives;
  const Opcode op = index_.instruction(send).op;
  // Sums that are stored nowhere are sent from scratch of their own.
  if (op != Opcode::kSend && op != Opcode::kRecvCopySend && op != Opcode::kRecvReduceCopySend)
    return receives;
  for (const int32_t c : index_.SendConnections(index_.BlockOf(send)))
    if (ports_[static_cast<size_t>(c)])
      receives.push_back(index_.ReceivesOf(c)[static_cast<size_t>(index_.SendOrdinal(send))]);
  return receives;
}

// The first later write of a place tells, for writes come one after the other.
void Places::FindCopied() {
  for (const int32_t node : order_) {
    const std::vector<int32_t> late = LateReadersOf(node);
    if (late.empty()) continue;
    std::vector<int32_t> writers;
    for (const int64_t cell : CellsOf(RankOf(node), SourceOfSend(node), index_.instruction(node).count)) {
      const std::vector<int32_t>& users = users_[RankOf(node).index()][cell];
      const auto writer = std::ranges::find_if(users, [&](int32_t user) {
        const Instruction& i = index_.instruction(user);
        if (position_[static_cast<size_t>(user)] <= position_[static_cast<size_t>(node)] ||
            !WritesDestination(i.op))
          return false;
        const std::vector<int64_t> written = CellsOf(RankOf(node), i.dst, i.count);
        return std::ranges::find(written, cell) != written.end();
      });
      if (writer != users.end() && std::ranges::find(writers, *writer) == writers.end())
        writers.push_back(*writer);
    }
    copied_[static_cast<size_t>(node)] =
        std::ranges::any_of(writers, [&](int32_t writer) { return !AllPrecede(late, writer); });
  }
}

void Places::FindDirect() {
  for (const int32_t node : order_) {
    const Instruction& i = index_.instruction(node);
    if (i.op != Opcode::kRecv && i.op != Opcode::kRecvCopySend) continue;
    const std::span<const int32_t> connections = index_.RecvConnections(index_.BlockOf(node));
    if (connections.size() > 1) continue;
    std::vector<int32_t> before;
    for (const int64_t cell : CellsOf(RankOf(node), i.dst, i.count))
      for (const int32_t other : users_[RankOf(node).index()][cell]) {
        if (position_[static_cast<size_t>(other)] >= position_[static_cast<size_t>(node)]) break;
        before.push_back(other);
        // A received message that landed elsewhere is sent on from there, so its readers do not use this
        // cell.
        const bool elsewhere = index_.instruction(other).op == Opcode::kRecvCopySend && !IsDirect(other);
        if (IsCopied(other) || elsewhere) continue;
        const std::vector<int32_t> late = LateReadersOf(other);
        before.insert(before.end(), late.begin(), late.end());
      }
    const int32_t send = index_.SendsOf(connections[0])[static_cast<size_t>(index_.RecvOrdinal(node))];
    const bool direct = before.empty() || AllPrecede(std::move(before), send);
    direct_[static_cast<size_t>(node)] = direct;
    if (i.op == Opcode::kRecvCopySend && !direct) copied_[static_cast<size_t>(node)] = false;
  }
}

void Places::PutIntoScratch(Rank r, std::vector<Span>& spans) {
  for (Span& span : spans) {
    span.begin = PacketsBegin(r) + landed_[r];
    landed_[r] += span.size;
  }
}

const std::vector<Span>& Places::CopyOf(int32_t send, int32_t copy) {
  const auto [at, added] = copies_.try_emplace({send, copy});
  if (!added) return at->second;
  const Rank r = RankOf(send);
  at->second = cut_.Spans(r, SourceOfSend(send), index_.instruction(send).count, copy);
  PutIntoScratch(r, at->second);
  return at->second;
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
  PutIntoScratch(RankOf(receive), landing.spans);
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
