// Ops on data become steps. Every access to a chunk is compared with the last write and the reads since: they
// must be ordered.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "interchange/mscclpp/runner.h"

namespace xccl::mscclpp {

BufferKind Runner::BufferOf(const State& state, const Op& op, const Piece& piece) const {
  if (piece.where == Piece::Where::kLocal) return piece.buffer;
  const Gpu& gpu = file_.gpus[static_cast<size_t>(state.rank)];
  const auto id = static_cast<size_t>(piece.id);
  if (piece.where == Piece::Where::kSwitch)
    return gpu.switches[static_cast<size_t>(state.block->channels[2][id])].buffer;
  return gpu.remotes[static_cast<size_t>(state.block->remotes[static_cast<size_t>(op.type)][id])].buffer;
}

int32_t Runner::PeerOf(const State& state, const Op& op, const Piece& piece) const {
  const Gpu& gpu = file_.gpus[static_cast<size_t>(state.rank)];
  return gpu
      .remotes[static_cast<size_t>(
          state.block->remotes[static_cast<size_t>(op.type)][static_cast<size_t>(piece.id)])]
      .rank;
}

int64_t Runner::CellOf(int32_t rank, BufferKind buffer, int64_t index, int32_t half) const {
  const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
  constexpr int64_t kHalf = int64_t{1} << 40;  // more than all chunks of scratch and behind it
  if (buffer == BufferKind::kScratch) return gpu.input + gpu.output + index + half * kHalf;
  if (buffer == BufferKind::kOutput) {
    const int64_t first = file_.in_place ? InputInOutput(rank) : 0;
    // The part of the output that is the input.
    if (file_.in_place && index >= first && index - first < gpu.input) return index - first;
    return gpu.input + index;
  }
  // The part of the input that is the output.
  return index;
}

int64_t Runner::InputInOutput(int32_t rank) const {
  const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
  if (gpu.input < gpu.output) return rank * gpu.input;
  if (gpu.input > gpu.output) return -(rank * gpu.output);
  return 0;
}

Status Runner::Touch(State& state, int32_t number, int32_t rank, Place place, int64_t count, bool writes,
                     int32_t step, When when) {
  const Op& op = *state.ops[state.next];
  Access now{.block = number,
             .time = state.time - (when == When::kEarly ? 1 : 0),
             .step = step,
             .op = static_cast<int32_t>(state.next),
             .call = state.call,
             .name = op.name,
             .packets_from = IsPacketOp(op.name) && op.type != ChannelType::kPort
                                 ? CellOf(rank, place.buffer, place.begin, HalfOf(state))
                                 : -1};
  const bool polls = !past_.empty();
  const auto ordered = [&](const Access& before, int64_t chunk) {
    if (before.block == number ? before.time < state.time || before.op == now.op
                               : state.known.At(before.block) > before.time)
      return true;
    // Packet ops deal out a run to threads alike.
    if (before.block == number && now.packets_from >= 0 && before.packets_from == now.packets_from)
      return true;
    const Done done{before.block, before.call, before.op, before.chunk};
    return (polls && std::ranges::binary_search(past_[static_cast<size_t>(chunk)], done)) ||
           (before.call < state.call && known_past_[static_cast<size_t>(state.rank)].contains(done));
  };
  const bool is_packet =
      place.buffer == BufferKind::kScratch && place.begin >= file_.gpus[static_cast<size_t>(rank)].scratch;
  std::set<int32_t> after;
  for (int64_t i = 0; i < count; ++i) {
    Cell& cell =
        cells_[static_cast<size_t>(rank)][CellOf(rank, place.buffer, place.begin + i, HalfOf(state))];
    now.chunk = first_chunk_ + i;
    const Access* conflict = nullptr;
    // Whoever polls a packet waits for it.
    const bool waits = polls && is_packet && !writes;
    if (cell.write.block >= 0 && !waits && !ordered(cell.write, i)) conflict = &cell.write;
    for (const Access& read : cell.reads)
      if (writes && !ordered(read, i)) conflict = &read;
    if (conflict != nullptr)
      return Bad(
          PlaceNow(state),
          "races with {} for chunk {} of rank {}'s {}; expected a nop, a barrier or signals between them",
          PlaceOfAccess(*conflict), place.begin + i, rank, ToString(place.buffer));
    if (cell.write.step >= 0 && cell.write.step != step) after.insert(cell.write.step);
    if (!writes) {
      if (cell.write.step >= 0) {
        Step& writer = run_.steps[static_cast<size_t>(cell.write.step)];
        if (writer.reader != step) {
          ++writer.readers;
          writer.reader = step;
        }
      }
      if (when == When::kLater)
        late_reads_[step].push_back({&cell, cell.write});
      else
        cell.reads.push_back(now);
      continue;
    }
    for (const Access& read : cell.reads)
      if (read.step != step) after.insert(read.step);
    cell.reads.clear();
    cell.write = now;
  }
  // Waits of one rank's steps for each other.
  if (step < 0) return OkStatus();
  Step& own = run_.steps[static_cast<size_t>(step)];
  for (const int32_t before : after)
    if (run_.steps[static_cast<size_t>(before)].rank == own.rank) own.after.push_back(before);
  return OkStatus();
}

int32_t Runner::NewStep(const State& state, Step::Kind kind, int32_t rank, Place src, Place dst,
                        int64_t count) {
  Step step;
  step.kind = kind;
  step.rank = rank;
  step.op = static_cast<int32_t>(state.next);
  step.name = state.ops[state.next]->name;
  step.type = state.ops[state.next]->type;
  step.apart = state.ops[state.next]->apart;
  step.src = src;
  step.dst = dst;
  step.count = count;
  run_.steps.push_back(std::move(step));
  return static_cast<int32_t>(run_.steps.size()) - 1;
}

Status Runner::Make(State& state, int32_t number, Step::Kind kind, Place src, Place dst, int64_t count,
                    Place src2) {
  // In place, a copy onto itself does nothing.
  if (kind == Step::Kind::kCopy &&
      CellOf(state.rank, src.buffer, src.begin) == CellOf(state.rank, dst.buffer, dst.begin))
    return OkStatus();
  const int32_t step = NewStep(state, kind, state.rank, src, dst, count);
  run_.steps[static_cast<size_t>(step)].src2 = src2;
  XCCL_RETURN_IF_ERROR(Touch(state, number, state.rank, src, count, false, step));
  if (kind == Step::Kind::kSum)
    XCCL_RETURN_IF_ERROR(Touch(state, number, state.rank, src2, count, false, step));
  if (kind == Step::Kind::kAdd)
    XCCL_RETURN_IF_ERROR(Touch(state, number, state.rank, dst, count, false, step));
  XCCL_RETURN_IF_ERROR(Touch(state, number, state.rank, dst, count, true, step));
  Append(state, step);
  return OkStatus();
}

StatusOr<int32_t> Runner::Move(State& state, int32_t number, int32_t from, Place src, int32_t to, Place dst,
                               int64_t count) {
  const int32_t send = NewStep(state, Step::Kind::kSend, from, src, {}, count);
  const int32_t receive = NewStep(state, Step::Kind::kRecv, to, {}, dst, count);
  run_.steps[static_cast<size_t>(send)].other = receive;
  run_.steps[static_cast<size_t>(receive)].other = send;
  const Op& op = *state.ops[state.next];
  const bool port = op.type == ChannelType::kPort;
  // pwsf waits until the port has read.
  const bool late = port && op.name != OpName::kPwsf;
  XCCL_RETURN_IF_ERROR(Touch(state, number, from, src, count, false, send, late ? When::kLater : When::kNow));
  XCCL_RETURN_IF_ERROR(Touch(state, number, to, dst, count, true, receive,
                             port || IsPacketOp(op.name) ? When::kEarly : When::kNow));
  if (from == state.rank) {
    Append(state, send);
  } else {
    run_.steps[static_cast<size_t>(send)].aside = true;
    Append(state, receive);
  }
  return send;
}

Status Runner::Put(State& state, int32_t number, Place src, int32_t peer, Place dst, int64_t count,
                   int32_t port) {
  XCCL_ASSIGN_OR_RETURN(const int32_t send, Move(state, number, state.rank, src, peer, dst, count));
  sent_[{state.rank, peer}].push_back(
      {run_.steps[static_cast<size_t>(send)].other, number, state.time, port});
  return OkStatus();
}

Status Runner::PutPackets(State& state, int32_t number, Place src, int32_t peer, int64_t index,
                          int64_t count) {
  const Place dst = Packets(peer, index);
  const Op& op = *state.ops[state.next];
  std::vector<std::vector<Done>> past = past_;
  if (op.name == OpName::kPpkt && op.type == ChannelType::kPort) {
    const int64_t first = src.begin - Packets(state.rank, 0).begin;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = packets_.find({state.rank, HalfOf(state), first + i});
      if (at == packets_.end() || at->second.call != state.call)
        return Bad(PlaceNow(state),
                   "puts chunk {} of scratch, where no packets are; expected some, and a nop", first + i);
      past.push_back(at->second.past);
    }
  }
  XCCL_ASSIGN_OR_RETURN(const int32_t send, Move(state, number, state.rank, src, peer, dst, count));
  return AddPackets(state, number, peer, index, count, send, past);
}

