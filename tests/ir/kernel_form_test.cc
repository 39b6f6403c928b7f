// Blocks, runs and direct modes of small programs, and programs that are refused.
#include "ir/kernel/kernel_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/kernel_traffic.h"
#include "ir/kernel/kernel_sizes.h"
#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"
#include "ir/testing/trees.h"
#include "ir/verify/verify_program.h"

namespace xccl {
namespace {

struct Lowered {
  Collective collective;
  Program program;
};

Lowered Make(CollectiveKind kind, int32_t ranks, Algorithm algorithm) {
  const Topology topology = FullMesh(ranks);
  const Collective collective = MakeCollective(kind, ranks);
  return {collective,
          LowerChecked(*HandSchedule(algorithm, collective, topology), collective, topology).value()};
}

// Traffic computed by hand: rings of N ranks, out of place; a rank's whole buffer has S bytes.
TEST(KernelTraffic, Rings) {
  const int64_t n = 4, size = 1 << 20;
  const auto traffic = [&](CollectiveKind kind, Protocol protocol, bool direct) {
    const Lowered made = Make(kind, n, Algorithm::kRing);
    return KernelTraffic(*MakeKernelForm(made.program, made.collective),
                         CollectiveSizes(made.collective, size), protocol, direct);
  };
  // A rank copies its own share, and receives every other share once; each is read and written.
  EXPECT_EQ(traffic(CollectiveKind::kAllgather, Protocol::kSimple, true), 2 * n * size);
  // Through slots, a send reads and writes, and so does a receive; a receive that forwards writes twice.
  EXPECT_EQ(traffic(CollectiveKind::kAllgather, Protocol::kSimple, false),
            n * (2 + 2 + 2 + (n - 2) * 3) * size / n);
  // LL's slots are twice as long.
  EXPECT_EQ(traffic(CollectiveKind::kAllgather, Protocol::kLl, true),
            n * (2 + 3 + 3 + (n - 2) * (2 + 1 + 2)) * size / n);
}

// The modes of all receives, each once, in order of appearance.
std::vector<DirectMode> ReceiveModes(const Lowered& of) {
  const KernelForm form = MakeKernelForm(of.program, of.collective).value();
  std::vector<DirectMode> modes;
  for (const KernelRank& rank : form.ranks)
    for (const KernelBlock& block : rank.blocks)
      for (const KernelInstruction& i : block.instructions)
        if (i.from && std::find(modes.begin(), modes.end(), i.receive) == modes.end())
          modes.push_back(i.receive);
  return modes;
}

TEST(KernelForm, OutputsThatNobodyTouchedBeforeArePut) {
  // The parts arrive in slots that nothing has read or written yet, also in place.
  EXPECT_EQ(ReceiveModes(Make(CollectiveKind::kAllgather, 4, Algorithm::kRing)),
            std::vector{DirectMode::kPut});
  EXPECT_EQ(ReceiveModes(Make(CollectiveKind::kAlltoall, 3, Algorithm::kDirect)),
            std::vector{DirectMode::kPut});
}

TEST(KernelForm, ContributionsOfAReduceAreReadWhereTheyLie) {
  // A leaf's input does not change; the root adds it from where it is.
  EXPECT_EQ(ReceiveModes(Make(CollectiveKind::kReduce, 3, Algorithm::kDirect)),
            std::vector{DirectMode::kGet});
}

TEST(KernelForm, TablesExcludeDirectAccess) {
  const Lowered lowered = Make(CollectiveKind::kAllgatherv, 4, Algorithm::kRing);
  EXPECT_TRUE(MakeKernelForm(lowered.program, lowered.collective)->tables);
  EXPECT_EQ(ReceiveModes(lowered), std::vector{DirectMode::kNo});
}

TEST(KernelForm, SignalsAreThoseThatSomebodyWaitsFor) {
  const Lowered lowered = Make(CollectiveKind::kAllreduce, 4, Algorithm::kTree);
  const KernelForm form = MakeKernelForm(lowered.program, lowered.collective, false).value();
  for (const KernelRank& rank : form.ranks) {
    std::vector<std::vector<bool>> awaited;
    for (const KernelBlock& block : rank.blocks) awaited.emplace_back(block.instructions.size(), false);
    for (const KernelBlock& block : rank.blocks)
      for (const KernelInstruction& i : block.instructions)
        for (const KernelDependency& d : i.after)
          awaited[static_cast<size_t>(d.block)][static_cast<size_t>(d.index)] = true;
    for (size_t b = 0; b < rank.blocks.size(); ++b)
      for (size_t i = 0; i < awaited[b].size(); ++i)
        EXPECT_TRUE(rank.blocks[b].instructions[i].signals || !awaited[b][i]);
  }
}

// An allreduce of one chunk, of which rank 0 is the root of groups with ranks 1 and 2.
Program OneRoot(const Collective& collective) {
  const Operand output = {BufferKind::kOutput, 0};
  Program program;
  program.in_place = true;
  program.ranks.resize(3);
  for (Rank r : {Rank(1), Rank(2)}) {
    Threadblock& block = program.ranks[r].threadblocks.emplace_back();
    block.send_peer = block.recv_peer = Rank(0);
    block.instructions = {{Opcode::kSend, 1, {}, {}, true}, {Opcode::kRecv, 1, {}, output}};
    program.connections.push_back({Rank(0), r, 0, {}});
  }
  for (Rank r : {Rank(1), Rank(2)}) program.connections.push_back({r, Rank(0), 0, {}});
  program.groups = {{Group::Kind::kMulticast, Rank(0), {Rank(1), Rank(2)}, 0, {}},
                    {Group::Kind::kReduce, Rank(0), {Rank(1), Rank(2)}, 0, {}}};
  Threadblock& root = program.ranks[Rank(0)].threadblocks.emplace_back();
  root.send_group = 0;
  root.recv_group = 1;
  root.instructions = {{Opcode::kRecvReduceCopySend, 1, {}, output, true, true}};
  const Topology topology = TreeSwitch(3);
  RouteThrough(topology, program);
  XCCL_CHECK(VerifyProgram(program, collective, topology).empty());
  return program;
}

TEST(KernelForm, GroupsAreEndsOfTheirRoots) {
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  const Program program = OneRoot(collective);
  const KernelForm form = MakeKernelForm(program, collective).value();
  EXPECT_EQ(form.ranks[Rank(0)].groups, (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(form.ranks[Rank(1)].groups.empty());
  const KernelInstruction& i = form.ranks[Rank(0)].blocks[0].instructions[0];
  EXPECT_TRUE(!i.from && !i.to && i.from_group == 1 && i.to_group == 0);
  EXPECT_EQ(Describe(i, program, Rank(0), form),
            "0.0: recv_reduce_copy_send i[0] -> o[0], reduced from ranks 1 2, multicast to ranks 1 2, first, "
            "final");
  EXPECT_FALSE(form.direct);
  EXPECT_TRUE(form.ranks[Rank(1)].blocks[0].instructions[1].from == 0);
}

// Whether the switch adds up for the root, and whether it stores the root's data at all ranks.
struct SwitchUse {
  bool adds_up = false, stores = false;
  bool operator==(const SwitchUse&) const = default;
};
SwitchUse UseOf(const Program& program, const Collective& collective) {
  const KernelForm form = MakeKernelForm(program, collective).value();
  const KernelInstruction& root = form.ranks[Rank(0)].blocks[0].instructions[0];
  const SwitchUse use = {root.receive == DirectMode::kSwitchGet, root.send == DirectMode::kSwitchPut};
  EXPECT_EQ(form.switch_direct, use.adds_up || use.stores);
  for (Rank r : {Rank(1), Rank(2)})
    for (const KernelBlock& block : form.ranks[r].blocks)
      for (const KernelInstruction& i : block.instructions) {
        EXPECT_TRUE(!i.to || (i.send == DirectMode::kSwitchGet) == use.adds_up);
        EXPECT_TRUE(!i.from || (i.receive == DirectMode::kSwitchPut) == use.stores);
      }
  return use;
}

TEST(KernelForm, TheSwitchWorksOnBuffersWhereTheRootsOrderAllowsIt) {
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  // In place, too: the root takes what lies there before it sends what comes there.
  const Program program = OneRoot(collective);
  EXPECT_EQ(UseOf(program, collective), (SwitchUse{true, true}));
  const auto changed = [&](const auto& change) {
    Program other = program;
    change(other);
    return UseOf(other, collective);
  };
  // A member that reads its output's old contents, or writes its input's place itself, is not waited for.
  EXPECT_EQ(changed([](Program& p) {
              Threadblock& block = p.ranks[Rank(1)].threadblocks.emplace_back();
              block.instructions = {{Opcode::kCopy, 1, {}, {BufferKind::kOutput, 0}}};
            }),
            (SwitchUse{false, false}));
  // One scales and the other does not: the switch cannot.
  EXPECT_EQ(changed([](Program& p) { p.ranks[Rank(2)].threadblocks[0].instructions[0].first = false; }),
            (SwitchUse{false, false}));
  // With the sum in scratch there is no place that all ranks have.
  EXPECT_EQ(changed([](Program& p) {
              p.ranks[Rank(0)].scratch = {ChunkId(0)};
              p.ranks[Rank(0)].threadblocks[0].instructions[0].dst = {BufferKind::kScratch, 0};
            }),
            (SwitchUse{false, false}));
}

TEST(KernelSizes, ScratchRunsDoNotOverlap) {
  for (CollectiveKind kind : {CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter,
                              CollectiveKind::kReduce, CollectiveKind::kReduceScatterv}) {
    const Lowered lowered = Make(kind, 5, Algorithm::kTree);
    const KernelForm form = MakeKernelForm(lowered.program, lowered.collective).value();
    for (int64_t element : {1, 2, 4, 8}) {
      for (int64_t size : {0, 1, 7, 100, 1013, 65537}) {
        const CollectiveSizes sizes(lowered.collective, size * element, element);
        for (Rank r(0); r.value < 5; ++r.value) {
          const std::vector<int64_t> begins = ScratchRunBegins(form, sizes, r);
          const std::vector<ScratchRun>& runs = form.ranks[r].scratch;
          for (size_t k = 0; k < runs.size(); ++k) {
            const int64_t whole = sizes.PartElements(runs[k].part), total = runs[k].total;
            const int64_t elements = total == 0 ? 0
                                                : whole * (runs[k].before + runs[k].weight) / total -
                                                      whole * runs[k].before / total;
            EXPECT_LE(begins[k] + elements, begins[k + 1]);
            EXPECT_EQ(begins[k] * element % 16, 0);
          }
        }
      }
    }
  }
}

TEST(KernelSizes, MorePassesWhereAMessageDoesNotFit) {
  const Lowered lowered = Make(CollectiveKind::kAllgather, 2, Algorithm::kDirect);
  const KernelForm form = MakeKernelForm(lowered.program, lowered.collective).value();
  const CollectiveSizes sizes(lowered.collective, 1 << 20, 4);  // messages of 512 KiB
  const auto passes = [&](int64_t slot, Protocol protocol) {
    return KernelPasses(lowered.program, form, sizes, slot, protocol).value();
  };
  EXPECT_EQ(passes(1 << 20, Protocol::kSimple), 1);
  EXPECT_EQ(passes(1 << 20, Protocol::kLl), 1);
  EXPECT_GT(passes(1 << 18, Protocol::kLl), passes(1 << 18, Protocol::kSimple));
  EXPECT_EQ(KernelPasses(lowered.program, form, sizes, 16, Protocol::kSimple).ok(), false);
}

}  // namespace
}  // namespace xccl
