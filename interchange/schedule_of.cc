// The program is run on symbolic values in an order that it allows. A message becomes a transfer of the
// schedule when its rank uses its value: sends it on, or ends with it. A chunk at a rank thus goes through
// versions, each written by one copy or by several reductions. A transfer that reads a version has a later
// step than all writes of that version, and no later step than the writes of the next version. Every transfer
// gets the least step that the longest chain of these two rules allows. A message to or from a group of a
// switch is one transfer: a multicast arrives at each member by itself, and a reduction brings its root one
// sum.
#include "interchange/schedule_of.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/analysis/program_index.h"

namespace xccl {
namespace {

struct Value {
  int32_t chunk = -1;
  int32_t set = -1;               // index of its set of contributions
  std::vector<int32_t> messages;  // messages that are in it, and were in no version when it was made
};

// A chunk of a message at the rank that it arrives at.
struct Unit {
  int32_t chunk = -1, set = -1, move = -1;
  Rank dst;
  TransferOp op = TransferOp::kCopy;
  bool arrived = false;  // it has written a version
};

// A chunk of a message: of all members, in a group.
struct Move {
  int32_t connection = -1;
  int32_t group = -1;  // -1: none
  std::vector<int32_t> units = {};
};

// One value of a chunk at a rank. The rank holds it until the next version is written.
struct Version {
  int32_t set = -1;
  std::vector<int32_t> writes;  // units
  std::vector<int32_t> reads;   // moves
};

class Scheduler {
 public:
  explicit Scheduler(const LoweredProgram& lowered)
      : program_(lowered.program),
        collective_(lowered.collective),
        index_(lowered.program),
        group_of_(lowered.program.connections.size(), -1),
        sums_(lowered.program.groups.size()) {
    for (size_t g = 0; g < program_.groups.size(); ++g)
      for (const Rank m : program_.groups[g].members)
        group_of_[FindBranch(program_, program_.groups[g], m)] = static_cast<int32_t>(g);
  }

  StatusOr<Schedule> Make() {
    Fill();
    for (const int32_t node : TopologicalOrder(program_, index_, ProgramEdges::kAll))
      XCCL_RETURN_IF_ERROR(Run(node));
    XCCL_RETURN_IF_ERROR(End());
    XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> steps, Steps());
    return Write(steps);
  }

 private:
  using Bits = std::vector<uint64_t>;

  int32_t IdOf(const Bits& bits) {
    const auto [at, added] = set_ids_.try_emplace(bits, static_cast<int32_t>(sets_.size()));
    if (added) sets_.push_back(bits);
    return at->second;
  }
  // The union; -1 where they have something in common.
  int32_t Union(int32_t a, int32_t b) {
    Bits bits = sets_[static_cast<size_t>(a)];
    const Bits& more = sets_[static_cast<size_t>(b)];
    for (size_t w = 0; w < bits.size(); ++w) {
      if ((bits[w] & more[w]) != 0) return -1;
      bits[w] |= more[w];
    }
    return IdOf(bits);
  }

  Value& At(Rank rank, const Operand& operand, int32_t k) {
    return memory_[rank.index()][static_cast<size_t>(operand.buffer)][static_cast<size_t>(operand.slot + k)];
  }
  std::vector<Version>& VersionsOf(Rank rank, int32_t chunk) { return versions_[{rank.value, chunk}]; }

  void Fill() {
    memory_.resize(static_cast<size_t>(program_.ranks.size()));
    flight_.resize(program_.connections.size());
    heads_.resize(program_.connections.size());
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value)
      for (const BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
        memory_[r.index()][static_cast<size_t>(kind)].resize(
            SlotChunks(program_, collective_, r, kind).size());
    std::vector<Holding> before;
    std::vector<std::map<int32_t, int32_t>> held(memory_.size());  // by rank: set by chunk
    for (int32_t c = 0; c < collective_.num_chunks(); ++c) {
      collective_.Before(ChunkId(c), before);
      for (const Holding& holding : before) {
        Bits bits(memory_.size() / 64 + 1);
        for (const Rank r : holding.contributions) bits[r.index() / 64] |= uint64_t{1} << r.index() % 64;
        held[holding.rank.index()][c] = IdOf(bits);
        VersionsOf(holding.rank, c).push_back({IdOf(bits), {}, {}});
      }
    }
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      const std::vector<ChunkId> slots = SlotChunks(program_, collective_, r, BufferKind::kInput);
      for (size_t s = 0; s < slots.size(); ++s) {
        const auto set = held[r.index()].find(slots[s].value);
        if (set != held[r.index()].end()) memory_[r.index()][0][s] = {slots[s].value, set->second, {}};
      }
    }
  }