Status Runner::AddPackets(const State& state, int32_t number, int32_t rank, int64_t index, int64_t count,
                          int32_t send, const std::vector<std::vector<Done>>& past) {
  for (int64_t i = 0; i < count; ++i) {
    const Done own{number, state.call, static_cast<int32_t>(state.next), first_chunk_ + i};
    Packet& packet = packets_[{rank, HalfOf(state), index + i}];
    const bool is_first = packet.past.empty();
    if (!is_first && packet.call == state.call) {
      if (send < 0) continue;
      return Bad(PlaceNow(state),
                 "packets over packets in chunk {} of rank {}'s scratch; expected a place of their own",
                 index + i, rank);
    }
    if (!is_first && packet.send >= 0 &&
        run_.steps[static_cast<size_t>(run_.steps[static_cast<size_t>(packet.send)].other)].block < 0)
      return Bad(PlaceNow(state),
                 "overwrites the packets of call {} in chunk {} of rank {}'s scratch, which it may not have "
                 "read yet; expected a wait for an answer before it",
                 packet.call + 1, index + i, rank);
    packet = {send, state.call, state.known, {}};
    if (!past.empty()) packet.past = past[static_cast<size_t>(i)];
    const auto at = std::ranges::lower_bound(packet.past, own);
    if (at == packet.past.end() || *at != own) packet.past.insert(at, own);
  }
  return OkStatus();
}

