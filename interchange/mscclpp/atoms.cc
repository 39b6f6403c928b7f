// A message is put where its receive writes if that place is free by then; else into scratch, from where the
// receive takes it. A wait of a threadblock is left out if an earlier wait of the threadblock includes it.
#include "interchange/mscclpp/atoms.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace xccl::mscclpp {

std::vector<Piece> Local(BufferKind buffer, const std::vector<Span>& spans) {
  std::vector<Piece> pieces;
  pieces.reserve(spans.size());
  for (const Span& span : spans) pieces.push_back({Piece::Where::kLocal, buffer, 0, span.begin, span.size});
  return pieces;
}

ChannelType TypeOf(const IdVector<Rank, int32_t>& domains, Rank a, Rank b) {
  return domains.empty() || domains[a] == domains[b] ? ChannelType::kMemory : ChannelType::kPort;
}

namespace {

std::vector<bool> PortsOf(const Program& program, const IdVector<Rank, int32_t>& domains) {
  std::vector<bool> ports;
  for (const Connection& c : program.connections)
    ports.push_back(TypeOf(domains, c.src, c.dst) == ChannelType::kPort);
  return ports;
}

}  // namespace

Atoms::Atoms(const Program& program, const Collective& collective, const Cut& cut,
             const BlockOptions& options)
    : program_(program),
      collective_(collective),
      cut_(cut),
      options_(options),
      index_(program),
      places_(program, collective, cut, index_, options.in_place, options.packets,
              PortsOf(program, options.domains)),
      gpus_(static_cast<size_t>(program.ranks.size())),
      part_(static_cast<size_t>(index_.size()), 0) {
  KeepWaits();
  FindStored();
}

// A switch stores in its root's output too: the root's own copy is left out.
void Atoms::FindStored() {
  stored_.resize(gpus_.size());
  for (int32_t node = 0; node < index_.size(); ++node) {
    const Instruction& i = index_.instruction(node);
    if (i.op != Opcode::kSend || SwitchGroup(index_.threadblock(index_.BlockOf(node)).send_group) == nullptr)
      continue;
    const Operand& target = index_.instruction(ReceiveOf(node, SendsTo(node)[0])).dst;
    if (i.src.buffer != BufferKind::kInput || target.buffer != BufferKind::kOutput) continue;
    for (int32_t k = 0; k < i.count; ++k) stored_[RankOf(node).index()][target.slot + k] = i.src.slot + k;
  }
}

void Atoms::SetParts(std::vector<int32_t> parts_of) {
  part_ = std::move(parts_of);
  semaphores_.clear();
  for (Gpu& gpu : gpus_) gpu.semaphores.clear();
}

std::span<const int32_t> Atoms::SendsTo(int32_t node) const {
  return Sends(index_.instruction(node).op) ? index_.SendConnections(index_.BlockOf(node))
                                            : std::span<const int32_t>();
}
std::span<const int32_t> Atoms::ReceivesFrom(int32_t node) const {
  return Receives(index_.instruction(node).op) ? index_.RecvConnections(index_.BlockOf(node))
                                               : std::span<const int32_t>();
}

// Keeps a threadblock's wait for an instruction of another threadblock, unless an earlier wait for that
// threadblock already includes it.
void Atoms::KeepWaits() {
  waits_.resize(static_cast<size_t>(index_.size()));
  awaited_.resize(static_cast<size_t>(index_.size()));
  for (int32_t block = 0; block < index_.num_blocks(); ++block) {
    std::map<int32_t, int32_t> last;  // by block: the last instruction that was waited for
    for (size_t i = 0; i < index_.threadblock(block).instructions.size(); ++i) {
      const int32_t node = index_.BlockFirst(block) + static_cast<int32_t>(i);
      std::map<int32_t, int32_t> wanted;
      for (const Dependency& d : index_.Dependencies(node)) {
        const int32_t on = index_.NodeOf(index_.BlockRank(block), d);
        int32_t& most = wanted.try_emplace(index_.BlockOf(on), -1).first->second;
        most = std::max(most, on);
      }
      for (const auto& [other, on] : wanted) {
        int32_t& before = last.try_emplace(other, -1).first->second;
        if (other == block || on <= before) continue;
        before = on;
        waits_[static_cast<size_t>(node)].push_back(on);
        awaited_[static_cast<size_t>(on)].push_back(node);
      }
    }
  }
}

