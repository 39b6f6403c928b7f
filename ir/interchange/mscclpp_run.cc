// Vector clocks tell what is ordered. The threads of a block run apart between two nops (or barriers), so a
// block's time counts these: what an op does is known to others when its block has met after it, and an op
// knows what its block had waited for when it met before. Every access to a chunk is compared with the last
// write and the reads since.
#include "ir/interchange/mscclpp_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace xccl::mscclpp {
namespace {

// Threadblocks of all ranks: their clocks are a square of numbers.
constexpr int64_t kMostOfAll = 8192;

using Clock = std::vector<int32_t>;

void Join(Clock& to, const Clock& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

struct Access {
  int32_t block = -1;  // of all; -1: none
  int32_t time = 0;    // its block's
  int32_t step = -1, op = 0;
  OpName name = OpName::kNop;
};
struct Cell {
  Access write;
  std::vector<Access> reads;  // since that write
};

struct State {
  const Block* block = nullptr;
  int32_t rank = 0, id = 0;
  std::vector<const Op*> ops;  // pipelines and what is in them
  size_t next = 0;
  int32_t time = 1;    // 0 is before all of the others know of it
  Clock known, heard;  // heard: by single threads, since the block has met
  bool in_barrier = false;
  std::vector<int32_t> after;  // steps that the next one comes after
};

struct Sent {
  int32_t send = -1, block = -1, time = 0;
};
struct Signal {
  Clock known;
  std::vector<int32_t> messages;
};
struct Wire {
  std::deque<Signal> signals;
  int32_t peer = -1;     // the rank at the other end
  int32_t reverse = -1;  // the peer's channel
};
struct Release {
  Clock known;
  int32_t step = -1;
};
struct Barrier {
  std::vector<int32_t> blocks;
  Clock known;
};

class Runner {
 public:
  Runner(const File& file, std::string_view name) : file_(file), name_(name) {}

  StatusOr<Run> Go() {
    XCCL_RETURN_IF_ERROR(SetUp());
    bool moves = true;
    while (moves) {
      moves = false;
      for (size_t b = 0; b < states_.size(); ++b) {
        XCCL_ASSIGN_OR_RETURN(const bool moved, Advance(states_[b], static_cast<int32_t>(b)));
        moves |= moved;
      }
    }
    XCCL_RETURN_IF_ERROR(CheckEnd());
    for (size_t r = 0; r < file_.gpus.size(); ++r) run_.scratch.push_back(extra_[r]);
    return std::move(run_);
  }

 private:
  template <typename... Args>
  Status Bad(std::string_view place, fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidInput(
        fmt::format("{}: {}: {}", name_, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  std::string PlaceNow(const State& state) const {
    return PlaceOf(state.rank, state.id, static_cast<int64_t>(state.next), state.ops[state.next]->name);
  }
  std::string PlaceOfAccess(const Access& access) const {
    const State& state = states_[static_cast<size_t>(access.block)];
    return PlaceOf(state.rank, state.id, access.op, access.name);
  }

  int32_t NumberOf(const State& state) const { return static_cast<int32_t>(&state - states_.data()); }

  Status SetUp() {
    int64_t blocks = 0;
    for (const Gpu& gpu : file_.gpus) blocks += std::ssize(gpu.blocks);
    if (blocks > kMostOfAll)
      return InvalidInput(
          fmt::format("{}: {} threadblocks of all ranks; expected {} at most", name_, blocks, kMostOfAll));
    const size_t ranks = file_.gpus.size();
    run_.blocks.resize(ranks);
    cells_.resize(ranks);
    wires_.resize(ranks);
    semaphores_.resize(ranks);
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
        state.known.assign(static_cast<size_t>(blocks), 0);
        state.heard = state.known;
        state.known[states_.size() - 1] = state.time;
        for (const Op& op : gpu.blocks[b].ops) {
          state.ops.push_back(&op);
          for (const Op& inner : op.ops) state.ops.push_back(&inner);
        }
      }
    }
    PairChannels();
    return OkStatus();
  }

  // The k-th channel of a type to a peer meets the peer's k-th of that type to this rank.
  void PairChannels() {
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

  StatusOr<bool> Advance(State& state, int32_t number) {
    bool moved = false;
    while (state.next < state.ops.size()) {
      XCCL_ASSIGN_OR_RETURN(const bool done, Do(state, number, *state.ops[state.next]));
      if (!done) break;
      ++state.next;
      moved = true;
    }
    return moved;
  }

  void Meet(State& state, int32_t number) {
    Join(state.known, state.heard);
    state.known[static_cast<size_t>(number)] = ++state.time;
    state.heard.assign(state.heard.size(), 0);
  }

  // False where the op has to wait.
  StatusOr<bool> Do(State& state, int32_t number, const Op& op) {
    switch (op.name) {
      case OpName::kNop:
        Meet(state, number);
        return true;
      case OpName::kPipeline:
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
      case OpName::kFlush:
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
        return DoData(state, number, op);
    }
    return true;
  }
  int32_t LastStep(const State& state) const {
    const std::vector<int32_t>& steps =
        run_.blocks[static_cast<size_t>(state.rank)][static_cast<size_t>(state.id)];
    return steps.empty() ? -1 : steps.back();
  }

  StatusOr<bool> DoBarrier(State& state, int32_t number, const Op& op) {
    Barrier& barrier = barriers_[static_cast<size_t>(state.rank)][static_cast<size_t>(op.barrier)];
    if (state.in_barrier) return false;
    Meet(state, number);
    state.in_barrier = true;
    barrier.blocks.push_back(number);
    if (barrier.known.empty()) barrier.known = state.known;
    Join(barrier.known, state.known);
    if (std::ssize(barrier.blocks) < op.barrier_blocks) return false;
    if (std::ssize(barrier.blocks) > op.barrier_blocks)
      return Bad(PlaceNow(state), "{} threadblocks; expected {}, as others at it say", op.barrier_blocks,
                 barrier.blocks.size());
    for (const int32_t other : barrier.blocks) {
      State& at = states_[static_cast<size_t>(other)];
      Join(at.known, barrier.known);
      at.in_barrier = false;
      if (other != number) ++at.next;
    }
    barrier = {};
    return true;
  }

  Wire& WireOf(const State& state, const Op& op, int32_t channel) {
    const auto type = static_cast<size_t>(op.type);
    return wires_[static_cast<size_t>(state.rank)][type]
                 [static_cast<size_t>(state.block->channels[type][static_cast<size_t>(channel)])];
  }
  // A port signals after what was put before, other channels after what the block has met since.
  Status SignalOn(State& state, const Op& op, int32_t channel) {
    const Wire& wire = WireOf(state, op, channel);
    if (wire.reverse < 0)
      return Bad(PlaceNow(state),
                 "rank {} has no {} channel for this one to rank {}; expected as many at both ends",
                 wire.peer, ToString(op.type), wire.peer);
    Wire& there = wires_[static_cast<size_t>(wire.peer)][static_cast<size_t>(op.type)]
                        [static_cast<size_t>(wire.reverse)];
    Signal signal{state.known, {}};
    // It tells of all that is put there and that this block knows of.
    std::vector<Sent>& sent = sent_[{state.rank, wire.peer}];
    std::vector<Sent> rest;
    for (const Sent& message : sent) {
      const bool own = message.block == NumberOf(state);
      if (own && message.time == state.time && op.type != ChannelType::kPort)
        return Bad(PlaceNow(state), "signals what op {} puts without a nop between them; expected one",
                   run_.steps[static_cast<size_t>(message.send)].op);
      if (own || state.known[static_cast<size_t>(message.block)] > message.time)
        signal.messages.push_back(message.send);
      else
        rest.push_back(message);
    }
    sent = std::move(rest);
    there.signals.push_back(std::move(signal));
    return OkStatus();
  }

  StatusOr<bool> DoWait(State& state, const Op& op) {
    std::map<const Wire*, int64_t> needed;
    for (const int32_t channel : op.channels) {
      const Wire& wire = WireOf(state, op, channel);
      if (++needed[&wire] > std::ssize(wire.signals)) return false;
    }
    for (const int32_t channel : op.channels) {
      Wire& wire = WireOf(state, op, channel);
      Join(state.heard, wire.signals.front().known);
      for (const int32_t message : wire.signals.front().messages)
        XCCL_RETURN_IF_ERROR(Receive(state, message));
      wire.signals.pop_front();
    }
    return true;
  }
  // The receive of a message takes its place in the threadblock that sees it.
  Status Receive(State& state, int32_t send) {
    const Step& sent = run_.steps[static_cast<size_t>(send)];
    Append(state, sent.other);
    const auto late = late_reads_.find(send);
    if (late == late_reads_.end()) return OkStatus();
    for (const auto& [cell, write] : late->second) {
      if (cell->write.step != write.step || cell->write.time != write.time)
        return Bad(
            PlaceOfAccess(cell->write),
            "overwrites what a port may not have read yet for {}; expected a wait for an answer before it",
            PlaceOf(sent.rank, sent.block, sent.op, sent.name));
      cell->reads.push_back(
          {NumberOf(state), state.time, send, static_cast<int32_t>(state.next), state.ops[state.next]->name});
    }
    late_reads_.erase(late);
    return OkStatus();
  }
  void Append(State& state, int32_t step) {
    Step& placed = run_.steps[static_cast<size_t>(step)];
    placed.block = state.id;
    placed.after.insert(placed.after.end(), state.after.begin(), state.after.end());
    state.after.clear();
    run_.blocks[static_cast<size_t>(state.rank)][static_cast<size_t>(state.id)].push_back(step);
  }

  StatusOr<bool> DoAcquire(State& state, const Op& op) {
    std::vector<std::deque<Release>>& all = semaphores_[static_cast<size_t>(state.rank)];
    std::map<int32_t, int64_t> needed;
    for (const int32_t s : op.semaphores)
      if (++needed[s] > std::ssize(all[static_cast<size_t>(s)])) return false;
    for (const int32_t s : op.semaphores) {
      const Release release = std::move(all[static_cast<size_t>(s)].front());
      all[static_cast<size_t>(s)].pop_front();
      if (!release.known.empty()) Join(state.heard, release.known);
      if (release.step >= 0) state.after.push_back(release.step);
    }
    return true;
  }

  // ---- data ----

  BufferKind BufferOf(const State& state, const Op& op, const Piece& piece) const {
    if (piece.where == Piece::Where::kLocal) return piece.buffer;
    const Gpu& gpu = file_.gpus[static_cast<size_t>(state.rank)];
    const auto id = static_cast<size_t>(piece.id);
    if (piece.where == Piece::Where::kSwitch)
      return gpu.switches[static_cast<size_t>(state.block->channels[2][id])].buffer;
    return gpu.remotes[static_cast<size_t>(state.block->remotes[static_cast<size_t>(op.type)][id])].buffer;
  }
  int32_t PeerOf(const State& state, const Op& op, const Piece& piece) const {
    const Gpu& gpu = file_.gpus[static_cast<size_t>(state.rank)];
    return gpu
        .remotes[static_cast<size_t>(
            state.block->remotes[static_cast<size_t>(op.type)][static_cast<size_t>(piece.id)])]
        .rank;
  }

  // One number for what shares memory. Packets lie behind plain chunks.
  int64_t CellOf(int32_t rank, BufferKind buffer, int64_t index) const {
    const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
    if (buffer == BufferKind::kScratch) return gpu.input + gpu.output + index;
    if (buffer == BufferKind::kOutput) {
      const int64_t first = file_.in_place ? InputInOutput(rank) : 0;
      // The part of the output that is the input.
      if (file_.in_place && index >= first && index - first < gpu.input) return index - first;
      return gpu.input + index;
    }
    // The part of the input that is the output.
    return index;
  }
  // In place: where the input begins in the output, or the output in the input as a negative number.
  int64_t InputInOutput(int32_t rank) const {
    const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
    if (gpu.input < gpu.output) return rank * gpu.input;
    if (gpu.input > gpu.output) return -(rank * gpu.output);
    return 0;
  }

  // When an op has touched what it does: until its block meets; before a signal of the same thread; or, as a
  // port reads, by the time that the message is waited for.
  enum class When : uint8_t { kNow, kEarly, kLater };
  Status Touch(State& state, int32_t number, int32_t rank, Place place, int64_t count, bool writes,
               int32_t step, When when = When::kNow) {
    const Access now{number, state.time - (when == When::kEarly ? 1 : 0), step,
                     static_cast<int32_t>(state.next), state.ops[state.next]->name};
    const auto ordered = [&](const Access& before) {
      return before.block == number ? before.time < state.time || before.op == now.op
                                    : state.known[static_cast<size_t>(before.block)] > before.time;
    };
    std::set<int32_t> after;
    for (int64_t i = 0; i < count; ++i) {
      Cell& cell = cells_[static_cast<size_t>(rank)][CellOf(rank, place.buffer, place.begin + i)];
      const Access* conflict = nullptr;
      if (cell.write.block >= 0 && !ordered(cell.write)) conflict = &cell.write;
      for (const Access& read : cell.reads)
        if (writes && !ordered(read)) conflict = &read;
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

  int32_t NewStep(const State& state, Step::Kind kind, int32_t rank, Place src, Place dst, int64_t count) {
    Step step;
    step.kind = kind;
    step.rank = rank;
    step.op = static_cast<int32_t>(state.next);
    step.name = state.ops[state.next]->name;
    step.src = src;
    step.dst = dst;
    step.count = count;
    run_.steps.push_back(std::move(step));
    return static_cast<int32_t>(run_.steps.size()) - 1;
  }

  // dst of src, at this rank.
  Status Make(State& state, int32_t number, Step::Kind kind, Place src, Place dst, int64_t count,
              Place src2 = {}) {
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

  // A message from `from` to `to`; this threadblock moves the data. Returns its send.
  StatusOr<int32_t> Move(State& state, int32_t number, int32_t from, Place src, int32_t to, Place dst,
                         int64_t count) {
    const int32_t send = NewStep(state, Step::Kind::kSend, from, src, {}, count);
    const int32_t receive = NewStep(state, Step::Kind::kRecv, to, {}, dst, count);
    run_.steps[static_cast<size_t>(send)].other = receive;
    run_.steps[static_cast<size_t>(receive)].other = send;
    const Op& op = *state.ops[state.next];
    const bool port = op.type == ChannelType::kPort;
    XCCL_RETURN_IF_ERROR(
        Touch(state, number, from, src, count, false, send, port ? When::kLater : When::kNow));
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
  // A message that a later signal tells the peer of.
  Status Put(State& state, int32_t number, Place src, int32_t peer, Place dst, int64_t count) {
    XCCL_ASSIGN_OR_RETURN(const int32_t send, Move(state, number, state.rank, src, peer, dst, count));
    sent_[{state.rank, peer}].push_back({send, number, state.time});
    return OkStatus();
  }
  Status PutPackets(State& state, int32_t number, Place src, int32_t peer, int64_t index, int64_t count) {
    const Place dst = Packets(peer, index);
    XCCL_ASSIGN_OR_RETURN(const int32_t send, Move(state, number, state.rank, src, peer, dst, count));
    for (int64_t i = 0; i < count; ++i)
      if (!packets_.try_emplace({peer, index + i}, Packet{send, state.known}).second)
        return Bad(PlaceNow(state),
                   "packets over packets in chunk {} of rank {}'s scratch; expected a place of their own",
                   index + i, peer);
    return OkStatus();
  }
  Place Packets(int32_t rank, int64_t index) const {
    return {BufferKind::kScratch, file_.gpus[static_cast<size_t>(rank)].scratch + index};
  }
  Place OnTheWay(int32_t rank, int64_t count) {
    const Place place{BufferKind::kScratch, extra_[static_cast<size_t>(rank)]};
    extra_[static_cast<size_t>(rank)] += count;
    return place;
  }

  // dst = the sum of all inputs. Where it is one of them, the others are added to it.
  Status Sum(State& state, int32_t number, std::vector<Place> inputs, Place dst, int64_t count) {
    if (inputs.size() == 1) return Make(state, number, Step::Kind::kCopy, inputs[0], dst, count);
    const auto same = std::ranges::find(inputs, dst);
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

  // Are all packets there that the op reads? Those that nothing has read yet are received.
  StatusOr<bool> HasPackets(State& state, const Op& op, size_t first) {
    for (size_t i = first; i < op.src.size(); ++i)
      for (int64_t c = 0; c < op.src[i].size; ++c)
        if (!packets_.contains({state.rank, op.src[i].index + c})) return false;
    for (size_t i = first; i < op.src.size(); ++i)
      for (int64_t c = 0; c < op.src[i].size; ++c) {
        const Packet& packet = packets_.at({state.rank, op.src[i].index + c});
        Join(state.heard, packet.known);
        if (packet.send < 0) continue;
        const int32_t receive = run_.steps[static_cast<size_t>(packet.send)].other;
        if (run_.steps[static_cast<size_t>(receive)].block < 0)
          XCCL_RETURN_IF_ERROR(Receive(state, packet.send));
      }
    return true;
  }
  // Packets are read as they come: the op itself knows of them.
  void HearAtOnce(State& state) { Join(state.known, state.heard); }

  StatusOr<bool> DoData(State& state, int32_t number, const Op& op) {
    const bool packets = op.name == OpName::kRppkt || op.name == OpName::kUpkt || op.name == OpName::kRepkt ||
                         op.name == OpName::kRespkt || op.name == OpName::kRecpkt ||
                         op.name == OpName::kRecspkt;
    if (packets) {
      XCCL_ASSIGN_OR_RETURN(
          const bool there,
          HasPackets(state, op, op.name == OpName::kRppkt || op.name == OpName::kUpkt ? 0 : 1));
      if (!there) return false;
      HearAtOnce(state);
    }
    XCCL_RETURN_IF_ERROR(packets || op.name == OpName::kPpkt || op.name == OpName::kCpkt
                             ? DoPackets(state, number, op)
                             : DoPlain(state, number, op));
    return true;
  }

  static Place LocalPlace(const Piece& piece) { return {piece.buffer, piece.index}; }

  Status DoPackets(State& state, int32_t number, const Op& op) {
    const int64_t count = op.src[0].size;
    if (op.name == OpName::kPpkt) {
      for (size_t i = 0; i < op.src.size(); ++i)
        XCCL_RETURN_IF_ERROR(PutPackets(state, number, LocalPlace(op.src[i]), PeerOf(state, op, op.dst[i]),
                                        op.dst[i].index, op.src[i].size));
      return OkStatus();
    }
    if (op.name == OpName::kCpkt) return OwnPackets(state, number, LocalPlace(op.src[0]), op.dst[0], count);
    if (op.name == OpName::kUpkt)
      return Make(state, number, Step::Kind::kCopy, Packets(state.rank, op.src[0].index),
                  LocalPlace(op.dst[0]), count);
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
  Status OwnPackets(State& state, int32_t number, Place src, const Piece& dst, int64_t count) {
    XCCL_RETURN_IF_ERROR(Make(state, number, Step::Kind::kCopy, src, Packets(state.rank, dst.index), count));
    for (int64_t i = 0; i < count; ++i)
      packets_.try_emplace({state.rank, dst.index + i}, Packet{-1, state.known});
    return OkStatus();
  }

  Status DoPlain(State& state, int32_t number, const Op& op) {
    const int64_t count = op.src[0].size;
    if (op.name == OpName::kPut || op.name == OpName::kPws) {
      for (size_t i = 0; i < op.src.size(); ++i)
        XCCL_RETURN_IF_ERROR(Put(state, number, LocalPlace(op.src[i]), PeerOf(state, op, op.dst[i]),
                                 {BufferOf(state, op, op.dst[i]), op.dst[i].index}, op.src[i].size));
      if (op.name == OpName::kPws)
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

  const Switch& SwitchOf(const State& state, const Piece& piece) const {
    return file_.gpus[static_cast<size_t>(state.rank)]
        .switches[static_cast<size_t>(state.block->channels[2][static_cast<size_t>(piece.id)])];
  }
  // Rank by rank, as executors without switches do it.
  Status DoSwitch(State& state, int32_t number, const Op& op) {
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

  // ---- the end ----

  Status CheckEnd() const {
    for (const State& state : states_)
      if (state.next < state.ops.size())
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
          return Bad(fmt::format("rank {}", r),
                     "semaphore {} ends with {}; expected {}, with which it begins", s,
                     semaphores_[r][s].size(), file_.gpus[r].semaphores[s]);
    }
    return CheckScratch();
  }

  // Chunk i of packets lies where plain chunks 2i and 2i + 1 do.
  Status CheckScratch() const {
    if (!file_.packets) return OkStatus();
    for (const auto& [at, packet] : packets_) {
      const auto& [rank, index] = at;
      for (const int64_t plain : {2 * index, 2 * index + 1})
        if (plain < file_.gpus[static_cast<size_t>(rank)].scratch &&
            cells_[static_cast<size_t>(rank)].contains(CellOf(rank, BufferKind::kScratch, plain)))
          return Bad(fmt::format("rank {}", rank),
                     "packets in chunk {} of scratch and data in chunk {}; expected them apart: packets take "
                     "twice their bytes",
                     index, plain);
    }
    return OkStatus();
  }

  struct Packet {
    int32_t send = -1;  // -1: made here
    Clock known;
  };

  const File& file_;
  const std::string_view name_;
  Run run_;
  std::vector<State> states_;
  std::vector<std::map<int64_t, Cell>> cells_;                // by rank
  std::vector<std::array<std::vector<Wire>, 2>> wires_;       // by rank, type and channel
  std::vector<std::vector<std::deque<Release>>> semaphores_;  // by rank
  std::vector<std::vector<Barrier>> barriers_;                // by rank
  struct LateRead {
    Cell* cell = nullptr;
    Access write;  // which it reads
  };
  std::map<int32_t, std::vector<LateRead>> late_reads_;  // by send
  // By rank and peer: messages that no signal has followed.
  std::map<std::pair<int32_t, int32_t>, std::vector<Sent>> sent_;
  std::map<std::pair<int32_t, int64_t>, Packet> packets_;  // by rank and chunk
  std::vector<int64_t> extra_;                             // by rank: chunks of scratch and behind it
};

}  // namespace

StatusOr<Run> RunFile(const File& file, std::string_view name) { return Runner(file, name).Go(); }

}  // namespace xccl::mscclpp