Place Runner::Packets(int32_t rank, int64_t index) const {
  return {BufferKind::kScratch, file_.gpus[static_cast<size_t>(rank)].scratch + index};
}

Place Runner::OnTheWay(int32_t rank, int64_t count) {
  const Place place{BufferKind::kScratch, extra_[static_cast<size_t>(rank)]};
  extra_[static_cast<size_t>(rank)] += count;
  return place;
}

Status Runner::Sum(State& state, int32_t number, std::vector<Place> inputs, Place dst, int64_t count) {
  if (inputs.size() == 1) return Make(state, number, Step::Kind::kCopy, inputs[0], dst, count);
  // In place, input and output may be one.
  const auto cell = [&](const Place& place) { return CellOf(state.rank, place.buffer, place.begin); };
  const auto same = std::ranges::find(inputs, cell(dst), cell);
  if (same - inputs.begin() > 1 && same != inputs.end()) {
    const Place on_the_way = OnTheWay(state.rank, count);
    XCCL_RETURN_IF_ERROR(Sum(state, number, std::move(inputs), on_the_way, count));
    return Make(state, number, Step::Kind::kCopy, on_the_way, dst, count);
  }
  size_t next = 2;
  if (same != inputs.end()) {
    std::swap(*same, inputs[0]);
    next = 1;
  } else {
    XCCL_RETURN_IF_ERROR(Make(state, number, Step::Kind::kSum, inputs[0], dst, count, inputs[1]));
  }
  for (; next < inputs.size(); ++next)
    XCCL_RETURN_IF_ERROR(Make(state, number, Step::Kind::kAdd, inputs[next], dst, count));
  return OkStatus();
}

