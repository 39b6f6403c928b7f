// Checks the rules in order, since each relies on those before. P1 to P3 make the program safe to traverse,
// P4 gives the edges between ranks, and P5 an order in which everything can happen; P6 to P9 follow that
// order.
#include "ir/verify/verify_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "ir/analysis/program_index.h"
#include "ir/verify/verify_accesses.h"
#include "ir/verify/verify_path.h"
#include "ir/verify/verify_values.h"

namespace xccl {
namespace {

constexpr int32_t kLargeProgram = 100'000;  // instructions, beyond which a second thread saves 20 ms

// Numbers the chunks' shapes: chunks of one shape have the same number of elements at every size.
std::vector<int32_t> Shapes(const Collective& collective) {
  const CollectiveSpec& spec = collective.spec();
  std::vector<int32_t> shape;
  std::map<std::array<int64_t, 4>, int32_t> known;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    const ChunkId chunk(c);
    const PartId part = collective.PartOf(chunk);
    int64_t size_class = 0;
    // Parts of equal counts have equal sizes, except where each is rounded by itself.
    if (spec.kind == CollectiveKind::kCustom) {
      size_class = spec.custom_weights[part.index()];
    } else if (!spec.counts.empty()) {
      size_class = spec.kind == CollectiveKind::kAlltoallv ? spec.counts[part.index()] : part.value;
    }
    const std::array<int64_t, 4> key = {size_class, collective.WeightBefore(chunk), collective.Weight(chunk),
                                        collective.PartWeight(part)};
    shape.push_back(known.emplace(key, c).first->second);
  }
  return shape;
}

class StructureCheck {
 public:
  StructureCheck(const Program& program, const Collective& collective, const Topology& topology,
                 std::vector<Violation>& violations)
      : program_(program),
        collective_(collective),
        topology_(topology),
        paths_(topology),
        violations_(violations),
        shape_(Shapes(collective)),
        slots_(program.ranks.items().size()) {}

  void Run() {
    CheckProgram();
    if (!violations_.empty()) return;
    for (Rank r(0); r.value < program_.ranks.size() && !Full(); ++r.value) CheckRank(r);
  }

  // Rule P4. Requires: Run found nothing.
  void CheckConnections(const ProgramIndex& index) {
    for (size_t c = 0; c < program_.connections.size() && !Full(); ++c) {
      const std::span<const int32_t> sends = index.SendsOf(static_cast<int32_t>(c));
      const std::span<const int32_t> receives = index.ReceivesOf(static_cast<int32_t>(c));
      const std::string where = ToString(program_.connections[c]);
      if (sends.size() != receives.size())
        Report("P4", where, fmt::format("{} sends and {} receives", sends.size(), receives.size()));
      for (size_t k = 0; k < std::min(sends.size(), receives.size()) && !Full(); ++k)
        CheckPair(index, sends[k], receives[k], k, where);
    }
  }

 private:
  bool Full() const { return static_cast<int32_t>(violations_.size()) >= kMaxViolations; }
  void Report(const char* rule, std::string where, std::string text) {
    if (!Full()) violations_.push_back({rule, std::move(where), std::move(text)});
  }

  // "rank 0", "ranks 1, 2"
  static std::string RanksText(const std::vector<Rank>& ranks) {
    std::string text = ranks.size() == 1 ? "rank" : "ranks";
    for (size_t i = 0; i < ranks.size(); ++i) text += fmt::format("{} {}", i > 0 ? "," : "", ranks[i].value);
    return text;
  }

  static std::string GroupName(const Group& g) {
    return fmt::format("{} group of rank {} on channel {}", ToString(g.kind), g.root.value, g.channel);
  }

