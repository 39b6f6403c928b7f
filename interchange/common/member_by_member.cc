// For every instruction of a fan-in, the threadblocks of its members wait for one another in a chain. The
// first waits for the instruction's dependencies, and for the instruction before it.
#include "interchange/common/member_by_member.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace xccl {
namespace {

struct Waiting {
  Instruction instruction;
  std::vector<Dependency> waits;
};

class Apart {
 public:
  Apart(const Program& program, const Collective& collective) : program_(program), collective_(collective) {}

  Program Make() {
    Program made = program_;
    made.dependencies.clear();
    std::erase_if(made.groups, [](const Group& group) { return !HasSwitch(group); });
    for (Rank r(0); r.value < made.ranks.size(); ++r.value) MakeRank(r, made);
    return made;
  }

 private:
  using List = std::vector<Waiting>;

  void MakeRank(Rank r, Program& made) {
    const RankProgram& from = program_.ranks[r];
    RankProgram& rank = made.ranks[r];
    std::vector<List> lists(from.threadblocks.size());
    done_.assign(lists.size(), {});
    for (size_t b = 0; b < from.threadblocks.size(); ++b) {
      const Threadblock& block = from.threadblocks[b];
      Renumber(rank.threadblocks[b].send_group);
      Renumber(rank.threadblocks[b].recv_group);
      const Group* const group = FanInOf(program_, block);
      if (group != nullptr) {
        rank.threadblocks[b].recv_group.reset();
        rank.threadblocks[b].recv_peer = group->members.back();
        Threadblock other;
        other.channel = block.channel;
        for (size_t m = 0; m + 1 < group->members.size(); ++m) {
          other.recv_peer = group->members[m];
          rank.threadblocks.push_back(other);
          lists.emplace_back();
        }
      }
      for (const Instruction& i : block.instructions) {
        if (group != nullptr && Receives(i.op))
          Fold(r, static_cast<int32_t>(b), i, *group, lists, rank.scratch);
        else
          lists[b].push_back({i, Waits(i)});
        done_[b].push_back(static_cast<int32_t>(lists[b].size()) - 1);
      }
    }
    for (size_t b = 0; b < lists.size(); ++b) WriteDown(lists[b], rank.threadblocks[b], made.dependencies);
  }

  // Turns the number of a group into its number among the groups that stay.
  void Renumber(std::optional<int32_t>& group) const {
    if (!group) return;
    const auto before = std::span(program_.groups).first(static_cast<size_t>(*group));
    *group = static_cast<int32_t>(std::ranges::count_if(before, HasSwitch));
  }

  void WriteDown(const List& list, Threadblock& block, std::vector<Dependency>& dependencies) const {
    block.instructions.clear();
    for (const Waiting& waiting : list) {
      Instruction& i = block.instructions.emplace_back(waiting.instruction);
      i.dep_first = static_cast<int32_t>(dependencies.size());
      i.dep_count = static_cast<int32_t>(waiting.waits.size());
      for (const Dependency& wait : waiting.waits)
        dependencies.push_back(
            {wait.threadblock,
             wait.index < 0 ? -1 - wait.index
                            : done_[static_cast<size_t>(wait.threadblock)][static_cast<size_t>(wait.index)]});
    }
  }

  std::vector<Dependency> Waits(const Instruction& i) const {
    const auto waits = std::span(program_.dependencies)
                           .subspan(static_cast<size_t>(i.dep_first), static_cast<size_t>(i.dep_count));
    return {waits.begin(), waits.end()};
  }

  // A wait for the last instruction that a list has so far. Its index is below 0, to tell it from the waits
  // of the given program.
  static Dependency On(int32_t block, const List& list) {
    return {block, -static_cast<int32_t>(list.size())};
  }

  // Where partial sums stand: the destination, or scratch of its own.
  Operand SumOf(Rank r, const Instruction& i, const Group& group, std::vector<ChunkId>& scratch) const {
    const bool own_later = ReadsSource(i.op) && group.own > 0;
    if (WritesDestination(i.op) && !own_later) return i.dst;
    const Operand sum{BufferKind::kScratch, static_cast<int32_t>(scratch.size())};
    const std::vector<ChunkId> chunks = SlotChunks(program_, collective_, r, i.src.buffer);
    for (int32_t k = 0; k < i.count; ++k) scratch.push_back(chunks[static_cast<size_t>(i.src.slot + k)]);
    return sum;
  }

  void Fold(Rank r, int32_t b, const Instruction& i, const Group& group, std::vector<List>& lists,
            std::vector<ChunkId>& scratch) const {
    const auto members = static_cast<int32_t>(group.members.size());
    const int32_t first_new = static_cast<int32_t>(lists.size()) - (members - 1);
    const Operand sum = SumOf(r, i, group, scratch);
    const bool has_own = ReadsSource(i.op);
    std::vector<Dependency> waits = Waits(i);
    if (!lists[static_cast<size_t>(b)].empty()) waits.push_back(On(b, lists[static_cast<size_t>(b)]));
    for (int32_t m = 0; m < members; ++m) {
      const int32_t at = m + 1 == members ? b : first_new + m;
      List& list = lists[static_cast<size_t>(at)];
      Instruction add;
      add.count = i.count;
      add.op = Opcode::kRecvReduceCopy;
      add.src = add.dst = sum;
      if (m == 0 && has_own && group.own == 0) {
        add.src = i.src;
        add.first = i.first;
      } else if (m == 0) {
        add.op = Opcode::kRecv;
        add.src = {};
      }
      const bool ends = m + 1 == members && !(has_own && group.own == members);
      if (ends) {
        add.final = i.final;
        add.dst = i.dst;
        add.op = !Sends(i.op)              ? Opcode::kRecvReduceCopy
                 : WritesDestination(i.op) ? Opcode::kRecvReduceCopySend
                                           : Opcode::kRecvReduceSend;
      }
      list.push_back({add, std::exchange(waits, {})});
      if (has_own && group.own == m + 1) AddOwn(i, sum, m + 1 == members, list);
      if (m + 1 < members) waits = {On(at, list)};
    }
  }

  // Adds the rank's own value to the sum. Last of all, it also ends the instruction.
  static void AddOwn(const Instruction& i, const Operand& sum, bool is_last, List& list) {
    Instruction own;
    own.op = Opcode::kReduce;
    own.count = i.count;
    own.src = i.src;
    own.dst = sum;
    own.first = i.first;
    own.final = is_last && i.final;
    list.push_back({own, {}});
    if (!is_last) return;
    Instruction next;
    next.count = i.count;
    next.src = sum;
    if (WritesDestination(i.op)) {
      next.op = Opcode::kCopy;
      next.dst = i.dst;
      list.push_back({next, {}});
    }
    if (Sends(i.op)) {
      next.op = Opcode::kSend;
      next.dst = {};
      list.push_back({next, {}});
    }
  }

  const Program& program_;
  const Collective& collective_;
  std::vector<std::vector<int32_t>>
      done_;  // by threadblock and instruction of a rank: the last that it became
};

}  // namespace

Program WithoutFanIns(const Program& program, const Collective& collective) {
  return Apart(program, collective).Make();
}

}  // namespace xccl
