// A check of moves turns the value of a pass into an order of events, and replays the events chunk by chunk:
// a rank's state holds the set of ranks whose contributions are there. Moves say in advance what feeds,
// precedes and overwrites them; the replay compares. Cost: the events, times the sizes of the sets.
#include "ir/lower/verify_passes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"

namespace xccl::lowering {
namespace {

template <typename... Args>
Status Wrong(std::string_view pass, fmt::format_string<Args...> format, Args&&... args) {
  return BugError(fmt::format("lower: after {}: {}", pass, fmt::format(format, std::forward<Args>(args)...)));
}

std::string Name(const Move& move, size_t m) {
  return fmt::format("move {} (chunk {}, rank {} to {})", m, move.chunk.value, move.src.value,
                     move.dst.value);
}

// Returns move m and the moves after it in its bundle that have no event of their own: the event of m stands
// for all of them.
std::span<const Move> AllOfEvent(const std::vector<Move>& moves, size_t m, bool Move::*has_event) {
  size_t end = m + 1;
  while (end < moves.size() && moves[end].bundle == moves[m].bundle && !(moves[end].*has_event)) ++end;
  return std::span(moves).subspan(m, end - m);
}
std::span<const Move> SentBy(const std::vector<Move>& moves, size_t m) {
  return AllOfEvent(moves, m, &Move::sends);
}
std::span<const Move> ReceivedBy(const std::vector<Move>& moves, size_t m) {
  return AllOfEvent(moves, m, &Move::receives);
}

// The ranks whose contributions are in a value.
using Contributions = std::set<Rank>;

// Adds `more` to `sum`. Returns false if the two share a rank.
bool Join(Contributions& sum, const Contributions& more) {
  const size_t both = sum.size() + more.size();
  sum.insert(more.begin(), more.end());
  return sum.size() == both;
}

// Performs all events, chunk by chunk.
class Replay {
 public:
  Replay(std::string_view pass, const Moves& moves, const Collective& collective, int32_t num_ranks)
      : pass_(pass),
        moves_(moves.moves),
        copies_(moves.copies),
        collective_(collective),
        states_(static_cast<size_t>(num_ranks)),
        carried_(moves.moves.size()),
        reads_(moves.moves.size(), 0) {}

  // Performs the events, numbered as in Order::events.
  Status Run(const std::vector<int32_t>& events) {
    std::vector<std::vector<int32_t>> of_chunk(static_cast<size_t>(collective_.num_chunks()));
    for (const int32_t event : events) of_chunk[moves_[event / 2].chunk.index()].push_back(event);
    for (int32_t c = 0; c < collective_.num_chunks(); ++c) {
      Begin(ChunkId(c));
      for (const int32_t event : of_chunk[c])
        XCCL_RETURN_IF_ERROR(event % 2 == 0 ? Send(event / 2) : Receive(event / 2));
      XCCL_RETURN_IF_ERROR(End(ChunkId(c)));
    }
    return OkStatus();
  }

 private:
  // The state, at one rank, of the chunk that is replayed.
  struct RankState {
    std::optional<Contributions> input, held;
    int32_t writer = kNoIndex;
    std::vector<int32_t> senders;  // since the last write
  };

  void Begin(ChunkId c) {
    std::fill(states_.begin(), states_.end(), RankState());
    collective_.Before(c, holdings_);
    for (const Holding& holding : holdings_)
      states_[holding.rank].input.emplace(holding.contributions.begin(), holding.contributions.end());
  }

  Status Send(int32_t m) {
    const Move& move = moves_[m];
    RankState& from = states_[move.src];
    if (move.feed != from.writer)
      return Wrong(pass_, "{} is fed by move {}; expected {}, which wrote there last", Name(move, m),
                   move.feed, from.writer);
    if (move.feed == kNoIndex && !from.input)
      return Wrong(pass_, "{} sends what its rank does not have", Name(move, m));
    for (const Move& with : SentBy(moves_, m))
      carried_[&with - moves_.data()] = move.feed == kNoIndex ? from.input : from.held;
    if (move.feed != kNoIndex) ++reads_[move.feed];
    from.senders.push_back(m);
    return OkStatus();
  }

