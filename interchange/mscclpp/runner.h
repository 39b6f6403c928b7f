// The state of a plan that runs without data (interchange/mscclpp/run.h), and the effect of each op on it.
// Private to the reader.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "interchange/mscclpp/file.h"
#include "interchange/mscclpp/run.h"
#include "ir/program.h"

namespace xccl::mscclpp {

// A vector clock: for each listed block, ascending, the time up to which all that it did is known. Nothing is
// known of a block that is not listed.
class Clock {
 public:
  int32_t At(int32_t block) const {
    const auto at = std::ranges::lower_bound(times_, block, {}, &Entry::first);
    return at != times_.end() && at->first == block ? at->second : 0;
  }
  void Set(int32_t block, int32_t time) { Join(Clock(block, time)); }
  // The later of both times, block by block. Linear in both.
  void Join(const Clock& from) {
    size_t at = 0, taken = 0;
    for (; taken < from.times_.size(); ++taken) {
      const auto [block, time] = from.times_[taken];
      while (at < times_.size() && times_[at].first < block) ++at;
      if (at == times_.size() || times_[at].first != block) break;
      times_[at].second = std::max(times_[at].second, time);
    }
    if (taken == from.times_.size()) return;
    std::vector<Entry> all;
    all.reserve(times_.size() + from.times_.size() - taken);
    auto own = times_.begin();
    for (const auto& [block, time] : from.times_) {
      while (own != times_.end() && own->first < block) all.push_back(*own++);
      if (own != times_.end() && own->first == block)
        all.emplace_back(block, std::max(time, (own++)->second));
      else
        all.emplace_back(block, time);
    }
    all.insert(all.end(), own, times_.end());
    times_ = std::move(all);
  }
  void Clear() { times_.clear(); }
  int64_t size() const { return std::ssize(times_); }
  Clock() = default;

 private:
  using Entry = std::pair<int32_t, int32_t>;  // block and time
  Clock(int32_t block, int32_t time) : times_{{block, time}} {}

  std::vector<Entry> times_;
};

struct Access {
  int32_t block = -1;  // number among all blocks, with the ranks' callers behind them; -1: none
  int32_t time = 0;    // time of its block
  int32_t step = -1, op = 0, call = 0;
  OpName name = OpName::kNop;
  int64_t chunk = 0;          // index among all chunks that the op takes
  int64_t packets_from = -1;  // where the run of chunks of a packet op begins; -1: another op
};
// A chunk of an op that has been done, of all calls.
struct Done {
  int32_t block = 0, call = 0, op = 0;
  int64_t chunk = 0;
  auto operator<=>(const Done&) const = default;
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
  int32_t call = 0;
  bool ended = false;  // all ops of the call are done
  int32_t time = 1;    // from 1; 0 in a clock means that nothing of the block is known
  Clock known, heard;  // heard: by single threads, since the block has met
  bool in_barrier = false;
  std::vector<int32_t> after;  // steps that the next one comes after
};

struct Sent {
  int32_t receive = -1, block = -1, time = 0;
  int32_t port = -1;  // the rank's port channel that carries it; -1: stores
};
struct Signal {
  Clock known;
  std::vector<int32_t> messages;  // their receives
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

// Runs every threadblock as far as it can go, in turn, until none can go on: so many calls in a row, of which
// a rank begins the next when all its threadblocks have ended. Between two calls its caller writes to inputs
// and outputs.
class Runner {
 public:
  Runner(const File& file, std::string_view name, bool plain_switches, int32_t calls)
      : file_(file), name_(name), plain_switches_(plain_switches), calls_(calls) {}

  StatusOr<Run> Go();