  // Writes the messages of a value that have not arrived to the rank's versions. True: the rank then holds
  // the value.
  bool Arrive(Rank rank, const Value& value) {
    std::vector<int32_t> units;
    for (const int32_t m : value.messages)
      if (!units_[static_cast<size_t>(m)].arrived) units.push_back(m);
    if (units.empty()) return false;
    int32_t brought = units_[static_cast<size_t>(units[0])].set;
    for (size_t u = 1; u < units.size() && brought >= 0; ++u)
      brought = Union(brought, units_[static_cast<size_t>(units[u])].set);
    if (brought < 0) return false;
    std::vector<Version>& versions = VersionsOf(rank, value.chunk);
    const bool replaces = brought == value.set;
    if (!replaces && (versions.empty() || Union(versions.back().set, brought) != value.set)) return false;
    for (size_t u = 0; u < units.size(); ++u) {
      Unit& unit = units_[static_cast<size_t>(units[u])];
      unit.arrived = true;
      unit.op = replaces && u == 0 ? TransferOp::kCopy : TransferOp::kReduce;
    }
    // A copy and the sums on top of it are two versions: only sums may share a step.
    if (replaces && units.size() > 1) {
      versions.push_back({units_[static_cast<size_t>(units[0])].set, {units[0]}, {}});
      units.erase(units.begin());
    }
    versions.push_back({value.set, std::move(units), {}});
    return true;
  }

  // The version that is this value; null: the schedule has none.
  Version* Find(Rank rank, const Value& value) {
    std::vector<Version>& versions = VersionsOf(rank, value.chunk);
    const auto found = std::ranges::find(versions, value.set, &Version::set);
    if (found != versions.end()) return &*found;
    return Arrive(rank, value) ? &versions.back() : nullptr;
  }

  int32_t AddUnit(const Value& value, Rank dst, int32_t move) {
    const auto unit = static_cast<int32_t>(units_.size());
    units_.push_back({value.chunk, value.set, move, dst});
    moves_[static_cast<size_t>(move)].units.push_back(unit);
    return unit;
  }

  // The unit to which a member of a reduction sends its part: one for the k-th chunks of all.
  int32_t UnitOfSum(int32_t group, size_t k, const Value& value, int32_t connection) {
    std::vector<int32_t>& sums = sums_[static_cast<size_t>(group)];
    if (k < sums.size()) {
      Unit& unit = units_[static_cast<size_t>(sums[k])];
      unit.set = Union(unit.set, value.set);
      return sums[k];
    }
    const auto move = static_cast<int32_t>(moves_.size());
    moves_.push_back({connection, group});
    sums.push_back(AddUnit(value, program_.groups[static_cast<size_t>(group)].root, move));
    return sums.back();
  }

  Status Send(int32_t node, const Value& value) {
    const ProgramSite site = index_.Site(node);
    Version* const version = Find(site.rank, value);
    if (version == nullptr)
      return InvalidInput(fmt::format(
          "{} sends one sum of chunk {} beside others that the rank keeps; expected one value of a chunk on "
          "a rank at a time, as a schedule has",
          ToString(site), value.chunk));
    const std::span<const int32_t> connections = index_.SendConnections(index_.BlockOf(node));
    const int32_t group = group_of_[static_cast<size_t>(connections[0])];
    if (group >= 0 && program_.groups[static_cast<size_t>(group)].kind == Group::Kind::kReduce) {
      std::vector<int32_t>& flight = flight_[static_cast<size_t>(connections[0])];
      flight.push_back(UnitOfSum(group, flight.size(), value, connections[0]));
      version->reads.push_back(units_[static_cast<size_t>(flight.back())].move);
      return OkStatus();
    }
    const auto move = static_cast<int32_t>(moves_.size());
    moves_.push_back({connections[0], group});
    version->reads.push_back(move);
    for (const int32_t c : connections)
      flight_[static_cast<size_t>(c)].push_back(AddUnit(value, ConnectionAt(c).dst, move));
    return OkStatus();
  }

  Value Sum(const Value& a, const Value& b) {
    Value sum{a.chunk, Union(a.set, b.set), a.messages};
    sum.messages.insert(sum.messages.end(), b.messages.begin(), b.messages.end());
    std::erase_if(sum.messages, [&](int32_t m) { return units_[static_cast<size_t>(m)].arrived; });
    return sum;
  }