  Status Receive(int32_t m) {
    const Move& move = moves_[m];
    RankState& to = states_[move.dst];
    if (move.previous != to.writer)
      return Wrong(pass_, "{} writes behind move {}; expected {}, which wrote there last", Name(move, m),
                   move.previous, to.writer);
    Contributions value;
    for (const Move& with : ReceivedBy(moves_, m)) {
      const std::optional<Contributions>& carried = carried_[&with - moves_.data()];
      if (!carried) return Wrong(pass_, "{} is received before it is sent", Name(move, m));
      if (!Join(value, *carried)) return Wrong(pass_, "{} adds one contribution twice", Name(move, m));
    }
    if (move.reduces) {
      const std::optional<Contributions>& there = move.local_input ? to.input : to.held;
      if (!there || move.local_input != (to.writer == kNoIndex))
        return Wrong(pass_, "{} adds to what is not there", Name(move, m));
      if (!Join(value, *there)) return Wrong(pass_, "{} adds one contribution twice", Name(move, m));
      if (to.writer != kNoIndex) ++reads_[to.writer];
    }
    if (move.complete && std::ssize(value) != collective_.num_members())
      return Wrong(pass_, "{} is no complete sum", Name(move, m));
    XCCL_RETURN_IF_ERROR(Close(to, m, 0));
    to.held = std::move(value);
    to.writer = m;
    return OkStatus();
  }

  // Checks the value at a rank when it ends: move `by` overwrites it, or the chunk is done (`by` is
  // kNoIndex). `more` is the number of its reads that are neither sends nor additions.
  Status Close(RankState& state, int32_t by, int32_t more) {
    for (const int32_t m : state.senders)
      if (moves_[m].overwriter != by)
        return Wrong(pass_, "{} has overwriter {}; expected {}", Name(moves_[m], m), moves_[m].overwriter,
                     by);
    state.senders.clear();
    const int32_t w = state.writer;
    if (w != kNoIndex && moves_[w].readers != reads_[w] + more)
      return Wrong(pass_, "{} has {} readers; expected {}", Name(moves_[w], w), moves_[w].readers,
                   reads_[w] + more);
    return OkStatus();
  }

  Status End(ChunkId c) {
    collective_.After(c, holdings_);
    for (const Holding& holding : holdings_) {
      const Rank r = holding.rank;
      RankState& state = states_[r];
      const Contributions wanted(holding.contributions.begin(), holding.contributions.end());
      const bool copied =
          std::ranges::binary_search(copies_, std::tuple(r, c), {},
                                     [](const LocalCopy& copy) { return std::tuple(copy.rank, copy.chunk); });
      if (copied == (state.writer != kNoIndex) || (copied ? state.input : state.held) != wanted)
        return Wrong(pass_, "rank {} ends without its output of chunk {}", r.value, c.value);
      XCCL_RETURN_IF_ERROR(Close(state, kNoIndex, copied ? 0 : 1));
      state.writer = kNoIndex;
    }
    for (RankState& state : states_) XCCL_RETURN_IF_ERROR(Close(state, kNoIndex, 0));
    return OkStatus();
  }