  void CheckProgram() {
    const int32_t ranks = program_.ranks.size();
    const auto within = [&](const char* what, int32_t value, int32_t most) {
      if (value < 1 || value > most)
        Report("P1", "program", fmt::format("{} {}; expected 1..{}", value, what, most));
    };
    within("slots", program_.slots, kMaxSlots);
    within("instances", program_.instances, kMaxInstances);
    if (program_.segment_bytes < 0)
      Report("P1", "program",
             fmt::format("segments of {} bytes; expected at least 0", program_.segment_bytes));
    for (Rank r : collective_.ranks())
      if (!program_.ranks.Has(r))
        Report("P1", "program", fmt::format("{} ranks; the collective has rank {}", ranks, r.value));
    if (program_.in_place)
      for (Rank r : collective_.ranks())
        if (!collective_.InPlaceOf(r)) {
          Report("P1", "program", fmt::format("is in place; {} has no in-place form", collective_.name()));
          break;
        }
    const auto key = [](const Connection& c) { return std::tuple(c.src, c.dst, c.channel); };
    for (size_t i = 0; i < program_.connections.size() && !Full(); ++i) {
      const Connection& c = program_.connections[i];
      if (!program_.ranks.Has(c.src) || !program_.ranks.Has(c.dst) || c.src == c.dst || c.channel < 0)
        Report("P1", ToString(c),
               fmt::format("expected two of the ranks 0..{} and a channel of 0 or more", ranks - 1));
      if (i > 0 && !(key(program_.connections[i - 1]) < key(c)))
        Report("P1", ToString(c), "out of order; expected sorted by ranks and channel, each once");
    }
    if (!violations_.empty()) return;
    for (size_t i = 0; i < program_.connections.size() && !Full(); ++i) CheckChain(program_.connections[i]);
    CheckGroups();
  }

  void CheckChain(const Connection& c) {
    const PathShape shape = paths_.Check(c.path);
    if (!shape.ok) return Report("P1", ToString(c), "its path " + shape.error);
    if (shape.sources.size() + shape.destinations.size() > 2)
      return Report("P1", ToString(c), "its path is a tree; expected a chain");
    if (shape.sources.front() != c.src || shape.destinations.front() != c.dst)
      Report("P1", ToString(c),
             fmt::format("its path goes from rank {} to rank {}", shape.sources.front().value,
                         shape.destinations.front().value));
  }

  // Checks the path of a group whose members and connections are right.
  void CheckTree(const Group& group, const std::vector<int32_t>& connections) {
    PathShape shape = paths_.Check(group.path);
    if (!shape.ok) return Report("P1", GroupName(group), "its path " + shape.error);
    const std::vector<std::vector<LinkId>> branches = paths_.Branches(group.path, shape);
    const bool multicast = SendsTo(group);
    const std::vector<Rank>& leaves = multicast ? shape.destinations : shape.sources;
    std::vector<Rank> members = leaves;
    std::ranges::sort(members);
    const std::vector<Rank>& roots = multicast ? shape.sources : shape.destinations;
    if (roots != std::vector{group.root} || members != group.members)
      return Report("P1", GroupName(group),
                    fmt::format("its path joins {} with {}; expected {} with {}", RanksText(roots),
                                RanksText(members), RanksText({group.root}), RanksText(group.members)));
    for (size_t i = 0; i < leaves.size(); ++i) {
      const size_t member =
          static_cast<size_t>(std::ranges::lower_bound(members, leaves[i]) - members.begin());
      const Connection& c = program_.connections[static_cast<size_t>(connections[member])];
      if (c.path != branches[i])
        Report("P1", ToString(c), "its path is no branch of the path of its " + GroupName(group));
    }
  }

  void CheckGroups() {
    if (program_.protocol != Protocol::kSimple && std::ranges::any_of(program_.groups, HasSwitch))
      Report("P1", "program",
             fmt::format("has groups of switches and protocol {}; expected simple",
                         ToString(program_.protocol)));
    const auto key = [](const Group& g) { return std::tuple(g.kind, g.root, g.channel); };
    group_of_.assign(program_.connections.size(), -1);
    for (size_t i = 0; i < program_.groups.size() && !Full(); ++i) {
      const Group& group = program_.groups[i];
      if (i > 0 && !(key(program_.groups[i - 1]) < key(group)))
        Report("P1", GroupName(group), "out of order; expected sorted by kind, root and channel, each once");
      CheckMembers(static_cast<int32_t>(i));
    }
  }