// One semaphore for all waits between two parts of an instance.
int32_t Atoms::SemaphoreOf(int32_t block, int32_t part, int32_t waiter, int32_t waiter_part, int32_t copy) {
  std::vector<int32_t>& all = gpus_[index_.BlockRank(block).index()].semaphores;
  const auto [at, added] = semaphores_.try_emplace(
      std::array<int32_t, 5>{block, part, waiter, waiter_part, copy}, static_cast<int32_t>(all.size()));
  if (added) all.push_back(0);
  return at->second;
}
const Group* Atoms::SwitchGroup(std::optional<int32_t> group) const {
  if (!group || !HasSwitch(program_.groups[static_cast<size_t>(*group)])) return nullptr;
  return &program_.groups[static_cast<size_t>(*group)];
}
// Does a switch carry the messages of this connection into its root?
bool Atoms::IntoSwitch(int32_t connection) const {
  const int32_t receive = index_.ReceivesOf(connection).empty() ? -1 : index_.ReceivesOf(connection)[0];
  return receive >= 0 && SwitchGroup(index_.threadblock(index_.BlockOf(receive)).recv_group) != nullptr;
}

std::vector<LinkId> Atoms::LinksOf(int32_t block, bool sends) const {
  const Threadblock& tb = index_.threadblock(block);
  if (const Group* const group = SwitchGroup(sends ? tb.send_group : tb.recv_group)) return group->path;
  const int32_t connection = sends ? index_.SendConnection(block) : -1;
  return connection < 0 || IntoSwitch(connection) ? std::vector<LinkId>() : ConnectionAt(connection).path;
}

Status Atoms::CheckGroups() const {
  for (int32_t node = 0; node < index_.size(); ++node) {
    const Threadblock& tb = index_.threadblock(index_.BlockOf(node));
    const Opcode op = index_.instruction(node).op;
    const bool reduces = Receives(op) && SwitchGroup(tb.recv_group) != nullptr;
    const bool stores = Sends(op) && SwitchGroup(tb.send_group) != nullptr;
    const std::string_view wrong = reduces || stores ? WrongWithSwitch(node, reduces, stores) : "";
    if (!wrong.empty())
      return InvalidInput(
          fmt::format("{}: {}: {}; expected the sum of inputs, or an input, in the outputs of the same "
                      "ranks: a switch of "
                      "MSCCL++ has no other ops (glres, gstore); hint: plan --plain-switches",
                      options_.name, ToString(index_.Site(node)), wrong));
  }
  return OkStatus();
}
Status Atoms::CheckSpans() const {
  constexpr size_t kMost = static_cast<size_t>(kMostOps) * kMostChannelsOfOp;
  for (int32_t node = 0; node < index_.size(); ++node) {
    const Instruction& i = index_.instruction(node);
    if (i.op == Opcode::kNop || (SendsTo(node).empty() && ReceivesFrom(node).empty())) continue;
    const size_t spans = SpansOf(node, ReadsSource(i.op) ? i.src : i.dst, 0).size();
    if (spans > kMost)
      return InvalidInput(fmt::format(
          "{}: {}: {} pieces of one size; expected {} at most, as many as 64 ops put; hint: chunks of "
          "like sizes, as --chunks makes them",
          options_.name, ToString(index_.Site(node)), spans, kMost));
  }
  return OkStatus();
}

std::string_view Atoms::WrongWithSwitch(int32_t node, bool reduces, bool stores) const {
  const Instruction& i = index_.instruction(node);
  const int32_t block = index_.BlockOf(node);
  if (!stores) return "a reduction in a switch that no multicast follows";
  if (i.op != (reduces ? Opcode::kRecvReduceCopySend : Opcode::kSend))
    return "a multicast of a received message";
  if (i.src.buffer != BufferKind::kInput) return "a switch reads what is no input";
  const std::span<const int32_t> out = index_.SendConnections(block), in = index_.RecvConnections(block);
  if (reduces && out.size() != in.size()) return "a reduction and a multicast of different ranks";
  const Operand target = index_.instruction(ReceiveOf(node, out[0])).dst;
  for (size_t m = 0; m < out.size(); ++m) {
    const int32_t receive = ReceiveOf(node, out[m]);
    if (index_.instruction(receive).op != Opcode::kRecv || !places_.IsDirect(receive))
      return "a switch stores where data is still needed, or that is sent on at once";
    if (index_.instruction(receive).dst != target || target.buffer != BufferKind::kOutput ||
        (reduces && i.dst != target))
      return "a switch stores at different places, or not in outputs";
    if (!reduces) continue;
    const int32_t send = SendOf(node, in[m]);
    if (ConnectionAt(in[m]).src != ConnectionAt(out[m]).dst)
      return "a reduction and a multicast of different ranks";
    if (index_.instruction(send).op != Opcode::kSend || index_.instruction(send).src != i.src)
      return "a switch reads at different places";
  }
  return "";
}