StatusOr<bool> Runner::HasPackets(State& state, const Op& op, size_t first) {
  const auto key = [&](size_t i, int64_t c) {
    return std::array<int64_t, 3>{state.rank, HalfOf(state), op.src[i].index + c};
  };
  for (size_t i = first; i < op.src.size(); ++i)
    for (int64_t c = 0; c < op.src[i].size; ++c) {
      const auto at = packets_.find(key(i, c));
      if (at == packets_.end() || at->second.call < state.call) return false;
      if (at->second.call > state.call)
        return Bad(
            PlaceNow(state),
            "packets in chunk {} of scratch that call {} may have overwritten by then; expected a wait "
            "for an answer before they are",
            op.src[i].index + c, at->second.call + 1);
    }
  past_.assign(static_cast<size_t>(op.src[0].size), {});
  for (size_t i = first; i < op.src.size(); ++i)
    for (int64_t c = 0; c < op.src[i].size; ++c) {
      const Packet& packet = packets_.at(key(i, c));
      state.heard.Join(packet.known);
      std::vector<Done>& past = past_[static_cast<size_t>(c)];
      std::vector<Done> all;
      std::ranges::set_union(past, packet.past, std::back_inserter(all));
      past = std::move(all);
      if (calls_ > 1)
        heard_past_[static_cast<size_t>(state.rank)].insert(packet.past.begin(), packet.past.end());
      if (packet.send < 0) continue;
      const int32_t receive = run_.steps[static_cast<size_t>(packet.send)].other;
      if (run_.steps[static_cast<size_t>(receive)].block < 0) XCCL_RETURN_IF_ERROR(Receive(state, receive));
    }
  return true;
}

StatusOr<bool> Runner::DoData(State& state, int32_t number, const Op& op) {
  if (!IsPacketOp(op.name)) {
    XCCL_RETURN_IF_ERROR(DoPlain(state, number, op));
    return true;
  }
  if (PollsPackets(op.name)) {
    const bool all = op.name == OpName::kRppkt || op.name == OpName::kUpkt || op.name == OpName::kGstorePkt;
    XCCL_ASSIGN_OR_RETURN(const bool there, HasPackets(state, op, all ? 0 : 1));
    if (!there) return false;
    HearAtOnce(state);
  }
  XCCL_RETURN_IF_ERROR(DoPackets(state, number, op));
  past_.clear();
  return true;
}

