// Memory of a rank is three runs of words: an element of a chunk is a word, that of a packet two, a value and
// a flag. A data op is some lanes, each of which adds up the words at its sources, element by element, and
// stores the sum at its destinations. Threads take turns at random, one element a turn.
#include "tests/testing/mscclpp_executor.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "interchange/mscclpp/file.h"

namespace xccl {
namespace mscclpp {
namespace {

constexpr int64_t kElements = 2;  // elements of a chunk
constexpr int32_t kThreads = 2;   // threads of a block

struct Place {
  int32_t rank = 0;
  BufferKind buffer = BufferKind::kInput;
  int64_t begin = 0;   // element; words of packets are two by two
  int64_t offset = 0;  // words: of a half of scratch
  bool packets = false;
};
struct Lane {
  std::vector<Place> from, to;
  int64_t size = 0;
};
struct Channel {
  int32_t peer = -1, reverse = -1;
  int64_t arrived = 0, expected = 0;
};
struct Task {
  std::optional<Lane> lane;
  bool raw = false;  // both words of packets
  bool signals = false;
  int64_t* done = nullptr;  // counter of the thread that waits for it
};
struct Thread {
  int32_t rank = 0, block = 0, id = 0;
  const std::vector<const Op*>* ops = nullptr;  // ops of its block
  size_t op = 0;
  int64_t position = 0;    // in the op
  int64_t iteration = -1;  // iteration of a pipeline
  size_t pipeline = 0;
  int64_t waits_until = -1, flushed = 0;
  bool arrived = false, ended = false;
  std::vector<Lane> lanes = {};  // lanes of the op that it is in
};

class Executor {
 public:
  Executor(const File& file, CollectiveKind kind, int32_t root, const MscclppExecution& execution)
      : file_(file), kind_(kind), root_(root), execution_(execution), random_(execution.seed) {}

  std::string Run() {
    SetUp();
    while (true) {
      bool moved = false;
      // A thread goes on for a while, so that some threads are far ahead of the rest.
      for (size_t turn = 0; turn < threads_.size(); ++turn) {
        Thread& thread = threads_[random_.Below(threads_.size())];
        for (uint64_t n = random_.Below(64); n > 0 && Step(thread); --n) moved = true;
        if (!wrong_.empty()) return wrong_;
      }
      if (!execution_.late_ports || !moved) moved |= RunPort();
      if (moved) continue;
      // None of the threads that were drawn could go on: ask all threads.
      for (Thread& thread : threads_) moved |= Step(thread);
      if (!wrong_.empty()) return wrong_;
      if (moved) continue;
      for (const Thread& thread : threads_)
        if (call_[static_cast<size_t>(thread.rank)] < execution_.calls)
          return fmt::format("rank {} threadblock {} op {} waits forever in call {}", thread.rank,
                             thread.block, thread.op, call_[static_cast<size_t>(thread.rank)] + 1);
      return RunPort() ? "a port moves data after all calls" : "";
    }
  }

 private:
  // ---- memory ----

  int64_t InputInOutput(int32_t rank) const {
    const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
    if (gpu.input == gpu.output) return 0;
    return gpu.input < gpu.output ? rank * gpu.input : -(rank * gpu.output);
  }
  uint64_t* WordAt(const Place& place, int64_t element, int64_t half) {
    Memory& memory = memory_[static_cast<size_t>(place.rank)];
    const int64_t at = (place.begin + element) * (place.packets ? 2 : 1) + place.offset + half;
    std::vector<uint64_t>* words = &memory.scratch;
    int64_t index = at;
    if (place.buffer != BufferKind::kScratch) {
      const bool input = place.buffer == BufferKind::kInput;
      const Gpu& gpu = file_.gpus[static_cast<size_t>(place.rank)];
      if (at < 0 || at >= (input ? gpu.input : gpu.output) * kElements) {
        wrong_ = fmt::format("rank {}: word {} of {}", place.rank, at, ToString(place.buffer));
        return &nowhere_;
      }
      words = &memory.buffers[input ? 0 : 1];
      if (file_.in_place) {  // one buffer, which the larger of the two is
        words = &memory.buffers[gpu.input < gpu.output ? 1 : 0];
        const int64_t shift = InputInOutput(place.rank) * kElements;
        if (input && shift > 0) index += shift;
        if (!input && shift < 0) index -= shift;
      }
    }
    if (index < 0 || index >= std::ssize(*words)) {
      wrong_ = fmt::format("rank {}: word {} of {}, which has {}", place.rank, index, ToString(place.buffer),
                           words->size());
      return &nowhere_;
    }
    return &(*words)[static_cast<size_t>(index)];
  }
  uint64_t Flag(int32_t rank) const { return static_cast<uint64_t>(call_[static_cast<size_t>(rank)]) + 1; }
  int64_t HalfOf(int32_t rank) const {
    const bool second = file_.double_scratch && Flag(rank) % 2 == 0;
    return second ? std::ssize(memory_[static_cast<size_t>(rank)].scratch) / 2 : 0;
  }