// Every rank of a switch channel lists the same channels in the same order.
int32_t Atoms::SwitchOf(const Group& group, BufferKind buffer) {
  std::vector<int32_t> ranks = {group.root.value};
  for (const Rank member : group.members) ranks.push_back(member.value);
  std::ranges::sort(ranks);
  const std::vector<Switch>& own = gpus_[group.root.index()].switches;
  for (size_t s = 0; s < own.size(); ++s)
    if (own[s].buffer == buffer && own[s].ranks == ranks) return static_cast<int32_t>(s);
  const auto id = static_cast<int32_t>(own.size());
  const int64_t chunks = buffer == BufferKind::kInput ? cut_.NominalInput() : cut_.NominalOutput();
  for (const int32_t r : ranks) gpus_[static_cast<size_t>(r)].switches.push_back({buffer, chunks, ranks});
  return id;
}
void Atoms::AddSwitched(int32_t node, const Group& group, bool reduces, int32_t copy, Atom& atom) {
  const Instruction& i = index_.instruction(node);
  const Operand target = index_.instruction(ReceiveOf(node, SendsTo(node)[0])).dst;
  const std::vector<Span> from = SpansOf(node, i.src, copy), to = SpansOf(node, target, copy);
  const int32_t output = SwitchOf(group, BufferKind::kOutput);
  for (size_t s = 0; s < from.size(); ++s) {
    Op op{.name = reduces ? OpName::kGlres : OpName::kGstore, .type = ChannelType::kSwitch, .sums = reduces};
    op.src = Local(i.src.buffer, {from[s]});
    if (reduces) {
      op.src[0].where = Piece::Where::kSwitch;
      op.src[0].id = SwitchOf(group, BufferKind::kInput);
    }
    op.dst = {{Piece::Where::kSwitch, BufferKind::kOutput, output, to[s].begin, to[s].size}};
    atom.ops.push_back({std::move(op)});
  }
}

std::vector<Span> Atoms::SpansOf(int32_t node, const Operand& operand, int32_t copy) const {
  return cut_.Spans(RankOf(node), operand, index_.instruction(node).count, copy);
}

// A peer's buffer in the rank's list.
int32_t Atoms::RemoteOf(Rank r, Rank peer, BufferKind buffer, ChannelType type) {
  std::vector<RemoteBuffer>& all = gpus_[r.index()].remotes;
  for (size_t b = 0; b < all.size(); ++b)
    if (all[b].rank == peer.value && all[b].buffer == buffer) return static_cast<int32_t>(b);
  all.push_back({peer.value, buffer, {type}});
  return static_cast<int32_t>(all.size()) - 1;
}
std::vector<Piece> Atoms::RemotePieces(int32_t node, int32_t connection, int32_t copy) {
  const Landing& landing = places_.LandingOf(connection, ReceiveOf(node, connection), copy);
  std::vector<Piece> pieces = Local(landing.buffer, landing.spans);
  const int32_t id =
      RemoteOf(RankOf(node), ConnectionAt(connection).dst, landing.buffer, TypeOfConnection(connection));
  for (Piece& piece : pieces) {
    piece.where = Piece::Where::kRemote;
    piece.id = id;
  }
  return pieces;
}

// Sends the data of the source pieces. A put over a port and its signal are one op if there is one piece.
void Atoms::AddPuts(int32_t node, const std::vector<Piece>& source, int32_t copy, Atom& atom) {
  Pieces copied;
  if (places_.IsCopied(node)) copied = Local(BufferKind::kScratch, places_.CopyOf(node, copy));
  for (size_t s = 0; s < copied.size(); ++s)
    atom.ops.push_back({Op{.name = OpName::kCopy, .src = {source[s]}, .dst = {copied[s]}}});
  for (const int32_t connection : SendsTo(node)) {
    const ChannelType type = TypeOfConnection(connection);
    const Pieces& from = type == ChannelType::kPort && !copied.empty() ? copied : source;
    const Lane lane = LaneOfSend(node, connection, copy);
    const std::vector<Piece> to = RemotePieces(node, connection, copy);
    const bool pws = type == ChannelType::kPort && from.size() == 1;
    for (size_t s = 0; s < from.size(); s += kMostChannelsOfOp) {
      const auto n = static_cast<std::ptrdiff_t>(std::min<size_t>(kMostChannelsOfOp, from.size() - s));
      const auto at = static_cast<std::ptrdiff_t>(s);
      Op op{.name = options_.packets ? OpName::kPpkt : pws ? OpName::kPws : OpName::kPut, .type = type};
      op.src.assign(from.begin() + at, from.begin() + at + n);
      op.dst.assign(to.begin() + at, to.begin() + at + n);
      atom.ops.push_back({std::move(op), lane});
    }
    if (!pws && !options_.packets) atom.signals.push_back(lane);
  }
}