 private:
  template <typename... Args>
  Status Bad(std::string_view place, fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidInput(
        fmt::format("{}: {}: {}", name_, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  std::string PlaceAt(const State& state, int64_t op, OpName name, int32_t call) const;
  std::string PlaceNow(const State& state) const;
  std::string PlaceOfAccess(const Access& access) const;

  int32_t NumberOf(const State& state) const { return static_cast<int32_t>(&state - states_.data()); }

  Status SetUp();

  // The k-th channel of a type to a peer meets the peer's k-th of that type to this rank.
  void PairChannels();

  StatusOr<bool> Advance(State& state, int32_t number);
  // All threadblocks of a rank have ended a call.
  Status EndCall(size_t rank);

  void Meet(State& state, int32_t number);
  void Learn(State& state, const Clock& more);

  // False where the op has to wait.
  StatusOr<bool> Do(State& state, int32_t number, const Op& op);
  int32_t LastStep(const State& state) const;

  StatusOr<bool> DoBarrier(State& state, int32_t number, const Op& op);

  // In the rank's list.
  static int32_t ChannelOf(const State& state, ChannelType type, int32_t channel);
  Wire& WireOf(const State& state, const Op& op, int32_t channel);
  // Tells the peer of all stores that the block knows to be done, and, on a port, of the port's earlier puts.
  Status SignalOn(State& state, const Op& op, int32_t channel);

  StatusOr<bool> DoWait(State& state, const Op& op);
  // The receive of a message takes its place in the threadblock that sees it.
  Status Receive(State& state, int32_t receive);
  void Append(State& state, int32_t step);

  StatusOr<bool> DoAcquire(State& state, const Op& op);

  // ---- data ----

  BufferKind BufferOf(const State& state, const Op& op, const Piece& piece) const;
  int32_t PeerOf(const State& state, const Op& op, const Piece& piece) const;

  // Packets alternate between two halves of scratch where the plan says so.
  int32_t HalfOf(const State& state) const { return file_.double_scratch ? state.call % 2 : 0; }
  // The number of a chunk's place: equal for places that share memory. Packets lie behind plain chunks.
  int64_t CellOf(int32_t rank, BufferKind buffer, int64_t index, int32_t half = 0) const;
  // In place: where the input begins in the output, or the output in the input as a negative number.
  int64_t InputInOutput(int32_t rank) const;

  // When an op's accesses are over: kNow, when its block next meets; kEarly, before a signal of the same
  // thread; kLater, for reads by a port, when the message is waited for.
  enum class When : uint8_t { kNow, kEarly, kLater };
  Status Touch(State& state, int32_t number, int32_t rank, Place place, int64_t count, bool writes,
               int32_t step, When when = When::kNow);

  int32_t NewStep(const State& state, Step::Kind kind, int32_t rank, Place src, Place dst, int64_t count);

  // dst of src, at this rank.
  Status Make(State& state, int32_t number, Step::Kind kind, Place src, Place dst, int64_t count,
              Place src2 = {});

  // A message from `from` to `to`; this threadblock moves the data. Returns its send.
  StatusOr<int32_t> Move(State& state, int32_t number, int32_t from, Place src, int32_t to, Place dst,
                         int64_t count);
  // A message that a later signal tells the peer of. `port`: as in Sent.
  Status Put(State& state, int32_t number, Place src, int32_t peer, Place dst, int64_t count,
             int32_t port = -1);
  Status PutPackets(State& state, int32_t number, Place src, int32_t peer, int64_t index, int64_t count);
  // `past`: by chunk, the ops that are past the data which the packet is made of; empty: none.
  Status AddPackets(const State& state, int32_t number, int32_t rank, int64_t index, int64_t count,
                    int32_t send, const std::vector<std::vector<Done>>& past);
  Place Packets(int32_t rank, int64_t index) const;
  Place OnTheWay(int32_t rank, int64_t count);

  // dst = the sum of all inputs. If dst is one of the inputs, the other inputs are added to it.
  Status Sum(State& state, int32_t number, std::vector<Place> inputs, Place dst, int64_t count);

  // Have all packets come that the op reads? A packet that is read for the first time is received.
  StatusOr<bool> HasPackets(State& state, const Op& op, size_t first);
  // Packets are read as they come: the op itself knows of them.
  void HearAtOnce(State& state) { Learn(state, state.heard); }

  StatusOr<bool> DoData(State& state, int32_t number, const Op& op);

  static Place LocalPlace(const Piece& piece) { return {piece.buffer, piece.index}; }

  Status DoPackets(State& state, int32_t number, const Op& op);
  Status OwnPackets(State& state, int32_t number, Place src, const Piece& dst, int64_t count);

  Status DoPlain(State& state, int32_t number, const Op& op);

  const Switch& SwitchOf(const State& state, const Piece& piece) const;
  // Where its groups can be said as a program's, as one step, else rank by rank.
  Status DoSwitch(State& state, int32_t number, const Op& op);
  Status SwitchStep(State& state, int32_t number, const Op& op);
  bool IsGroup(const State& state, const Switch& ranks) const;

  // ---- the end ----

  Status CheckEnd() const;

  // Chunk i of packets lies where plain chunks 2i and 2i + 1 do.
  Status CheckScratch() const;

  // A thread makes every element of a packet from packets or data that it has read itself. So whoever reads
  // an element of the packet knows that the ops in `past` are past that element.
  struct Packet {
    int32_t send = -1;  // -1: made here
    int32_t call = 0;
    Clock known;
    std::vector<Done> past;  // ascending
  };

  const File& file_;
  const std::string_view name_;
  const bool plain_switches_;
  const int32_t calls_;
  Run run_;
  int32_t signals_ = 0;
  int64_t known_ = 0;                           // entries of all blocks' clocks together
  std::vector<State> states_, callers_;         // callers by rank, with block numbers behind all blocks
  std::vector<int32_t> running_;                // by rank: threadblocks that have not ended the call
  std::vector<std::map<int64_t, Cell>> cells_;  // by rank
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
  std::map<std::array<int64_t, 3>, Packet> packets_;  // by rank, half of scratch and chunk
  // By chunk of the op that is done: ops that are past it, where it polls packets.
  std::vector<std::vector<Done>> past_;
  int64_t first_chunk_ = 0;  // number of chunks of the op before the piece that is done
  // By rank, the chunks of ops that packets have told its calls of: in all calls, and in the calls before the
  // one that it is in.
  std::vector<std::set<Done>> heard_past_, known_past_;
  std::vector<int64_t> extra_;  // by rank: chunks of scratch and behind it
};

}  // namespace xccl::mscclpp