  // ---- calls ----

  static uint64_t InputOf(int32_t call, int64_t rank, int64_t element) {
    uint64_t x = static_cast<uint64_t>(call + 1) * 0x9e3779b97f4a7c15ULL +
                 static_cast<uint64_t>(rank) * 1000003 + static_cast<uint64_t>(element);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return x ^ (x >> 27);
  }
  void Begin(int32_t rank) {
    Memory& memory = memory_[static_cast<size_t>(rank)];
    const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
    for (std::vector<uint64_t>& words : memory.buffers)
      for (uint64_t& word : words) word = random_.Next();
    for (int64_t e = 0; e < gpu.input * kElements; ++e)
      *WordAt({rank, BufferKind::kInput, e}, 0, 0) = InputOf(call_[static_cast<size_t>(rank)], rank, e);
    running_[static_cast<size_t>(rank)] = 0;
    for (Thread& thread : threads_)
      if (thread.rank == rank) {
        thread = {rank, thread.block, thread.id, thread.ops};
        ++running_[static_cast<size_t>(rank)];
      }
  }
  std::optional<uint64_t> Expected(int32_t rank, int64_t element) const {
    const int32_t call = call_[static_cast<size_t>(rank)];
    const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
    const int64_t input = gpu.input * kElements, output = gpu.output * kElements;
    const auto ranks = static_cast<int64_t>(file_.gpus.size());
    const auto sum = [&](int64_t at) {
      uint64_t all = 0;
      for (int64_t r = 0; r < ranks; ++r) all += InputOf(call, r, at);
      return all;
    };
    switch (kind_) {
      case CollectiveKind::kAllreduce:
        return sum(element);
      case CollectiveKind::kReduce:
        return rank == root_ ? std::optional(sum(element)) : std::nullopt;
      case CollectiveKind::kReduceScatter:
        return sum(rank * output + element);
      case CollectiveKind::kGather:
        if (rank != root_) return std::nullopt;
        return InputOf(call, element / input, element % input);
      case CollectiveKind::kAllgather:
        return InputOf(call, element / input, element % input);
      case CollectiveKind::kBroadcast:
        return InputOf(call, root_, element);
      case CollectiveKind::kScatter:
        return InputOf(call, root_, rank * output + element);
      case CollectiveKind::kAlltoall:
        return InputOf(call, element / (output / ranks),
                       rank * (output / ranks) + element % (output / ranks));
      default:
        return std::nullopt;
    }
  }
  void End(int32_t rank) {
    const Gpu& gpu = file_.gpus[static_cast<size_t>(rank)];
    for (int64_t e = 0; e < gpu.output * kElements; ++e) {
      const std::optional<uint64_t> expected = Expected(rank, e);
      if (expected && *WordAt({rank, BufferKind::kOutput, e}, 0, 0) != *expected) {
        wrong_ = fmt::format("rank {} has a wrong element {} of {} after call {}", rank, e,
                             gpu.output * kElements, call_[static_cast<size_t>(rank)] + 1);
        return;
      }
    }
    if (++call_[static_cast<size_t>(rank)] < execution_.calls) Begin(rank);
  }