// dst = the sum of all inputs, span by span; with `to`, the last op of a span also sends it there. In place
// dst may be the rank's own input, so that sums which take several ops are added up where the first message
// landed.
void Atoms::AddSums(const std::vector<Pieces>& inputs, const Pieces& dst, const Pieces& to,
                    const std::optional<Lane>& lane, Atom& atom) const {
  for (size_t s = 0; s < dst.size(); ++s) {
    const bool aside = options_.in_place && !options_.packets && inputs[0][s].buffer == BufferKind::kScratch;
    const Piece& partial = aside ? inputs[0][s] : dst[s];
    size_t next = 0;
    while (next < inputs.size()) {
      Op op{.name = options_.packets ? OpName::kRepkt : OpName::kRe, .sums = true};
      if (next > 0) op.src.push_back(partial);
      while (next < inputs.size() && std::ssize(op.src) < kMostBuffersOfOp)
        op.src.push_back(inputs[next++][s]);
      op.dst = {next < inputs.size() ? partial : dst[s]};
      if (next < inputs.size() || to.empty()) {
        atom.ops.push_back({std::move(op)});
        continue;
      }
      op.name = options_.packets ? OpName::kRespkt : OpName::kRes;
      op.type = ChannelType::kMemory;
      op.dst.push_back(to[s]);
      atom.ops.push_back({std::move(op), lane});
    }
  }
}

// The operands that a receive adds up: the messages in order, and the instruction's own operand at its place
// in the group; first with packets, whose op adds its own operand last in any case.
std::vector<Atoms::Pieces> Atoms::InputsOf(int32_t node, int32_t copy) {
  const Instruction& i = index_.instruction(node);
  std::vector<Pieces> inputs;
  for (const int32_t connection : ReceivesFrom(node)) {
    const Landing& landing = places_.LandingOf(connection, node, copy);
    inputs.push_back(Local(landing.buffer, landing.spans));
  }
  if (!ReadsSource(i.op)) return inputs;
  const Group* group = FanInOf(program_, index_.threadblock(index_.BlockOf(node)));
  const int32_t own = options_.packets || group == nullptr ? 0 : group->own;
  inputs.insert(inputs.begin() + own, Local(i.src.buffer, SpansOf(node, i.src, copy)));
  return inputs;
}

// One message, with nothing to add: stored where it did not land there, and sent on.
void Atoms::AddForward(int32_t node, const Pieces& landed, const Pieces& dst, int32_t copy, Atom& atom) {
  if (!places_.IsDirect(node))
    for (size_t s = 0; s < dst.size(); ++s)
      atom.ops.push_back({Op{
          .name = options_.packets ? OpName::kUpkt : OpName::kCopy, .src = {landed[s]}, .dst = {dst[s]}}});
  if (!options_.packets) return AddPuts(node, landed, copy, atom);
  for (const int32_t connection : SendsTo(node)) {
    const Pieces to = RemotePieces(node, connection, copy);
    for (size_t s = 0; s < to.size(); ++s)
      atom.ops.push_back(
          {Op{.name = OpName::kRppkt, .src = {landed[s]}, .dst = {to[s]}, .type = ChannelType::kMemory},
           LaneOfSend(node, connection, copy)});
  }
}

