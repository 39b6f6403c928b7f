// The program is run on symbolic values in an order that it allows. A message becomes a transfer of the
// schedule when its rank uses what it brought: sends it on, or ends with it. What a rank holds of a chunk
// thus goes through versions, each written by one copy or by several reductions. A transfer reads a version:
// later than its writes, and no later than those of the next version. The longest chain of these rules gives
// the step.
#include "ir/interchange/schedule_of.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/program_index.h"

namespace xccl {
namespace {

struct Value {
  int32_t chunk = -1;
  int32_t set = -1;               // of contributions
  std::vector<int32_t> messages;  // that are in it, and in no version when it was made
};

// A chunk of a message.
struct Unit {
  int32_t chunk = -1, set = -1, connection = -1;
  TransferOp op = TransferOp::kCopy;
  bool arrived = false;  // it has written a version
};

// What a rank holds of a chunk for a while.
struct Version {
  int32_t set = -1;
  std::vector<int32_t> writes, reads;  // units
};

class Scheduler {
 public:
  explicit Scheduler(const LoweredProgram& lowered)
      : program_(lowered.program), collective_(lowered.collective), index_(lowered.program) {}

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

  // Writes the messages of a value that have not arrived. True: what the rank holds then is the value.
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

  Status Send(int32_t node, const Value& value) {
    const ProgramSite site = index_.Site(node);
    Version* const version = Find(site.rank, value);
    if (version == nullptr)
      return InvalidInput(fmt::format(
          "{} sends one sum of chunk {} beside others that the rank keeps; expected one value of a chunk on "
          "a rank at a time, as a schedule has",
          ToString(site), value.chunk));
    const int32_t connection = index_.SendConnection(index_.BlockOf(node));
    const auto unit = static_cast<int32_t>(units_.size());
    units_.push_back({value.chunk, value.set, connection});
    version->reads.push_back(unit);
    flight_[static_cast<size_t>(connection)].push_back(unit);
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
        const auto connection = static_cast<size_t>(index_.RecvConnection(index_.BlockOf(node)));
        const int32_t unit = flight_[connection][heads_[connection]++];
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

  // What ranks end with arrives, and so does what nobody used.
  Status End() {
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value)
      for (const Value& value : memory_[r.index()][static_cast<size_t>(BufferKind::kOutput)])
        if (value.set >= 0) Find(r, value);
    for (size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].arrived) continue;
      const Connection& connection = program_.connections[static_cast<size_t>(units_[u].connection)];
      std::vector<Version>& versions = VersionsOf(connection.dst, units_[u].chunk);
      if (!versions.empty() && versions.back().set != units_[u].set)
        return InvalidInput(
            fmt::format("rank {} receives a sum of chunk {} from rank {} and does not use it; expected that "
                        "all messages are used",
                        connection.dst.value, units_[u].chunk, connection.src.value));
      Arrive(connection.dst, {units_[u].chunk, units_[u].set, {static_cast<int32_t>(u)}});
    }
    return OkStatus();
  }

  // Pairs (a, b) of units in columns by a: b is later than a, or no earlier than it.
  struct Rules {
    std::vector<std::vector<int32_t>> later, no_earlier;
    std::vector<int32_t> waits;                   // by unit: how many it is later than
    std::vector<std::vector<int32_t>> not_after;  // no_earlier by b
  };

  Rules RulesOfSteps() const {
    Rules rules{.later = std::vector<std::vector<int32_t>>(units_.size()),
                .no_earlier = std::vector<std::vector<int32_t>>(units_.size()),
                .waits = std::vector<int32_t>(units_.size()),
                .not_after = std::vector<std::vector<int32_t>>(units_.size())};
    const auto later = [&](const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
      for (const int32_t f : from)
        for (const int32_t t : to) {
          rules.later[static_cast<size_t>(f)].push_back(t);
          ++rules.waits[static_cast<size_t>(t)];
        }
    };
    for (const auto& [at, versions] : versions_)
      for (size_t v = 0; v < versions.size(); ++v) {
        later(versions[v].writes, versions[v].reads);
        if (v + 1 == versions.size()) continue;
        later(versions[v].writes, versions[v + 1].writes);
        for (const int32_t read : versions[v].reads)
          for (const int32_t write : versions[v + 1].writes) {
            rules.no_earlier[static_cast<size_t>(read)].push_back(write);
            rules.not_after[static_cast<size_t>(write)].push_back(read);
          }
      }
    return rules;
  }

  // The least step of every unit that keeps all rules, step by step: of the units that are later than earlier
  // steps alone, all but those that would come before one that is not among them.
  StatusOr<std::vector<int32_t>> Steps() const {
    enum class State : uint8_t { kWaits, kNext, kDone };
    Rules rules = RulesOfSteps();
    std::vector<State> states(units_.size());
    std::vector<int32_t> steps(units_.size()), next, stays, blocked;
    const auto add = [&](int32_t u) {
      states[static_cast<size_t>(u)] = State::kNext;
      next.push_back(u);
    };
    for (size_t u = 0; u < units_.size(); ++u)
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

  Status NoSteps(int32_t u) const {
    const Unit& unit = units_[static_cast<size_t>(u)];
    const Connection& connection = program_.connections[static_cast<size_t>(unit.connection)];
    return InvalidInput(
        fmt::format("chunk {}: no step for a message from rank {} to rank {}: a rank replaces what it has "
                    "sent before the "
                    "receiver uses it; expected messages whose steps have an order",
                    unit.chunk, connection.src.value, connection.dst.value));
  }

  Schedule Write(const std::vector<int32_t>& steps) const {
    std::vector<int32_t> order(units_.size());
    for (size_t u = 0; u < order.size(); ++u) order[u] = static_cast<int32_t>(u);
    std::ranges::stable_sort(order, {}, [&](int32_t u) {
      const Unit& unit = units_[static_cast<size_t>(u)];
      return std::tuple(steps[static_cast<size_t>(u)], unit.connection, unit.op, unit.chunk);
    });
    Schedule schedule;
    schedule.num_chunks = collective_.num_chunks();
    schedule.Reserve(std::ssize(order));
    for (const int32_t u : order) {
      const Unit& unit = units_[static_cast<size_t>(u)];
      const Connection& connection = program_.connections[static_cast<size_t>(unit.connection)];
      schedule.Add(ChunkId(unit.chunk), 1, connection.src, connection.dst, connection.path, unit.op,
                   steps[static_cast<size_t>(u)]);
    }
    Normalize(schedule);
    return schedule;
  }

  const Program& program_;
  const Collective& collective_;
  const ProgramIndex index_;
  std::map<Bits, int32_t> set_ids_;
  std::vector<Bits> sets_;
  std::vector<std::array<std::vector<Value>, 3>> memory_;  // by rank and buffer
  std::vector<std::vector<int32_t>> flight_;               // by connection: the units sent
  std::vector<size_t> heads_;                              // by connection: how many are received
  std::vector<Unit> units_;
  std::map<std::pair<int32_t, int32_t>, std::vector<Version>> versions_;  // by rank and chunk
};

}  // namespace

StatusOr<Schedule> ScheduleOf(const LoweredProgram& lowered) { return Scheduler(lowered).Make(); }

}  // namespace xccl