  void SetUp() {
    const size_t ranks = file_.gpus.size();
    memory_.resize(ranks);
    channels_.resize(ranks);
    semaphores_.resize(ranks);
    barriers_.resize(ranks);
    call_.assign(ranks, 0);
    running_.assign(ranks, 0);
    for (size_t r = 0; r < ranks; ++r) {
      const Gpu& gpu = file_.gpus[r];
      memory_[r].buffers[0].resize(static_cast<size_t>(gpu.input * kElements));
      memory_[r].buffers[1].resize(static_cast<size_t>(gpu.output * kElements));
      memory_[r].scratch.resize(static_cast<size_t>(gpu.scratch * kElements * (file_.packets ? 2 : 1) *
                                                    (file_.double_scratch ? 2 : 1)));
      for (size_t type = 0; type < 2; ++type)
        for (const int32_t peer : gpu.peers[type]) channels_[r][type].push_back({peer});
      for (const int32_t value : gpu.semaphores) semaphores_[r].push_back(value);
      for (size_t b = 0; b < gpu.blocks.size(); ++b) {
        std::vector<const Op*>& ops = ops_[{static_cast<int32_t>(r), static_cast<int32_t>(b)}];
        for (const Op& op : gpu.blocks[b].ops) {
          ops.push_back(&op);
          for (const Op& inner : op.ops) ops.push_back(&inner);
        }
        for (int32_t t = 0; t < kThreads; ++t)
          threads_.push_back({static_cast<int32_t>(r), static_cast<int32_t>(b), t, &ops});
      }
    }
    // The k-th channel to a peer meets the peer's k-th back.
    for (size_t type = 0; type < 2; ++type)
      for (size_t r = 0; r < ranks; ++r) {
        std::map<int32_t, int32_t> nth;
        for (Channel& channel : channels_[r][type]) {
          int32_t left = nth[channel.peer]++;
          std::vector<Channel>& back = channels_[static_cast<size_t>(channel.peer)][type];
          for (size_t c = 0; c < back.size() && channel.reverse < 0; ++c)
            if (back[c].peer == static_cast<int32_t>(r) && left-- == 0)
              channel.reverse = static_cast<int32_t>(c);
        }
      }
    for (size_t r = 0; r < ranks; ++r) Begin(static_cast<int32_t>(r));
  }

  // ---- ops ----

  const Block& BlockOf(const Thread& thread) const {
    return file_.gpus[static_cast<size_t>(thread.rank)].blocks[static_cast<size_t>(thread.block)];
  }
  int32_t ChannelOf(const Thread& thread, const Op& op, size_t c) const {
    return BlockOf(thread).channels[static_cast<size_t>(op.type)][static_cast<size_t>(op.channels[c])];
  }

  // All that a piece stands for: one place, or one of every rank of a switch.
  std::vector<Place> PlacesOf(const Thread& thread, const Op& op, const Piece& piece, bool packets) const {
    const Gpu& gpu = file_.gpus[static_cast<size_t>(thread.rank)];
    Place place{thread.rank, piece.buffer, piece.index * kElements, 0, packets};
    if (op.group_size > 1) {  // a share of an even number of elements
      const int64_t all = piece.size * kElements;
      place.begin += op.group_block * all / op.group_size;
    }
    // The offset of packets is the sender's, at whatever rank they are.
    const int64_t half = HalfOf(thread.rank);
    std::vector<Place> places;
    if (piece.where == Piece::Where::kLocal) {
      if (place.buffer == BufferKind::kScratch && op.type != ChannelType::kPort) place.offset = half;
      if (packets) place.offset = half;
      places = {place};
    } else if (piece.where == Piece::Where::kRemote) {
      const auto type = static_cast<size_t>(op.type);
      const RemoteBuffer& remote =
          gpu.remotes[static_cast<size_t>(BlockOf(thread).remotes[type][static_cast<size_t>(piece.id)])];
      place.rank = remote.rank;
      place.buffer = remote.buffer;
      if (packets) place.offset = half;
      places = {place};
    } else {
      const Switch& of =
          gpu.switches[static_cast<size_t>(BlockOf(thread).channels[2][static_cast<size_t>(piece.id)])];
      place.buffer = of.buffer;
      if (packets) place.offset = half;
      for (const int32_t rank : of.ranks) {
        place.rank = rank;
        places.push_back(place);
      }
    }
    return places;
  }