Status Runner::DoPackets(State& state, int32_t number, const Op& op) {
  const int64_t count = op.src[0].size;
  if (op.name == OpName::kPpkt) {
    for (size_t i = 0; i < op.src.size(); ++i) {
      const Place from =
          op.type == ChannelType::kPort ? Packets(state.rank, op.src[i].index) : LocalPlace(op.src[i]);
      XCCL_RETURN_IF_ERROR(
          PutPackets(state, number, from, PeerOf(state, op, op.dst[i]), op.dst[i].index, op.src[i].size));
      first_chunk_ += op.src[i].size;
    }
    first_chunk_ = 0;
    return OkStatus();
  }
  if (op.name == OpName::kGstorePkt) {
    const Place from = Packets(state.rank, op.src[0].index);
    for (const int32_t rank : SwitchOf(state, op.dst[0]).ranks)
      XCCL_RETURN_IF_ERROR(rank == state.rank
                               ? OwnPackets(state, number, from, op.dst[0], count)
                               : PutPackets(state, number, from, rank, op.dst[0].index, count));
    return OkStatus();
  }
  if (op.name == OpName::kCpkt) return OwnPackets(state, number, LocalPlace(op.src[0]), op.dst[0], count);
  if (op.name == OpName::kUpkt)
    return Make(state, number, Step::Kind::kCopy, Packets(state.rank, op.src[0].index), LocalPlace(op.dst[0]),
                count);
  Place from = Packets(state.rank, op.src[0].index);
  size_t peers = 0;
  if (op.name != OpName::kRppkt) {
    std::vector<Place> inputs = {LocalPlace(op.src[0])};
    for (size_t i = 1; i < op.src.size(); ++i) inputs.push_back(Packets(state.rank, op.src[i].index));
    from = LocalPlace(op.dst[0]);
    XCCL_RETURN_IF_ERROR(Sum(state, number, std::move(inputs), from, count));
    peers = 1;
    if (op.name == OpName::kRecpkt || op.name == OpName::kRecspkt) {
      XCCL_RETURN_IF_ERROR(OwnPackets(state, number, from, op.dst[1], count));
      peers = 2;
    }
  }
  for (size_t i = peers; i < op.dst.size(); ++i)
    XCCL_RETURN_IF_ERROR(
        PutPackets(state, number, from, PeerOf(state, op, op.dst[i]), op.dst[i].index, count));
  return OkStatus();
}

Status Runner::OwnPackets(State& state, int32_t number, Place src, const Piece& dst, int64_t count) {
  XCCL_RETURN_IF_ERROR(Make(state, number, Step::Kind::kCopy, src, Packets(state.rank, dst.index), count));
  return AddPackets(state, number, state.rank, dst.index, count, -1, past_);
}

Status Runner::DoPlain(State& state, int32_t number, const Op& op) {
  const int64_t count = op.src[0].size;
  if (op.name == OpName::kPut || op.name == OpName::kPws || op.name == OpName::kPwsf) {
    for (size_t i = 0; i < op.src.size(); ++i) {
      const int32_t port = op.type == ChannelType::kPort ? ChannelOf(state, op.type, op.channels[i]) : -1;
      XCCL_RETURN_IF_ERROR(Put(state, number, LocalPlace(op.src[i]), PeerOf(state, op, op.dst[i]),
                               {BufferOf(state, op, op.dst[i]), op.dst[i].index}, op.src[i].size, port));
    }
    if (op.name != OpName::kPut)
      for (const int32_t channel : op.channels) XCCL_RETURN_IF_ERROR(SignalOn(state, op, channel));
    return OkStatus();
  }
  if (op.name == OpName::kGet) {
    for (size_t i = 0; i < op.src.size(); ++i)
      XCCL_RETURN_IF_ERROR(Move(state, number, PeerOf(state, op, op.src[i]),
                                {BufferOf(state, op, op.src[i]), op.src[i].index}, state.rank,
                                LocalPlace(op.dst[i]), op.src[i].size)
                               .status());
    return OkStatus();
  }
  if (op.name == OpName::kGlres || op.name == OpName::kGstore) return DoSwitch(state, number, op);
  std::vector<Place> inputs;
  for (const Piece& piece : op.src) {
    if (piece.where == Piece::Where::kLocal) {
      inputs.push_back(LocalPlace(piece));
      continue;
    }
    inputs.push_back(OnTheWay(state.rank, count));
    XCCL_RETURN_IF_ERROR(Move(state, number, PeerOf(state, op, piece),
                              {BufferOf(state, op, piece), piece.index}, state.rank, inputs.back(), count)
                             .status());
  }
  const Place dst = LocalPlace(op.dst[0]);
  XCCL_RETURN_IF_ERROR(Sum(state, number, std::move(inputs), dst, count));
  for (size_t i = 1; i < op.dst.size(); ++i)
    XCCL_RETURN_IF_ERROR(Put(state, number, dst, PeerOf(state, op, op.dst[i]),
                             {BufferOf(state, op, op.dst[i]), op.dst[i].index}, count));
  return OkStatus();
}

