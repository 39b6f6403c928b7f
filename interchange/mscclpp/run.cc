// Vector clocks tell which accesses are ordered. The threads of a block run apart between two nops (or
// barriers), where they meet, so a block's time counts its nops and barriers. Other blocks can know that an
// op is done once its block has met after it; an op knows whatever its block had waited for at the meeting
// before it. Packets order more, element by element: see Runner::Packet.
#include "interchange/mscclpp/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "interchange/mscclpp/runner.h"

namespace xccl::mscclpp {
namespace {

constexpr int64_t kMostOfAll = 1 << 16;
constexpr int64_t kMostKnown = 1 << 26;  // entries of all clocks, of 8 bytes

}  // namespace

StatusOr<Run> Runner::Go() {
  XCCL_RETURN_IF_ERROR(SetUp());
  bool moves = true;
  while (moves) {
    moves = false;
    for (size_t b = 0; b < states_.size(); ++b) {
      XCCL_ASSIGN_OR_RETURN(const bool moved, Advance(states_[b], static_cast<int32_t>(b)));
      moves |= moved;
      if (known_ > kMostKnown)
        return LimitReached(fmt::format(
            "{}: {} threadblocks of all ranks, which wait for so many of each other that the order of "
            "their ops takes over {} numbers; expected fewer",
            name_, states_.size(), kMostKnown));
    }
  }
  XCCL_RETURN_IF_ERROR(CheckEnd());
  for (size_t r = 0; r < file_.gpus.size(); ++r) run_.scratch.push_back(extra_[r]);
  return std::move(run_);
}

std::string Runner::PlaceAt(const State& state, int64_t op, OpName name, int32_t call) const {
  if (state.id < 0) return fmt::format("rank {}'s caller after call {}", state.rank, call + 1);
  const std::string place = PlaceOf(state.rank, state.id, op, name);
  return calls_ > 1 ? fmt::format("{} of call {}", place, call + 1) : place;
}

std::string Runner::PlaceNow(const State& state) const {
  return PlaceAt(state, static_cast<int64_t>(state.next), state.ops[state.next]->name, state.call);
}

std::string Runner::PlaceOfAccess(const Access& access) const {
  const auto block = static_cast<size_t>(access.block);
  const State& state = block < states_.size() ? states_[block] : callers_[block - states_.size()];
  return PlaceAt(state, access.op, access.name, access.call);
}

Status Runner::SetUp() {
  int64_t blocks = 0;
  for (const Gpu& gpu : file_.gpus) blocks += std::ssize(gpu.blocks);
  if (blocks > kMostOfAll)
    return LimitReached(
        fmt::format("{}: {} threadblocks of all ranks; expected {} at most", name_, blocks, kMostOfAll));
  const size_t ranks = file_.gpus.size();
  run_.blocks.resize(ranks);
  cells_.resize(ranks);
  wires_.resize(ranks);
  semaphores_.resize(ranks);
  heard_past_.resize(ranks);
  known_past_.resize(ranks);
  barriers_.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    const Gpu& gpu = file_.gpus[r];
    extra_.push_back(gpu.scratch * (file_.packets ? 2 : 1));
    run_.blocks[r].resize(gpu.blocks.size());
    for (size_t type = 0; type < 2; ++type)
      for (const int32_t peer : gpu.peers[type]) wires_[r][type].push_back({{}, peer, -1});
    semaphores_[r].resize(gpu.semaphores.size());
    for (size_t s = 0; s < gpu.semaphores.size(); ++s)
      for (int32_t n = 0; n < gpu.semaphores[s]; ++n) semaphores_[r][s].emplace_back();
    barriers_[r].resize(kMostBarriers);
    for (size_t b = 0; b < gpu.blocks.size(); ++b) {
      State& state = states_.emplace_back();
      state.block = &gpu.blocks[b];
      state.rank = static_cast<int32_t>(r);
      state.id = static_cast<int32_t>(b);
      state.known.Set(static_cast<int32_t>(states_.size()) - 1, state.time);
      for (const Op& op : gpu.blocks[b].ops) {
        state.ops.push_back(&op);
        for (const Op& inner : op.ops) state.ops.push_back(&inner);
      }
    }
  }
  PairChannels();
  static const Op kBetweenCalls;
  for (size_t r = 0; r < ranks; ++r) {
    State& caller = callers_.emplace_back();
    caller.rank = static_cast<int32_t>(r);
    caller.id = -1;
    caller.ops = {&kBetweenCalls};
    running_.push_back(static_cast<int32_t>(file_.gpus[r].blocks.size()));
    for (; running_[r] == 0 && caller.call + 1 < calls_;) XCCL_RETURN_IF_ERROR(EndCall(r));
  }
  return OkStatus();
}