  static bool IsPairs(OpName name) {
    return name == OpName::kPut || name == OpName::kPws || name == OpName::kPwsf || name == OpName::kPpkt ||
           name == OpName::kGet;
  }
  bool ReadsPackets(const Op& op, size_t i) const {
    switch (op.name) {
      case OpName::kRppkt:
      case OpName::kUpkt:
      case OpName::kGstorePkt:
        return true;
      case OpName::kRepkt:
      case OpName::kRespkt:
      case OpName::kRecpkt:
      case OpName::kRecspkt:
        return i > 0;
      case OpName::kPpkt:
        return op.type == ChannelType::kPort;
      default:
        return false;
    }
  }
  bool WritesPackets(const Op& op, size_t i) const {
    switch (op.name) {
      case OpName::kPpkt:
      case OpName::kRppkt:
      case OpName::kCpkt:
      case OpName::kGstorePkt:
        return true;
      case OpName::kRespkt:
      case OpName::kRecpkt:
      case OpName::kRecspkt:
        return i > 0;
      default:
        return false;
    }
  }
  std::vector<Lane> LanesOf(const Thread& thread, const Op& op) const {
    std::vector<Lane> lanes;
    const auto add = [&](Lane& lane, bool writes, size_t i) {
      const Piece& piece = writes ? op.dst[i] : op.src[i];
      const bool packets = writes ? WritesPackets(op, i) : ReadsPackets(op, i);
      for (const Place& place : PlacesOf(thread, op, piece, packets))
        (writes ? lane.to : lane.from).push_back(place);
      const int64_t all = piece.size * kElements;
      lane.size = (op.group_block + 1) * all / op.group_size - op.group_block * all / op.group_size;
    };
    if (IsPairs(op.name)) {
      for (size_t i = 0; i < op.src.size(); ++i) {
        Lane& lane = lanes.emplace_back();
        add(lane, false, i);
        add(lane, true, i);
      }
      return lanes;
    }
    Lane& lane = lanes.emplace_back();
    for (size_t i = 0; i < op.src.size(); ++i) add(lane, false, i);
    for (size_t i = 0; i < op.dst.size(); ++i) add(lane, true, i);
    return lanes;
  }

  // False: a packet is not there.
  bool MoveElement(const Lane& lane, int64_t element, uint64_t flag) {
    uint64_t value = 0;
    for (const Place& place : lane.from) {
      if (place.packets && *WordAt(place, element, 1) != flag) return false;
      value += *WordAt(place, element, 0);
    }
    for (const Place& place : lane.to) {
      *WordAt(place, element, 0) = value;
      if (place.packets) *WordAt(place, element, 1) = flag;
    }
    return true;
  }

  // One turn of a thread. False: it has to wait.
  bool Step(Thread& thread) {
    if (thread.ended) return false;
    const std::vector<const Op*>& ops = *thread.ops;
    if (thread.iteration >= 0 && thread.op == thread.pipeline + 1 + ops[thread.pipeline]->ops.size()) {
      if (++thread.iteration < kIterations)
        thread.op = thread.pipeline + 1;
      else
        thread.iteration = -1;
      return true;
    }
    if (thread.op == ops.size()) {
      thread.ended = true;
      if (--running_[static_cast<size_t>(thread.rank)] == 0) End(thread.rank);
      return true;
    }
    const Op& op = *ops[thread.op];
    if (op.name == OpName::kPipeline) {
      thread.iteration = 0;
      thread.pipeline = thread.op++;
      return true;
    }
    bool done = true;
    switch (op.name) {
      case OpName::kNop:
        done = Meet(thread);
        break;
      case OpName::kBarrier:
        return Barrier(thread, op);
      case OpName::kSignal:
      case OpName::kRlxSignal:
      case OpName::kWait:
      case OpName::kRlxWait:
      case OpName::kSemAcquire:
      case OpName::kSemRelease:
        return Synchronize(thread, op);
      case OpName::kFlush:
        break;
      default:
        return op.type == ChannelType::kPort ? PutLater(thread, op) : Move(thread, op);
    }
    if (done) Next(thread);
    return done;
  }
  void Next(Thread& thread) {
    ++thread.op;
    thread.position = 0;
    thread.waits_until = -1;
    thread.arrived = false;
  }