  Status Run(int32_t node) {
    const Instruction& i = index_.instruction(node);
    const Rank rank = index_.Site(node).rank;
    for (int32_t k = 0; k < i.count; ++k) {
      Value value;
      if (ReadsSource(i.op)) value = At(rank, i.src, k);
      if (Receives(i.op)) {
        int32_t unit = -1;  // all members of a reduction have the same
        for (const int32_t c : index_.RecvConnections(index_.BlockOf(node)))
          unit = flight_[static_cast<size_t>(c)][heads_[static_cast<size_t>(c)]++];
        const Unit& message = units_[static_cast<size_t>(unit)];
        const Value received{message.chunk, message.set, {unit}};
        value = ReadsSource(i.op) ? Sum(value, received) : received;
        if (!collective_.Reduces()) Arrive(rank, value);
      }
      if (i.op == Opcode::kReduce) value = Sum(At(rank, i.dst, k), value);
      if (WritesDestination(i.op)) At(rank, i.dst, k) = value;
      if (Sends(i.op)) XCCL_RETURN_IF_ERROR(Send(node, value));
    }
    return OkStatus();
  }

  // Makes the messages in each rank's outputs arrive, and then every message that no instruction used.
  Status End() {
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value)
      for (const Value& value : memory_[r.index()][static_cast<size_t>(BufferKind::kOutput)])
        if (value.set >= 0) Find(r, value);
    for (size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].arrived) continue;
      const Rank rank = units_[u].dst;
      std::vector<Version>& versions = VersionsOf(rank, units_[u].chunk);
      if (!versions.empty() && versions.back().set != units_[u].set)
        return InvalidInput(
            fmt::format("rank {} receives a sum of chunk {} from rank {} and does not use it; expected that "
                        "all messages are used",
                        rank.value, units_[u].chunk, ConnectionOf(units_[u].move).src.value));
      Arrive(rank, {units_[u].chunk, units_[u].set, {static_cast<int32_t>(u)}});
    }
    for (size_t m = 0; m < moves_.size(); ++m)
      for (const int32_t u : moves_[m].units)
        if (units_[static_cast<size_t>(u)].op != FirstOf(static_cast<int32_t>(m)).op)
          return NoSteps(static_cast<int32_t>(m));
    return OkStatus();
  }

  const Connection& ConnectionAt(int32_t c) const { return program_.connections[static_cast<size_t>(c)]; }
  const Connection& ConnectionOf(int32_t move) const {
    return ConnectionAt(moves_[static_cast<size_t>(move)].connection);
  }
  const Unit& FirstOf(int32_t move) const {
    return units_[static_cast<size_t>(moves_[static_cast<size_t>(move)].units[0])];
  }
  std::vector<int32_t> MovesOf(const std::vector<int32_t>& units) const {
    std::vector<int32_t> moves;
    moves.reserve(units.size());
    for (const int32_t u : units) moves.push_back(units_[static_cast<size_t>(u)].move);
    return moves;
  }

  // Pairs (a, b) of moves in columns by a: b is later than a, or no earlier than it.
  struct Rules {
    std::vector<std::vector<int32_t>> later, no_earlier;
    std::vector<int32_t> waits;                   // by move: how many it is later than
    std::vector<std::vector<int32_t>> not_after;  // no_earlier by b
  };

  Rules RulesOfSteps() const {
    Rules rules{.later = std::vector<std::vector<int32_t>>(moves_.size()),
                .no_earlier = std::vector<std::vector<int32_t>>(moves_.size()),
                .waits = std::vector<int32_t>(moves_.size()),
                .not_after = std::vector<std::vector<int32_t>>(moves_.size())};
    const auto later = [&](const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
      for (const int32_t f : from)
        for (const int32_t t : to) {
          rules.later[static_cast<size_t>(f)].push_back(t);
          ++rules.waits[static_cast<size_t>(t)];
        }
    };
    for (const auto& [at, versions] : versions_)
      for (size_t v = 0; v < versions.size(); ++v) {
        const std::vector<int32_t> writes = MovesOf(versions[v].writes);
        later(writes, versions[v].reads);
        if (v + 1 == versions.size()) continue;
        const std::vector<int32_t> next = MovesOf(versions[v + 1].writes);
        later(writes, next);
        for (const int32_t read : versions[v].reads)
          for (const int32_t write : next) {
            rules.no_earlier[static_cast<size_t>(read)].push_back(write);
            rules.not_after[static_cast<size_t>(write)].push_back(read);
          }
      }
    return rules;
  }

  // The least step of every move that keeps all rules. Steps are filled in order. A move is ready when all
  // moves that must be earlier have a step. A step takes all ready moves, except a move that must not precede
  // another move that stays behind.
  StatusOr<std::vector<int32_t>> Steps() const {
    enum class State : uint8_t { kWaits, kNext, kDone };
    Rules rules = RulesOfSteps();
    std::vector<State> states(moves_.size());
    std::vector<int32_t> steps(moves_.size()), next, stays, blocked;
    const auto add = [&](int32_t u) {
      states[static_cast<size_t>(u)] = State::kNext;
      next.push_back(u);
    };
    for (size_t u = 0; u < moves_.size(); ++u)
      if (rules.waits[u] == 0) add(static_cast<int32_t>(u));
    for (int32_t step = 0; !next.empty(); ++step) {
      blocked.clear();
      const auto block = [&](int32_t u) {
        states[static_cast<size_t>(u)] = State::kWaits;
        blocked.push_back(u);
      };
      for (const int32_t u : next) {
        if (states[static_cast<size_t>(u)] != State::kNext) continue;
        const std::vector<int32_t>& before = rules.not_after[static_cast<size_t>(u)];
        if (std::ranges::any_of(before,
                                [&](int32_t b) { return states[static_cast<size_t>(b)] == State::kWaits; }))
          block(u);
      }
      for (size_t b = 0; b < blocked.size(); ++b)
        for (const int32_t u : rules.no_earlier[static_cast<size_t>(blocked[b])])
          if (states[static_cast<size_t>(u)] == State::kNext) block(u);
      if (blocked.size() == next.size()) return NoSteps(next.front());
      stays.swap(next);
      next.clear();
      for (const int32_t u : stays) {
        if (states[static_cast<size_t>(u)] == State::kWaits) {
          add(u);
          continue;
        }
        states[static_cast<size_t>(u)] = State::kDone;
        steps[static_cast<size_t>(u)] = step;
        for (const int32_t t : rules.later[static_cast<size_t>(u)])
          if (--rules.waits[static_cast<size_t>(t)] == 0) add(t);
      }
    }
    const auto stuck = std::ranges::find(states, State::kWaits);
    if (stuck != states.end()) return NoSteps(static_cast<int32_t>(stuck - states.begin()));
    return steps;
  }

  Status NoSteps(int32_t move) const {
    const Connection& connection = ConnectionOf(move);
    return InvalidInput(
        fmt::format("chunk {}: no step for a message from rank {} to rank {}: a rank replaces what it has "
                    "sent before the "
                    "receiver uses it; expected messages whose steps have an order",
                    FirstOf(move).chunk, connection.src.value, connection.dst.value));
  }

  Schedule Write(const std::vector<int32_t>& steps) const {
    std::vector<int32_t> order(moves_.size());
    for (size_t m = 0; m < order.size(); ++m) order[m] = static_cast<int32_t>(m);
    std::ranges::stable_sort(order, {}, [&](int32_t m) {
      return std::tuple(steps[static_cast<size_t>(m)], moves_[static_cast<size_t>(m)].connection,
                        FirstOf(m).op, FirstOf(m).chunk);
    });
    Schedule schedule;
    schedule.num_chunks = collective_.num_chunks();
    schedule.Reserve(std::ssize(order));
    for (const int32_t m : order) {
      const auto [src, dst, path] = EndsOf(moves_[static_cast<size_t>(m)]);
      schedule.Add(ChunkId(FirstOf(m).chunk), 1, src, dst, path, FirstOf(m).op,
                   steps[static_cast<size_t>(m)]);
    }
    Normalize(schedule);
    return schedule;
  }

  // A transfer of a group names the member whose link comes first in the path.
  std::tuple<Rank, Rank, std::span<const LinkId>> EndsOf(const Move& move) const {
    const Connection& connection = ConnectionAt(move.connection);
    if (move.group < 0) return {connection.src, connection.dst, connection.path};
    const Group& group = program_.groups[static_cast<size_t>(move.group)];
    const bool out = group.kind == Group::Kind::kMulticast;
    const auto place = [&](Rank m) {
      const std::vector<LinkId>& branch = program_.connections[FindBranch(program_, group, m)].path;
      return std::ranges::find(group.path, out ? branch.back() : branch.front());
    };
    const Rank member = *std::ranges::min_element(group.members, {}, place);
    const Connection ends = BranchOf(group, member);
    return {ends.src, ends.dst, group.path};
  }

  const Program& program_;
  const Collective& collective_;
  const ProgramIndex index_;
  std::map<Bits, int32_t> set_ids_;
  std::vector<Bits> sets_;
  std::vector<std::array<std::vector<Value>, 3>> memory_;  // by rank and buffer
  std::vector<std::vector<int32_t>> flight_;               // by connection: the units sent
  std::vector<size_t> heads_;                              // by connection: how many are received
  std::vector<int32_t> group_of_;                          // by connection; -1: none
  std::vector<std::vector<int32_t>> sums_;                 // by group that reduces: the units of its messages
  std::vector<Unit> units_;
  std::vector<Move> moves_;
  std::map<std::pair<int32_t, int32_t>, std::vector<Version>> versions_;  // by rank and chunk
};

}  // namespace

StatusOr<Schedule> ScheduleOf(const LoweredProgram& lowered) { return Scheduler(lowered).Make(); }

}  // namespace xccl