void Runner::PairChannels() {
  for (size_t type = 0; type < 2; ++type) {
    std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> to;  // by rank and peer
    for (size_t r = 0; r < wires_.size(); ++r)
      for (size_t c = 0; c < wires_[r][type].size(); ++c)
        to[{static_cast<int32_t>(r), wires_[r][type][c].peer}].push_back(static_cast<int32_t>(c));
    for (const auto& [key, own] : to) {
      const auto back = to.find({key.second, key.first});
      for (size_t k = 0; back != to.end() && k < std::min(own.size(), back->second.size()); ++k)
        wires_[static_cast<size_t>(key.first)][type][static_cast<size_t>(own[k])].reverse = back->second[k];
    }
  }
}

StatusOr<bool> Runner::Advance(State& state, int32_t number) {
  bool moved = false;
  while (!state.ended) {
    if (state.next == state.ops.size()) {
      state.ended = true;
      if (--running_[static_cast<size_t>(state.rank)] == 0)
        XCCL_RETURN_IF_ERROR(EndCall(static_cast<size_t>(state.rank)));
      moved = true;
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(const bool done, Do(state, number, *state.ops[state.next]));
    if (!done) break;
    ++state.next;
    moved = true;
  }
  return moved;
}

Status Runner::EndCall(size_t rank) {
  State& caller = callers_[rank];
  if (caller.call + 1 == calls_) return OkStatus();
  const auto number = static_cast<int32_t>(states_.size() + rank);
  std::vector<State*> own;
  for (State& state : states_)
    if (state.rank == caller.rank) own.push_back(&state);
  for (State* const state : own) {
    Meet(*state, NumberOf(*state));
    Learn(caller, state->known);
  }
  const Gpu& gpu = file_.gpus[rank];
  for (const auto& [buffer, chunks] :
       {std::pair(BufferKind::kInput, gpu.input), std::pair(BufferKind::kOutput, gpu.output)})
    XCCL_RETURN_IF_ERROR(Touch(caller, number, caller.rank, {buffer, 0}, chunks, true, -1));
  Meet(caller, number);
  ++caller.call;
  known_past_[rank].merge(heard_past_[rank]);
  for (State* const state : own) {
    Learn(*state, caller.known);
    state->next = 0;
    state->ended = false;
    ++state->call;
  }
  running_[rank] = static_cast<int32_t>(own.size());
  return OkStatus();
}

void Runner::Meet(State& state, int32_t number) {
  Learn(state, state.heard);
  state.known.Set(number, ++state.time);
  state.heard.Clear();
}

void Runner::Learn(State& state, const Clock& more) {
  known_ -= state.known.size();
  state.known.Join(more);
  known_ += state.known.size();
}

StatusOr<bool> Runner::Do(State& state, int32_t number, const Op& op) {
  switch (op.name) {
    case OpName::kNop:
      Meet(state, number);
      return true;
    case OpName::kPipeline:
    case OpName::kFlush:  // LimitWarnings says so
      return true;
    case OpName::kBarrier:
      return DoBarrier(state, number, op);
    case OpName::kSignal:
    case OpName::kRlxSignal:
      for (const int32_t channel : op.channels) XCCL_RETURN_IF_ERROR(SignalOn(state, op, channel));
      return true;
    case OpName::kWait:
    case OpName::kRlxWait:
      return DoWait(state, op);
    case OpName::kSemAcquire:
      return DoAcquire(state, op);
    case OpName::kSemRelease:
      for (const int32_t s : op.semaphores)
        semaphores_[static_cast<size_t>(state.rank)][static_cast<size_t>(s)].push_back(
            {state.known, LastStep(state)});
      return true;
    case OpName::kPut:
    case OpName::kPws:
    case OpName::kPwsf:
    case OpName::kGet:
    case OpName::kCopy:
    case OpName::kRe:
    case OpName::kRes:
    case OpName::kRre:
    case OpName::kRres:
    case OpName::kPpkt:
    case OpName::kRppkt:
    case OpName::kRespkt:
    case OpName::kCpkt:
    case OpName::kUpkt:
    case OpName::kRepkt:
    case OpName::kRecpkt:
    case OpName::kRecspkt:
    case OpName::kGlres:
    case OpName::kGstore:
    case OpName::kGstorePkt:
      return DoData(state, number, op);
  }
  return true;
}

int32_t Runner::LastStep(const State& state) const {
  const std::vector<int32_t>& steps =
      run_.blocks[static_cast<size_t>(state.rank)][static_cast<size_t>(state.id)];
  return steps.empty() ? -1 : steps.back();
}

StatusOr<bool> Runner::DoBarrier(State& state, int32_t number, const Op& op) {
  Barrier& barrier = barriers_[static_cast<size_t>(state.rank)][static_cast<size_t>(op.barrier)];
  if (state.in_barrier) return false;
  Meet(state, number);
  state.in_barrier = true;
  barrier.blocks.push_back(number);
  barrier.known.Join(state.known);
  if (std::ssize(barrier.blocks) < op.barrier_blocks) return false;
  if (std::ssize(barrier.blocks) > op.barrier_blocks)
    return Bad(PlaceNow(state), "{} threadblocks; expected {}, as others at it say", op.barrier_blocks,
               barrier.blocks.size());
  for (const int32_t other : barrier.blocks) {
    State& at = states_[static_cast<size_t>(other)];
    Learn(at, barrier.known);
    at.in_barrier = false;
    if (other != number) ++at.next;
  }
  barrier = {};
  return true;
}

int32_t Runner::ChannelOf(const State& state, ChannelType type, int32_t channel) {
  return state.block->channels[static_cast<size_t>(type)][static_cast<size_t>(channel)];
}

Wire& Runner::WireOf(const State& state, const Op& op, int32_t channel) {
  return wires_[static_cast<size_t>(state.rank)][static_cast<size_t>(op.type)]
               [static_cast<size_t>(ChannelOf(state, op.type, channel))];
}

Status Runner::SignalOn(State& state, const Op& op, int32_t channel) {
  const Wire& wire = WireOf(state, op, channel);
  if (wire.reverse < 0)
    return Bad(PlaceNow(state),
               "rank {} has no {} channel for this one to rank {}; expected as many at both ends", wire.peer,
               ToString(op.type), wire.peer);
  Wire& there =
      wires_[static_cast<size_t>(wire.peer)][static_cast<size_t>(op.type)][static_cast<size_t>(wire.reverse)];
  Signal signal{state.known, {}};
  // It tells of all that is put there and that this block knows of.
  std::vector<Sent>& sent = sent_[{state.rank, wire.peer}];
  std::vector<Sent> rest;
  // A port's messages and signals are in order on one channel alone.
  const int32_t port = op.type == ChannelType::kPort ? ChannelOf(state, op.type, channel) : -1;
  for (const Sent& message : sent) {
    if (message.port >= 0 && message.port != port) {
      rest.push_back(message);
      continue;
    }
    const bool own = message.block == NumberOf(state);
    if (own && message.time == state.time && message.port < 0)
      return Bad(PlaceNow(state), "signals what op {} puts without a nop between them; expected one",
                 run_.steps[static_cast<size_t>(message.receive)].op);
    if (!own && state.known.At(message.block) <= message.time) {
      rest.push_back(message);
      continue;
    }
    signal.messages.push_back(message.receive);
    run_.steps[static_cast<size_t>(message.receive)].signal = signals_;
  }
  ++signals_;
  sent = std::move(rest);
  there.signals.push_back(std::move(signal));
  return OkStatus();
}

StatusOr<bool> Runner::DoWait(State& state, const Op& op) {
  std::map<const Wire*, int64_t> needed;
  for (const int32_t channel : op.channels) {
    const Wire& wire = WireOf(state, op, channel);
    if (++needed[&wire] > std::ssize(wire.signals)) return false;
  }
  for (const int32_t channel : op.channels) {
    Wire& wire = WireOf(state, op, channel);
    state.heard.Join(wire.signals.front().known);
    for (const int32_t message : wire.signals.front().messages) XCCL_RETURN_IF_ERROR(Receive(state, message));
    wire.signals.pop_front();
  }
  return true;
}

Status Runner::Receive(State& state, int32_t receive) {
  Append(state, receive);
  const int32_t send = run_.steps[static_cast<size_t>(receive)].other;
  const Step& sent = run_.steps[static_cast<size_t>(send)];
  const auto late = late_reads_.find(send);
  if (late == late_reads_.end()) return OkStatus();
  for (const auto& [cell, write] : late->second) {
    if (cell->write.step != write.step || cell->write.time != write.time)
      return Bad(
          PlaceOfAccess(cell->write),
          "overwrites what a port may not have read yet for {}; expected a wait for an answer before it",
          PlaceOf(sent.rank, sent.block, sent.op, sent.name));
    cell->reads.push_back({.block = NumberOf(state),
                           .time = state.time,
                           .step = send,
                           .op = static_cast<int32_t>(state.next),
                           .call = state.call,
                           .name = state.ops[state.next]->name});
  }
  late_reads_.erase(late);
  return OkStatus();
}

void Runner::Append(State& state, int32_t step) {
  Step& placed = run_.steps[static_cast<size_t>(step)];
  placed.block = state.id;
  placed.after.insert(placed.after.end(), state.after.begin(), state.after.end());
  state.after.clear();
  run_.blocks[static_cast<size_t>(state.rank)][static_cast<size_t>(state.id)].push_back(step);
}

StatusOr<bool> Runner::DoAcquire(State& state, const Op& op) {
  std::vector<std::deque<Release>>& all = semaphores_[static_cast<size_t>(state.rank)];
  std::map<int32_t, int64_t> needed;
  for (const int32_t s : op.semaphores)
    if (++needed[s] > std::ssize(all[static_cast<size_t>(s)])) return false;
  for (const int32_t s : op.semaphores) {
    const Release release = std::move(all[static_cast<size_t>(s)].front());
    all[static_cast<size_t>(s)].pop_front();
    state.heard.Join(release.known);
    if (release.step >= 0) state.after.push_back(release.step);
  }
  return true;
}

Status Runner::CheckEnd() const {
  for (const State& state : states_)
    if (!state.ended)
      return Bad(PlaceNow(state),
                 "waits forever; expected as many signals, releases or packets as are waited for");
  for (const Step& step : run_.steps)
    if (step.kind == Step::Kind::kRecv && step.block < 0) {
      const Step& send = run_.steps[static_cast<size_t>(step.other)];
      return Bad(
          PlaceOf(send.rank, send.block, send.op, send.name),
          "nothing at rank {} waits for what it puts into chunk {} of the {}; expected a signal and a wait",
          step.rank, step.dst.begin, ToString(step.dst.buffer));
    }
  for (size_t r = 0; r < wires_.size(); ++r) {
    for (size_t type = 0; type < 2; ++type)
      for (size_t c = 0; c < wires_[r][type].size(); ++c)
        if (!wires_[r][type][c].signals.empty())
          return Bad(fmt::format("rank {}", r),
                     "{} channel {}: {} signals that nothing waits for; expected none: they end a wait of "
                     "the next call",
                     ToString(static_cast<ChannelType>(type)), c, wires_[r][type][c].signals.size());
    for (size_t s = 0; s < semaphores_[r].size(); ++s)
      if (std::ssize(semaphores_[r][s]) != file_.gpus[r].semaphores[s])
        return Bad(fmt::format("rank {}", r), "semaphore {} ends with {}; expected {}, with which it begins",
                   s, semaphores_[r][s].size(), file_.gpus[r].semaphores[s]);
  }
  return CheckScratch();
}

Status Runner::CheckScratch() const {
  if (!file_.packets) return OkStatus();
  for (const auto& [at, packet] : packets_) {
    const auto& [rank, half, index] = at;
    for (const int64_t plain : {2 * index, 2 * index + 1})
      if (plain < file_.gpus[static_cast<size_t>(rank)].scratch &&
          cells_[static_cast<size_t>(rank)].contains(
              CellOf(static_cast<int32_t>(rank), BufferKind::kScratch, plain, static_cast<int32_t>(half))))
        return Bad(fmt::format("rank {}", rank),
                   "packets in chunk {} of scratch and data in chunk {}; expected them apart: packets take "
                   "twice their bytes",
                   index, plain);
  }
  return OkStatus();
}

StatusOr<Run> RunFile(const File& file, std::string_view name, bool plain_switches) {
  return Runner(file, name, plain_switches, 1).Go();
}

Status CheckCalls(const File& file, std::string_view name) {
  // The third call comes back to the half of scratch that the first had.
  const int32_t calls = file.double_scratch ? 3 : 2;
  return Runner(file, name, true, calls).Go().status();
}

}  // namespace xccl::mscclpp