  // All threads of a block come here; the last one lets them on.
  bool Meet(Thread& thread) {
    thread.arrived = true;
    const size_t first = static_cast<size_t>(&thread - threads_.data()) - static_cast<size_t>(thread.id);
    for (size_t t = first; t < first + kThreads; ++t)
      if (!threads_[t].arrived) return false;
    for (size_t t = first; t < first + kThreads; ++t)
      if (static_cast<int32_t>(t - first) != thread.id) Next(threads_[t]);
    return true;
  }
  bool Barrier(Thread& thread, const Op& op) {
    if (thread.arrived) return false;
    thread.arrived = true;
    std::vector<Thread*>& all = barriers_[static_cast<size_t>(thread.rank)][op.barrier];
    all.push_back(&thread);
    if (std::ssize(all) < int64_t{op.barrier_blocks} * kThreads) return true;
    for (Thread* const other : all)
      if (other != &thread) Next(*other);
    all.clear();
    Next(thread);
    return true;
  }

  // Thread i does what the op has at i, i + threads, …
  bool Synchronize(Thread& thread, const Op& op) {
    const size_t count = op.channels.empty() ? op.semaphores.size() : op.channels.size();
    const auto i = static_cast<size_t>(thread.position * kThreads + thread.id);
    if (i >= count) {
      Next(thread);
      return true;
    }
    if (op.name == OpName::kSemAcquire || op.name == OpName::kSemRelease) {
      int64_t& value = semaphores_[static_cast<size_t>(thread.rank)][static_cast<size_t>(op.semaphores[i])];
      if (op.name == OpName::kSemAcquire && value == 0) return false;
      value += op.name == OpName::kSemAcquire ? -1 : 1;
      ++thread.position;
      return true;
    }
    const auto type = static_cast<size_t>(op.type);
    const int32_t number = ChannelOf(thread, op, i);
    Channel& channel = channels_[static_cast<size_t>(thread.rank)][type][static_cast<size_t>(number)];
    if (op.name == OpName::kSignal || op.name == OpName::kRlxSignal) {
      if (op.type == ChannelType::kPort)
        ports_[{thread.rank, number}].push_back({.lane = std::nullopt, .signals = true});
      else
        ++channels_[static_cast<size_t>(channel.peer)][type][static_cast<size_t>(channel.reverse)].arrived;
    } else {
      if (thread.waits_until < 0) thread.waits_until = ++channel.expected;
      if (channel.arrived < thread.waits_until) return false;
      thread.waits_until = -1;
    }
    ++thread.position;
    return true;
  }

  // Elements of the op in this iteration; a thread takes every second one, of packets always the same, but of
  // other data not the same in every op.
  bool Move(Thread& thread, const Op& op) {
    if (thread.position == 0) thread.lanes = LanesOf(thread, op);
    int64_t at = thread.position;
    for (const Lane& lane : thread.lanes) {
      const auto [begin, end] = Share(thread, lane.size);
      if (at >= end - begin) {
        at -= end - begin;
        continue;
      }
      const int64_t element = begin + at;
      const int64_t shift = IsPacketOp(op.name) ? 0 : static_cast<int64_t>(thread.op);
      const bool own = (element + shift) % kThreads == thread.id;
      if (own && !MoveElement(lane, element, Flag(thread.rank))) return false;
      ++thread.position;
      return true;
    }
    Next(thread);
    return true;
  }
  std::pair<int64_t, int64_t> Share(const Thread& thread, int64_t size) const {
    if (thread.iteration < 0) return {0, size};
    return {thread.iteration * size / kIterations, (thread.iteration + 1) * size / kIterations};
  }