  void CheckMembers(int32_t index) {
    const Group& group = program_.groups[static_cast<size_t>(index)];
    bool good = program_.ranks.Has(group.root) && group.members.size() >= 2;
    for (size_t m = 0; m < group.members.size(); ++m)
      good = good && program_.ranks.Has(group.members[m]) && group.members[m] != group.root &&
             (HasSwitch(group) ? m == 0 || group.members[m - 1] < group.members[m]
                               : std::ranges::count(group.members, group.members[m]) == 1);
    if (!good)
      return Report("P1", GroupName(group),
                    fmt::format("expected a root and two or more other members of the ranks 0..{}, each "
                                "once and in order",
                                program_.ranks.size() - 1));
    const int32_t most_before = HasSwitch(group) ? 0 : static_cast<int32_t>(group.members.size());
    if (group.own < 0 || group.own > most_before)
      return Report(
          "P1", GroupName(group),
          fmt::format("adds the root's own value after {} members; expected 0..{}", group.own, most_before));
    if (!HasSwitch(group) && !group.path.empty())
      return Report("P1", GroupName(group), "has a path; its members' connections have theirs");
    const bool sends = SendsTo(group);
    std::vector<int32_t> connections;
    for (Rank member : group.members) {
      const Rank src = sends ? group.root : member, dst = sends ? member : group.root;
      const std::optional<int32_t> c = FindConnection(program_, src, dst, group.channel);
      if (!c) {
        Report("P1", GroupName(group),
               fmt::format("the program has no connection {}->{} on channel {}", src.value, dst.value,
                           group.channel));
      } else if (group_of_[static_cast<size_t>(*c)] >= 0) {
        Report("P1", GroupName(group),
               fmt::format("connection {}->{} is in an earlier group", src.value, dst.value));
      } else {
        group_of_[static_cast<size_t>(*c)] = index;
        connections.push_back(*c);
      }
    }
    if (HasSwitch(group) && connections.size() == group.members.size()) CheckTree(group, connections);
  }