  const std::string_view pass_;
  const std::vector<Move>& moves_;
  const std::vector<LocalCopy>& copies_;
  const Collective& collective_;
  IdVector<Rank, RankState> states_;
  std::vector<std::optional<Contributions>> carried_;  // by move: the value that it carries
  std::vector<int32_t> reads_;                         // by move: reads of the value that it left
  std::vector<Holding> holdings_;
};

// Returns an order of events that all fields of the moves allow. Events that wait in a circle are left out.
std::vector<int32_t> SomeOrder(const std::vector<Move>& moves) {
  const size_t count = moves.size();
  std::vector<std::vector<int32_t>> next(2 * count);
  std::vector<int32_t> waits(2 * count, 0);
  const auto sent = [&](size_t m) {
    return 2 * (moves[m].sends ? static_cast<int32_t>(m) : moves[m].bundle);
  };
  const auto received = [&](size_t m) {
    return 2 * (moves[m].receives ? static_cast<int32_t>(m) : moves[m].bundle) + 1;
  };
  const auto add = [&](int32_t before, int32_t after) {
    next[before].push_back(after);
    ++waits[after];
  };
  for (size_t m = 0; m < count; ++m) {
    add(sent(m), received(m));
    if (moves[m].sends && moves[m].feed != kNoIndex) add(received(moves[m].feed), sent(m));
    if (moves[m].sends && moves[m].overwriter != kNoIndex) add(sent(m), received(moves[m].overwriter));
    if (moves[m].receives && moves[m].previous != kNoIndex) add(received(moves[m].previous), received(m));
  }
  std::vector<int32_t> events;
  for (size_t m = 0; m < count; ++m)
    if (moves[m].sends && waits[2 * m] == 0) events.push_back(static_cast<int32_t>(2 * m));
  for (size_t i = 0; i < events.size(); ++i)
    for (const int32_t event : next[events[i]])
      if (--waits[event] == 0) events.push_back(event);
  return events;
}

// Checks that every move that is sent, or received, by its own event has that event once.
Status CheckEvents(std::string_view pass, const std::vector<Move>& moves,
                   const std::vector<int32_t>& events) {
  std::vector<int32_t> times(2 * moves.size(), 0);
  for (const int32_t event : events) ++times[event];
  for (size_t m = 0; m < moves.size(); ++m)
    if (times[2 * m] != (moves[m].sends ? 1 : 0) || times[2 * m + 1] != (moves[m].receives ? 1 : 0))
      return Wrong(pass, "{} is sent {} and received {} times", Name(moves[m], m), times[2 * m],
                   times[2 * m + 1]);
  return OkStatus();
}

// Checks that every path is first in, first out, with at most `slots` moves under way.
Status CheckConnections(std::string_view pass, const std::vector<Move>& moves,
                        const std::vector<int32_t>& events, size_t slots) {
  int32_t paths = 0;
  for (const Move& move : moves) paths = std::max(paths, move.path + 1);
  std::vector<std::deque<const Move*>> under_way(static_cast<size_t>(paths));
  for (const int32_t event : events) {
    const size_t m = static_cast<size_t>(event / 2);
    if (event % 2 == 0) {
      for (const Move& move : SentBy(moves, m)) {
        under_way[move.path].push_back(&move);
        if (under_way[move.path].size() > slots)
          return Wrong(pass, "{} is sent with {} moves under way; expected at most {}", Name(move, m),
                       under_way[move.path].size() - 1, slots - 1);
      }
      continue;
    }
    for (const Move& move : ReceivedBy(moves, m)) {
      if (under_way[move.path].empty() || under_way[move.path].front() != &move)
        return Wrong(pass, "{} is not received in the order in which its connection sends", Name(move, m));
      under_way[move.path].pop_front();
    }
  }
  return OkStatus();
}

// Checks events, connections and values for one order of events.
Status CheckOrder(std::string_view pass, const Moves& moves, const std::vector<int32_t>& events, size_t slots,
                  const Collective& collective, const Topology& topology) {
  XCCL_RETURN_IF_ERROR(CheckEvents(pass, moves.moves, events));
  XCCL_RETURN_IF_ERROR(CheckConnections(pass, moves.moves, events, slots));
  return Replay(pass, moves, collective, topology.num_ranks()).Run(events);
}

}  // namespace

Status PassVerifier::Check(std::string_view pass, const Schedule& schedule) const {
  if (!on_) return OkStatus();
  const Status status = ToStatus(VerifySchedule(schedule, collective_, topology_));
  return status.ok() ? status : Wrong(pass, "{}", status.message());
}

Status PassVerifier::Check(const Paths& paths) const {
  if (!on_) return OkStatus();
  for (int32_t p = 0; p < paths.size(); ++p) {
    const Path& path = paths.paths[p];
    NodeId at = topology_.NodeOf(path.src);
    for (const LinkId l : path.links) {
      if (topology_.link(l).from != at) return Wrong("paths", "path {} is no chain at link {}", p, l.value);
      at = topology_.link(l).to;
    }
    if (path.links.empty() || at != topology_.NodeOf(path.dst))
      return Wrong("paths", "path {} does not end at rank {}", p, path.dst.value);
    if (path.group == kNoIndex) continue;
    const PathGroup& group = paths.groups[path.group];
    const bool is_member = p >= group.first && p < group.first + group.count;
    const Rank root = group.kind == Group::Kind::kMulticast ? path.src : path.dst;
    const bool is_tree = group.kind != Group::Kind::kFanIn;
    const auto is_of_group = [&](LinkId l) { return std::ranges::find(group.links, l) != group.links.end(); };
    if (!is_member || root != group.root || (is_tree && !std::ranges::all_of(path.links, is_of_group)))
      return Wrong("paths", "path {} is no branch of group {}", p, path.group);
  }
  return OkStatus();
}

Status PassVerifier::Check(const Moves& moves) const {
  if (!on_) return OkStatus();
  const std::vector<int32_t> events = SomeOrder(moves.moves);
  XCCL_RETURN_IF_ERROR(CheckEvents("moves", moves.moves, events));
  return Replay("moves", moves, collective_, topology_.num_ranks()).Run(events);
}

Status PassVerifier::Check(const Ordered& ordered) const {
  if (!on_) return OkStatus();
  return CheckOrder("order", ordered.moves, ordered.order.events, static_cast<size_t>(ordered.order.slots),
                    collective_, topology_);
}

Status PassVerifier::Check(const Assignment& assignment, const Paths& paths) const {
  if (!on_) return OkStatus();
  constexpr std::string_view kPass = "threadblocks";
  std::set<std::tuple<Rank, Rank, int32_t>> connections;
  std::set<std::tuple<Rank, int32_t, bool>> served;  // rank, threadblock, does it send
  for (int32_t p = 0; p < paths.size(); ++p) {
    const Path& path = paths.paths[p];
    const int32_t channel = assignment.channel[p];
    if (!connections.emplace(path.src, path.dst, channel).second)
      return Wrong(kPass, "path {} shares channel {} with another from rank {} to {}", p, channel,
                   path.src.value, path.dst.value);
    const Threadblock& sender = assignment.blocks[path.src][assignment.send_block[p]];
    const Threadblock& receiver = assignment.blocks[path.dst][assignment.recv_block[p]];
    const bool is_group = path.group != kNoIndex;
    const bool sends_group = is_group && paths.groups[path.group].kind == Group::Kind::kMulticast;
    const bool receives_group = is_group && !sends_group;
    if (sender.channel != channel || receiver.channel != channel ||
        (sends_group ? sender.send_group != path.group : sender.send_peer != path.dst) ||
        (receives_group ? receiver.recv_group != path.group : receiver.recv_peer != path.src))
      return Wrong(kPass, "the threadblocks of path {} do not serve it", p);
    const bool first = is_group && p == paths.groups[path.group].first;
    if ((!sends_group || first) && !served.emplace(path.src, assignment.send_block[p], true).second)
      return Wrong(kPass, "the sender of path {} serves another, too", p);
    if ((!receives_group || first) && !served.emplace(path.dst, assignment.recv_block[p], false).second)
      return Wrong(kPass, "the receiver of path {} serves another, too", p);
    const int32_t onward = assignment.forwards_to[p];
    if (onward != kNoIndex &&
        (paths.paths[onward].src != path.dst || assignment.send_block[onward] != assignment.recv_block[p]))
      return Wrong(kPass, "path {} is not sent on by the threadblock that receives it", p);
  }
  return OkStatus();
}

Status PassVerifier::Check(const Ordered& ordered, const Assignment& assignment, const Fusion& fusion,
                           int32_t slots) const {
  if (!on_) return OkStatus();
  const std::vector<Move>& moves = ordered.moves.moves;
  std::vector<int32_t> events;
  for (const int32_t event : ordered.order.events) {
    const int32_t m = event / 2;
    if (event % 2 == 0 && fusion.recv_of[m] != kNoIndex) continue;
    events.push_back(event);
    const int32_t forwarded = event % 2 == 0 ? kNoIndex : fusion.send_of[m];
    if (forwarded == kNoIndex) continue;
    if (fusion.recv_of[forwarded] != m || moves[forwarded].feed != m ||
        assignment.recv_block[moves[m].path] != assignment.send_block[moves[forwarded].path])
      return Wrong("fuse", "{} is not forwarded where it is received", Name(moves[m], m));
    events.push_back(2 * forwarded);
  }
  return CheckOrder("fuse", ordered.moves, events, static_cast<size_t>(slots), collective_, topology_);
}

Status PassVerifier::Check(const Moves& moves, const Fusion& fusion, const Buffers& buffers) const {
  if (!on_) return OkStatus();
  std::vector<std::vector<ChunkId>> inputs, outputs;  // by rank, then slot
  const auto chunks_of = [&](const std::vector<PartId>& parts) {
    std::vector<ChunkId> chunks;
    for (const PartId part : parts)
      for (int32_t i = 0; i < collective_.ChunksOf(part); ++i)
        chunks.push_back(ChunkId(collective_.FirstChunk(part).value + i));
    return chunks;
  };
  for (Rank r(0); r.value < topology_.num_ranks(); ++r.value) {
    const bool is_member = collective_.MemberIndex(r).has_value();
    inputs.push_back(is_member ? chunks_of(collective_.InputParts(r)) : std::vector<ChunkId>());
    outputs.push_back(is_member ? chunks_of(collective_.OutputParts(r)) : std::vector<ChunkId>());
  }
  const auto holds = [&](Rank r, const Operand& operand, ChunkId chunk) {
    const std::vector<ChunkId>& slots = operand.buffer == BufferKind::kInput    ? inputs[r.index()]
                                        : operand.buffer == BufferKind::kOutput ? outputs[r.index()]
                                                                                : buffers.Scratch(r);
    return operand.slot >= 0 && static_cast<size_t>(operand.slot) < slots.size() &&
           slots[operand.slot] == chunk;
  };
  for (size_t m = 0; m < moves.moves.size(); ++m) {
    const Move& move = moves.moves[m];
    const bool is_sent_well = move.feed == kNoIndex
                                  ? holds(move.src, buffers.Input(move.src, move.chunk), move.chunk)
                                  : !IsStored(moves, fusion, move.feed) ||
                                        holds(move.src, buffers.Held(move.src, move.chunk), move.chunk);
    const bool is_stored = move.receives && IsStored(moves, fusion, static_cast<int32_t>(m));
    if (!is_sent_well || (is_stored && !holds(move.dst, buffers.Held(move.dst, move.chunk), move.chunk)) ||
        (move.local_input && !holds(move.dst, buffers.Input(move.dst, move.chunk), move.chunk)))
      return Wrong("buffers", "{} has a slot of another chunk", Name(move, m));
  }
  return OkStatus();
}

Status PassVerifier::Check(const Ordered& ordered, const Fusion& fusion, const Runs& runs,
                           int32_t max_count) const {
  if (!on_) return OkStatus();
  constexpr std::string_view kPass = "merge";
  const std::vector<Move>& moves = ordered.moves.moves;
  std::vector<int32_t> next(moves.size(), kNoIndex);
  for (size_t m = 0; m < moves.size(); ++m) {
    const int32_t p = runs.previous[m];
    if ((p == kNoIndex) != (runs.length[m] > 0) || runs.length[m] > std::max(1, max_count))
      return Wrong(kPass, "{} has a run of {}; expected at most {}", Name(moves[m], m), runs.length[m],
                   std::max(1, max_count));
    if (p == kNoIndex) continue;
    if (moves[p].path != moves[m].path || moves[p].chunk.value + 1 != moves[m].chunk.value || runs.last[p])
      return Wrong(kPass, "{} does not continue the run of move {}", Name(moves[m], m), p);
    next[p] = static_cast<int32_t>(m);
  }
  std::vector<int32_t> events;
  for (const int32_t event : ordered.order.events) {
    int32_t m = event / 2;
    if (event % 2 == 0) {
      if (fusion.recv_of[m] != kNoIndex || runs.length[m] == 0) continue;
      for (; m != kNoIndex; m = next[m]) events.push_back(2 * m);
    } else if (runs.last[m]) {
      while (runs.previous[m] != kNoIndex) m = runs.previous[m];
      for (; m != kNoIndex; m = next[m]) {
        events.push_back(2 * m + 1);
        if (fusion.send_of[m] != kNoIndex) events.push_back(2 * fusion.send_of[m]);
      }
    }
  }
  const size_t slots = moves.size();  // any number: no connection has more moves under way
  return CheckOrder(kPass, ordered.moves, events, slots, collective_, topology_);
}

Status PassVerifier::Check(std::string_view pass, const Program& program, bool has_dependencies) const {
  if (!on_) return OkStatus();
  for (const Violation& violation : VerifyProgram(program, collective_, topology_))
    if (has_dependencies || violation.rule < "P6") return Wrong(pass, "{}", ToString(violation));
  return OkStatus();
}

}  // namespace xccl::lowering