void Atoms::AddReceive(int32_t node, int32_t copy, Atom& atom) {
  const Instruction& i = index_.instruction(node);
  std::vector<Pieces> inputs = InputsOf(node, copy);
  // A sum that is only sent on is made where its first message landed.
  const Landing& landing = places_.LandingOf(ReceivesFrom(node)[0], node, copy);
  Pieces dst = WritesDestination(i.op) ? Local(i.dst.buffer, SpansOf(node, i.dst, copy))
               : options_.packets      ? Local(BufferKind::kScratch, places_.Unused(node, copy))
                                       : Local(landing.buffer, landing.spans);
  if (inputs.size() == 1) return AddForward(node, inputs[0], dst, copy, atom);
  if (options_.packets && !ReadsSource(i.op)) {  // packet ops add to a plain operand
    for (size_t s = 0; s < dst.size(); ++s)
      atom.ops.push_back({Op{.name = OpName::kUpkt, .src = {inputs[0][s]}, .dst = {dst[s]}}});
    inputs[0] = dst;
  }
  const std::span<const int32_t> to = SendsTo(node);
  if (to.size() == 1 && TypeOfConnection(to[0]) == ChannelType::kMemory) {
    const Lane lane = LaneOfSend(node, to[0], copy);
    AddSums(inputs, dst, RemotePieces(node, to[0], copy), lane, atom);
    if (!options_.packets) atom.signals.push_back(lane);
    return;
  }
  AddSums(inputs, dst, {}, std::nullopt, atom);
  AddPuts(node, dst, copy, atom);
}

void Atoms::AddLocal(int32_t node, int32_t copy, Atom& atom) const {
  const Instruction& i = index_.instruction(node);
  const std::map<int32_t, int32_t>& stored = stored_[RankOf(node).index()];
  bool done =
      i.op == Opcode::kCopy && i.src.buffer == BufferKind::kInput && i.dst.buffer == BufferKind::kOutput;
  for (int32_t k = 0; k < i.count && done; ++k) {
    const auto at = stored.find(i.dst.slot + k);
    done = at != stored.end() && at->second == i.src.slot + k;
  }
  const std::optional<int32_t> shift = InPlaceShift(collective_, RankOf(node));
  done |= options_.in_place && shift && i.op == Opcode::kCopy && i.src.buffer == BufferKind::kInput &&
          i.dst.buffer == BufferKind::kOutput && i.dst.slot == i.src.slot + *shift;
  if (done) return;
  const Pieces src = Local(i.src.buffer, SpansOf(node, i.src, copy));
  const Pieces dst = Local(i.dst.buffer, SpansOf(node, i.dst, copy));
  for (size_t s = 0; s < dst.size(); ++s) {
    Op op{.name = i.op == Opcode::kCopy ? OpName::kCopy : OpName::kRe, .src = {src[s]}, .dst = {dst[s]}};
    if (i.op == Opcode::kReduce) {
      op.src.insert(op.src.begin(), dst[s]);
      op.sums = true;
    }
    atom.ops.push_back({std::move(op)});
  }
}

Atom Atoms::MakeAtom(int32_t node, int32_t copy) {
  const Instruction& i = index_.instruction(node);
  const int32_t block = index_.BlockOf(node);
  const Threadblock& tb = index_.threadblock(block);
  Atom atom;
  for (const int32_t on : waits_[static_cast<size_t>(node)])
    atom.acquires.push_back(SemaphoreOf(index_.BlockOf(on), part(on), block, part(node), copy));
  for (const int32_t waiter : awaited_[static_cast<size_t>(node)])
    atom.releases.push_back(SemaphoreOf(block, part(node), index_.BlockOf(waiter), part(waiter), copy));
  if (!options_.packets)
    for (const int32_t connection : ReceivesFrom(node))
      atom.waits.push_back(LaneOfReceive(node, connection, copy));
  const Group* const stores = Sends(i.op) ? SwitchGroup(tb.send_group) : nullptr;
  if (stores != nullptr) {
    AddSwitched(node, *stores, Receives(i.op), copy, atom);
    for (const int32_t to : SendsTo(node)) atom.signals.push_back(LaneOfSend(node, to, copy));
  } else if (i.op == Opcode::kSend && IntoSwitch(SendsTo(node)[0])) {
    atom.signals.push_back(LaneOfSend(node, SendsTo(node)[0], copy));
  } else if (i.op == Opcode::kSend) {
    AddPuts(node, Local(i.src.buffer, SpansOf(node, i.src, copy)), copy, atom);
    const bool apart = node > index_.BlockFirst(block) && Receives(index_.instruction(node - 1).op);
    for (AtomOp& op : atom.ops) op.op.apart = apart && op.lane;
  } else if (Receives(i.op)) {
    AddReceive(node, copy, atom);
  } else if (i.op == Opcode::kCopy || i.op == Opcode::kReduce) {
    AddLocal(node, copy, atom);
  }
  return atom;
}

}  // namespace xccl::mscclpp