const Switch& Runner::SwitchOf(const State& state, const Piece& piece) const {
  return file_.gpus[static_cast<size_t>(state.rank)]
      .switches[static_cast<size_t>(state.block->channels[2][static_cast<size_t>(piece.id)])];
}

// A program's group has two members or more beside its root, and protocol simple.
bool Runner::IsGroup(const State& state, const Switch& ranks) const {
  return !plain_switches_ && !file_.packets && ranks.ranks.size() > 2 &&
         std::ranges::find(ranks.ranks, state.rank) != ranks.ranks.end();
}

Status Runner::SwitchStep(State& state, int32_t number, const Op& op) {
  const int64_t count = op.src[0].size;
  const bool adds = op.name == OpName::kGlres;
  const Switch& to = SwitchOf(state, op.dst[0]);
  const Place dst{to.buffer, op.dst[0].index};
  const Place src = adds ? Place{SwitchOf(state, op.src[0]).buffer, op.src[0].index} : LocalPlace(op.src[0]);
  const int32_t own = NewStep(state, Step::Kind::kSwitch, state.rank, src, dst, count);
  XCCL_RETURN_IF_ERROR(Touch(state, number, state.rank, src, count, false, own));
  for (const int32_t rank : adds ? SwitchOf(state, op.src[0]).ranks : std::vector<int32_t>()) {
    if (rank == state.rank) continue;
    const int32_t send = NewStep(state, Step::Kind::kSend, rank, src, {}, count);
    run_.steps[static_cast<size_t>(send)].other = own;
    run_.steps[static_cast<size_t>(send)].aside = true;
    run_.steps[static_cast<size_t>(own)].from.push_back(rank);
    XCCL_RETURN_IF_ERROR(Touch(state, number, rank, src, count, false, send));
  }
  for (const int32_t rank : to.ranks) {
    if (rank == state.rank) continue;
    const int32_t receive = NewStep(state, Step::Kind::kRecv, rank, {}, dst, count);
    run_.steps[static_cast<size_t>(receive)].other = own;
    run_.steps[static_cast<size_t>(own)].to.push_back(rank);
    XCCL_RETURN_IF_ERROR(Touch(state, number, rank, dst, count, true, receive));
    sent_[{state.rank, rank}].push_back({receive, number, state.time});
  }
  if (adds) XCCL_RETURN_IF_ERROR(Touch(state, number, state.rank, dst, count, true, own));
  Append(state, own);
  return adds ? OkStatus() : Make(state, number, Step::Kind::kCopy, src, dst, count);
}

Status Runner::DoSwitch(State& state, int32_t number, const Op& op) {
  if (IsGroup(state, SwitchOf(state, op.dst[0])) &&
      (op.name == OpName::kGstore || IsGroup(state, SwitchOf(state, op.src[0]))))
    return SwitchStep(state, number, op);
  const int64_t count = op.src[0].size;
  const Switch& to = SwitchOf(state, op.dst[0]);
  const Place dst{to.buffer, op.dst[0].index};
  std::vector<Place> inputs;
  if (op.name == OpName::kGlres) {
    const Switch& from = SwitchOf(state, op.src[0]);
    inputs.push_back({from.buffer, op.src[0].index});
    for (const int32_t rank : from.ranks) {
      if (rank == state.rank) continue;
      inputs.push_back(OnTheWay(state.rank, count));
      XCCL_RETURN_IF_ERROR(Move(state, number, rank, inputs[0], state.rank, inputs.back(), count).status());
    }
  } else {
    inputs.push_back(LocalPlace(op.src[0]));
  }
  XCCL_RETURN_IF_ERROR(Sum(state, number, std::move(inputs), dst, count));
  for (const int32_t rank : to.ranks)
    if (rank != state.rank) XCCL_RETURN_IF_ERROR(Put(state, number, dst, rank, dst, count));
  return OkStatus();
}

}  // namespace xccl::mscclpp