  // A port takes the op's pieces, one a thread, and reads them later. Where it sends packets that are polled
  // for, the block first waits for them.
  bool PutLater(Thread& thread, const Op& op) {
    const std::vector<Lane> lanes = LanesOf(thread, op);
    if (op.name == OpName::kRppkt)
      for (int64_t e = 0; e < lanes[0].size; ++e)
        if (*WordAt(lanes[0].from[0], e, 1) != Flag(thread.rank)) return false;
    if (op.name == OpName::kPwsf && thread.position > 0) {
      if (thread.flushed == 0) return false;
      thread.flushed = 0;
      Next(thread);
      return true;
    }
    bool flushes = false;
    const size_t count = op.name == OpName::kRppkt ? lanes[0].to.size() : lanes.size();
    for (size_t i = static_cast<size_t>(thread.id); i < count; i += kThreads) {
      Lane lane = op.name == OpName::kRppkt ? Lane{lanes[0].from, {lanes[0].to[i]}, lanes[0].size} : lanes[i];
      const auto [begin, end] = Share(thread, lane.size);
      for (std::vector<Place>* const places : {&lane.from, &lane.to})
        for (Place& place : *places) place.begin += begin;
      lane.size = end - begin;
      flushes = op.name == OpName::kPwsf;
      ports_[{thread.rank, ChannelOf(thread, op, i)}].push_back(
          {std::move(lane), IsPacketOp(op.name), op.name == OpName::kPws || op.name == OpName::kPwsf,
           flushes ? &thread.flushed : nullptr});
    }
    if (flushes)
      thread.position = 1;
    else
      Next(thread);
    return true;
  }

  // The oldest task of some channel. False: there is none.
  bool RunPort() {
    std::vector<std::pair<const std::pair<int32_t, int32_t>, std::deque<Task>>*> busy;
    for (auto& entry : ports_)
      if (!entry.second.empty()) busy.push_back(&entry);
    if (busy.empty()) return false;
    auto& [key, tasks] = *busy[random_.Below(busy.size())];
    const Task task = std::move(tasks.front());
    tasks.pop_front();
    if (task.lane)
      for (int64_t e = 0; e < task.lane->size; ++e)
        for (int64_t word = 0; word <= (task.raw ? 1 : 0); ++word)
          *WordAt(task.lane->to[0], e, word) = *WordAt(task.lane->from[0], e, word);
    if (task.signals) {
      const Channel& channel = channels_[static_cast<size_t>(key.first)][1][static_cast<size_t>(key.second)];
      ++channels_[static_cast<size_t>(channel.peer)][1][static_cast<size_t>(channel.reverse)].arrived;
    }
    if (task.done != nullptr) *task.done = 1;
    return true;
  }

  struct Memory {
    std::array<std::vector<uint64_t>, 2> buffers;  // input and output
    std::vector<uint64_t> scratch;
  };
  static constexpr int64_t kIterations = 2;  // iterations of a pipeline

  const File& file_;
  const CollectiveKind kind_;
  const int32_t root_;
  const MscclppExecution execution_;
  Random random_;
  std::string wrong_;
  uint64_t nowhere_ = 0;
  std::vector<Memory> memory_;                                     // by rank
  std::vector<std::array<std::vector<Channel>, 2>> channels_;      // by rank and type
  std::vector<std::vector<int64_t>> semaphores_;                   // by rank
  std::vector<std::map<int32_t, std::vector<Thread*>>> barriers_;  // by rank
  std::vector<int32_t> call_, running_;                            // by rank
  std::vector<Thread> threads_;
  std::map<std::pair<int32_t, int32_t>, std::vector<const Op*>> ops_;  // by rank and block
  std::map<std::pair<int32_t, int32_t>, std::deque<Task>> ports_;      // by rank and channel
};

}  // namespace
}  // namespace mscclpp

std::string RunMscclppPlan(const std::string& text, CollectiveKind kind, int32_t root,
                           const MscclppExecution& execution) {
  const StatusOr<mscclpp::File> file = mscclpp::ReadFile(text, "plan");
  if (!file.ok()) return file.status().message();
  return mscclpp::Executor(*file, kind, root, execution).Run();
}

}  // namespace xccl