  void CheckRank(Rank r) {
    const RankProgram& rank = program_.ranks[r];
    for (BufferKind buffer : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
      slots_[r][static_cast<size_t>(buffer)] = SlotChunks(program_, collective_, r, buffer);
    for (size_t i = 0; i < rank.scratch.size(); ++i)
      if (rank.scratch[i].value < 0 || rank.scratch[i].value >= collective_.num_chunks()) {
        Report("P2", fmt::format("rank {} scratch slot {}", r.value, i),
               fmt::format("no chunk {}; chunks are 0..{}", rank.scratch[i].value,
                           collective_.num_chunks() - 1));
        return;
      }
    std::set<std::pair<Rank, int32_t>> senders, receivers;
    for (size_t tb = 0; tb < rank.threadblocks.size() && !Full(); ++tb) {
      const Threadblock& block = rank.threadblocks[tb];
      const std::string where = fmt::format("rank {} threadblock {}", r.value, tb);
      if (!CheckGroup(r, block, true, where) || !CheckGroup(r, block, false, where)) continue;
      for (Rank peer : SendPeers(program_, block))
        CheckPeer(r, peer, block.channel, true, block.send_group.has_value(), where, senders);
      for (Rank peer : RecvPeers(program_, block))
        CheckPeer(r, peer, block.channel, false, block.recv_group.has_value(), where, receivers);
      for (size_t i = 0; i < block.instructions.size() && !Full(); ++i)
        CheckInstruction({r, static_cast<int32_t>(tb), static_cast<int32_t>(i)}, block);
    }
  }

  // True if the threadblock names no group, or one that exists and belongs to its rank and channel.
  bool CheckGroup(Rank r, const Threadblock& block, bool sends, const std::string& where) {
    const std::optional<int32_t>& index = sends ? block.send_group : block.recv_group;
    if (!index) return true;
    const size_t reported = violations_.size();
    const char* does = sends ? "sends to" : "receives from";
    if (*index < 0 || *index >= static_cast<int64_t>(program_.groups.size())) {
      Report("P1", where,
             fmt::format("{} group {}; the program has {}", does, *index, program_.groups.size()));
      return false;
    }
    const Group& group = program_.groups[static_cast<size_t>(*index)];
    if (SendsTo(group) != sends || group.root != r || group.channel != block.channel)
      Report("P1", where,
             fmt::format("{} the {}; expected a {} group of rank {} on channel {}", does, GroupName(group),
                         sends ? "multicast" : "reduce or fan-in", r.value, block.channel));
    if ((sends ? block.send_peer : block.recv_peer).has_value())
      Report("P1", where, fmt::format("{} a rank and a group; expected one of them", does));
    return violations_.size() == reported;
  }

  void CheckPeer(Rank r, Rank peer, int32_t channel, bool sends, bool as_group, const std::string& where,
                 std::set<std::pair<Rank, int32_t>>& seen) {
    const char* does = sends ? "sends to" : "receives from";
    if (!program_.ranks.Has(peer) || peer == r)
      return Report("P1", where,
                    fmt::format("{} rank {}; expected another of the ranks 0..{}", does, peer.value,
                                program_.ranks.size() - 1));
    const std::optional<int32_t> c = FindConnection(program_, sends ? r : peer, sends ? peer : r, channel);
    if (!c)
      return Report("P1", where,
                    fmt::format("{} rank {} on channel {}; the program has no such connection", does,
                                peer.value, channel));
    if (!as_group && RootServes(*c, sends))
      return Report("P1", where,
                    fmt::format("{} rank {} on channel {}, which is a group's; expected the group", does,
                                peer.value, channel));
    if (!seen.emplace(peer, channel).second)
      Report(
          "P1", where,
          fmt::format("{} rank {} on channel {}, as an earlier threadblock does", does, peer.value, channel));
  }

  // True if the connection is in a group whose root is at this end.
  bool RootServes(int32_t connection, bool at_sender) const {
    const int32_t group = group_of_[static_cast<size_t>(connection)];
    return group >= 0 && SendsTo(program_.groups[static_cast<size_t>(group)]) == at_sender;
  }
  static bool SendsTo(const Group& group) { return group.kind == Group::Kind::kMulticast; }

  void CheckInstruction(const ProgramSite& site, const Threadblock& block) {
    const Instruction& i = block.instructions[static_cast<size_t>(site.index)];
    const auto bad = [&](const char* rule, std::string text) {
      Report(rule, ToString(site), std::move(text));
    };
    if (Sends(i.op) && !block.send_peer && !block.send_group)
      bad("P1", fmt::format("{} in a threadblock that sends to nobody", ToString(i.op)));
    if (Receives(i.op) && !block.recv_peer && !block.recv_group)
      bad("P1", fmt::format("{} in a threadblock that receives from nobody", ToString(i.op)));
    if (i.count < 1 && i.op != Opcode::kNop)
      bad("P1", fmt::format("{} of {} chunks; expected at least 1", ToString(i.op), i.count));
    if (i.count != 0 && i.op == Opcode::kNop) bad("P1", fmt::format("nop of {} chunks; expected 0", i.count));
    CheckOperands(site.rank, i, bad);
    CheckDependencies(site, i, bad);
  }

  template <typename Bad>
  void CheckOperands(Rank rank, const Instruction& i, Bad bad) {
    if (i.op == Opcode::kNop || i.count < 1) return;
    const auto fits = [&](const Operand& operand) {
      const int64_t size = static_cast<int64_t>(slots_[rank][static_cast<size_t>(operand.buffer)].size());
      if (operand.slot >= 0 && static_cast<int64_t>(operand.slot) + i.count <= size) return true;
      bad("P2", fmt::format("{} {} slots from {} on; the rank has {}", i.count, ToString(operand.buffer),
                            operand.slot, size));
      return false;
    };
    const bool source = !ReadsSource(i.op) || fits(i.src);
    const bool destination = !WritesDestination(i.op) || fits(i.dst);
    if (WritesDestination(i.op) && i.dst.buffer == BufferKind::kInput)
      bad("P2", "writes its input, which is only read");
    if (!source || !destination || !ReadsSource(i.op) || !WritesDestination(i.op)) return;
    for (int32_t k = 0; k < i.count; ++k) {
      const ChunkId from = ChunkAt(rank, i.src, k), to = ChunkAt(rank, i.dst, k);
      if (shape_[from.index()] == shape_[to.index()]) continue;
      return bad("P2", fmt::format("combines slots of chunks {} and {}, which differ in size", from.value,
                                   to.value));
    }
  }

  template <typename Bad>
  void CheckDependencies(const ProgramSite& site, const Instruction& i, Bad bad) {
    const int64_t all = static_cast<int64_t>(program_.dependencies.size());
    if (i.dep_first < 0 || i.dep_count < 0 || static_cast<int64_t>(i.dep_first) + i.dep_count > all)
      return bad("P3", fmt::format("dependencies {}..{}; the program has {}", i.dep_first,
                                   static_cast<int64_t>(i.dep_first) + i.dep_count - 1, all));
    const std::vector<Threadblock>& blocks = program_.ranks[site.rank].threadblocks;
    for (int32_t d = i.dep_first; d < i.dep_first + i.dep_count; ++d) {
      const Dependency& on = program_.dependencies[static_cast<size_t>(d)];
      if (on.threadblock < 0 || on.threadblock >= static_cast<int64_t>(blocks.size()) || on.index < 0 ||
          on.index >= static_cast<int64_t>(blocks[static_cast<size_t>(on.threadblock)].instructions.size()))
        return bad("P3", fmt::format("waits for threadblock {} instruction {}, which does not exist",
                                     on.threadblock, on.index));
    }
  }

  ChunkId ChunkAt(Rank rank, const Operand& operand, int32_t k) const {
    return slots_[rank][static_cast<size_t>(operand.buffer)][static_cast<size_t>(operand.slot + k)];
  }

  // The chunk of the k-th slot that determines the size of an instruction's message.
  ChunkId MessageChunk(const ProgramIndex& index, int32_t node, int32_t k, bool sending) const {
    const Instruction& i = index.instruction(node);
    const bool by_source = sending ? ReadsSource(i.op) : !WritesDestination(i.op);
    return ChunkAt(index.Site(node).rank, by_source ? i.src : i.dst, k);
  }

  void CheckPair(const ProgramIndex& index, int32_t send, int32_t receive, size_t ordinal,
                 const std::string& where) {
    const int32_t sent = index.instruction(send).count, received = index.instruction(receive).count;
    if (sent != received)
      return Report(
          "P4", where,
          fmt::format("send {} moves {} chunks ({}), but receive {} takes {} ({})", ordinal, sent,
                      ToString(index.Site(send)), ordinal, received, ToString(index.Site(receive))));
    for (int32_t k = 0; k < sent; ++k) {
      const ChunkId from = MessageChunk(index, send, k, true), to = MessageChunk(index, receive, k, false);
      if (shape_[from.index()] == shape_[to.index()]) continue;
      return Report("P4", where,
                    fmt::format("send {} is as large as chunk {} ({}), but receive {} as chunk {} ({})",
                                ordinal, from.value, ToString(index.Site(send)), ordinal, to.value,
                                ToString(index.Site(receive))));
    }
  }

  const Program& program_;
  const Collective& collective_;
  const Topology& topology_;
  PathChecker paths_;
  std::vector<Violation>& violations_;
  std::vector<int32_t> shape_;
  std::vector<int32_t> group_of_;                              // by connection: its group, or -1
  IdVector<Rank, std::array<std::vector<ChunkId>, 3>> slots_;  // by rank and buffer: the chunk in each slot
};

// Reports the first instruction of a cycle among those that `order` lacks.
void ReportCircle(const Program& program, const ProgramIndex& index, const std::vector<int32_t>& order,
                  ProgramEdges edges, std::vector<Violation>& violations) {
  std::vector<bool> done(static_cast<size_t>(index.size()), false);
  for (int32_t node : order) done[static_cast<size_t>(node)] = true;
  int32_t node = 0;
  while (done[static_cast<size_t>(node)]) ++node;
  // Every remaining instruction has a remaining predecessor, so walking back ends in a cycle.
  std::vector<int32_t> walk, predecessors, seen_at(static_cast<size_t>(index.size()), -1);
  while (seen_at[static_cast<size_t>(node)] < 0) {
    seen_at[static_cast<size_t>(node)] = static_cast<int32_t>(walk.size());
    walk.push_back(node);
    Predecessors(index, node, edges, program.slots, predecessors);
    node = *std::find_if(predecessors.begin(), predecessors.end(),
                         [&](int32_t p) { return !done[static_cast<size_t>(p)]; });
  }
  const auto begin = walk.begin() + seen_at[static_cast<size_t>(node)];
  const int64_t length = walk.end() - begin;
  const auto first = std::min_element(begin, walk.end());
  const int32_t next = first + 1 == walk.end() ? *begin : *(first + 1);
  const bool local = edges == ProgramEdges::kLocal;
  violations.push_back(
      {local ? "P3" : "P5", ToString(index.Site(*first)),
       fmt::format("waits for {}, and so on in a circle of {} instructions{}", ToString(index.Site(next)),
                   length, local ? "" : fmt::format(" with {} slots", program.slots))});
}

}  // namespace

std::vector<Violation> VerifyProgram(const Program& program, const Collective& collective,
                                     const Topology& topology, ProgramRecord* record) {
  std::vector<Violation> violations;
  StructureCheck structure(program, collective, topology, violations);
  structure.Run();
  if (!violations.empty()) return violations;
  const ProgramIndex index(program);
  if (const std::vector<int32_t> local = TopologicalOrder(program, index, ProgramEdges::kLocal);
      static_cast<int32_t>(local.size()) < index.size())
    ReportCircle(program, index, local, ProgramEdges::kLocal, violations);
  structure.CheckConnections(index);
  if (!violations.empty()) return violations;
  const std::vector<int32_t> order = TopologicalOrder(program, index, ProgramEdges::kAll);
  if (static_cast<int32_t>(order.size()) < index.size()) {
    ReportCircle(program, index, order, ProgramEdges::kAll, violations);
    return violations;
  }
  for (bool in_place : {false, true}) {
    if (in_place && (!program.in_place || !violations.empty())) break;
    // The checks of values and of accesses may run at once: neither changes data that the other reads.
    std::vector<Violation> of_values;
    const auto check_values = [&] {
      CheckValues(program, collective, index, order, in_place, of_values, in_place ? nullptr : record);
    };
    StatusOr<std::thread> thread = index.size() > kLargeProgram
                                       ? StartThread(check_values)
                                       : StatusOr<std::thread>(LimitReached("not worth a thread"));
    if (!thread.ok()) check_values();
    CheckAccesses(program, collective, index, order, in_place, violations);
    if (thread.ok()) thread->join();
    for (Violation& violation : of_values)
      if (static_cast<int32_t>(violations.size()) < kMaxViolations)
        violations.push_back(std::move(violation));
  }
  return violations;
}

}  // namespace xccl
