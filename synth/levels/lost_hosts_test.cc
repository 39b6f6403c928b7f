// Plans of machines that lack hosts: the compressed form beside the plain one, over all hosts of small
// machines, and refusals.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/damaged.h"
#include "ir/lower/lower_ranks.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/slowed.h"
#include "ir/testing/check_runs.h"
#include "ir/translated.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/compose.h"
#include "synth/common/reverse.h"
#include "synth/common/test_machines.h"
#include "synth/levels/around.h"
#include "synth/levels/check_part.h"
#include "synth/levels/damaged_machine.h"
#include "synth/levels/levels.h"
#include "synth/levels/levels_engine.h"
#include "synth/levels/send.h"
#include "topologies/failures.h"
#include "topologies/load/load.h"
#include "topologies/submachine.h"
#include "topologies/whole.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

using ::testing::HasSubstr;
using testing::SpecOf;

constexpr CollectiveKind kServed[] = {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                      CollectiveKind::kAllreduce, CollectiveKind::kAlltoall};

// Pods of hosts of two GPUs on rails, with a core as wide as a share of the pods' links.
std::string RailsXml(int32_t pods, int32_t hosts, int32_t gb_per_s) {
  return fmt::format(R"(<topology name="rails:{0}x{1}">
  <cluster hosts="{0}" name="pod">
    <cluster hosts="{1}">
      <nvswitch gpus="2" bandwidth="450GB/s" latency="500ns"/>
      <nic id="nic" count="2"/>
      <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s" latency="0ns"/>
      <fabric type="rails" bandwidth="50GB/s" latency="1300ns" spines="2" uplink-latency="300ns"
              oversubscription="1"/>
    </cluster>
    <fabric id="core" type="switch" bandwidth="{2}GB/s" latency="300ns"/>
  </cluster>
</topology>)",
                     pods, hosts, gb_per_s);
}

// Racks whose trays share an NVSwitch, in units with a rail for each GPU of a tray.
constexpr std::string_view kRacksXml = R"(<topology name="racks">
  <cluster hosts="2" name="su">
    <cluster hosts="2" name="rack">
      <cluster hosts="4" name="tray">
        <gpu count="2"/>
        <nic id="nic" count="2"/>
        <link from="gpu:*" to="nvswitch" bandwidth="900GB/s" latency="500ns"/>
        <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s" latency="0ns"/>
      </cluster>
      <switch id="nvswitch"/>
    </cluster>
    <switch id="rail" count="2"/>
    <link from="*/nic0" to="rail0" bandwidth="50GB/s" latency="1300ns"/>
    <link from="*/nic1" to="rail1" bandwidth="50GB/s" latency="1300ns"/>
    <fabric id="core" type="switch" attach="rail*" bandwidth="400GB/s" latency="300ns"/>
  </cluster>
</topology>)";

struct Kind {
  std::string name;
  Topology machine;
};
std::vector<Kind> AllKinds() {
  const auto xml = [](std::string_view text) { return ReadNativeXml(std::string(text), "test").value(); };
  return {{"rails", xml(RailsXml(4, 4, 400))},
          {"rails with a thin core", xml(RailsXml(3, 5, 100))},
          {"racks", xml(kRacksXml)},
          {"leaf-spine", LoadTopology("leaf-spine:4x4x4").value()},
          {"leaf-spine of many hosts", LoadTopology("leaf-spine:3x2x8").value()},
          {"fat tree", LoadTopology("fat-tree:k=4").value()}};
}

// The machine without hosts, and without cables that are drawn.
Topology Without(const Topology& whole, const std::vector<int32_t>& hosts, int32_t cables = 0,
                 uint64_t seed = 0) {
  std::vector<Rank> left;
  for (int32_t r = 0; r < whole.num_ranks(); ++r)
    if (std::ranges::find(hosts, whole.HostOf(Rank(r)).value) == hosts.end()) left.emplace_back(r);
  const Topology machine = MembersAlone(whole, left).topology;
  return cables == 0 ? machine : FailCables(machine, cables, seed, {}).value().topology;
}

Collective All(CollectiveKind kind, const Topology& topology) {
  return *Collective::Create(SpecOf(kind, AllRanks(topology.num_ranks())));
}

// A machine that lacks something, and its compressed plans.
struct Lacking : DamagedMachine {
  using DamagedMachine::DamagedMachine;

  Collective Cut(CollectiveKind kind, int32_t chunks) const {
    return All(kind, machine)
        .WithChunks(chunks * (kind == CollectiveKind::kAllreduce ? machine.num_ranks() : 1));
  }

  // `most_peers` of a level: with fewer, levels are of fewer and longer messages; 0: one level. In an
  // alltoall of more levels, ranks of other hosts may have to pass on what the lost ones would.
  StatusOr<Schedule> Plan(const Collective& collective, int64_t bytes, int64_t most_peers) const {
    const bool joins_levels = collective.kind() == CollectiveKind::kAlltoall && most_peers > 1;
    const Collective of_whole = WholeOf(missing, collective, whole).value();
    const auto send = [&](const Topology& direction) {
      const SymmetryGroup same = SymmetryGroup::Create(direction, group.generators()).value();
      const LevelFinder finder(direction, same);
      std::vector<int64_t> ends = finder.Ends(most_peers);
      if (most_peers == 0) ends = {same.order()};
      Levels levels = *finder.Make(ends, "levels");
      // As the engine does, so that no byte takes a link twice.
      for (size_t i = levels.size() - 1; joins_levels && i-- > 0;)
        if (ShareLinks(levels[i], levels[i + 1], same))
          ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(i));
      levels = *finder.Make(ends, "levels");
      return SendOverLevels(levels, direction, same, of_whole, bytes);
    };
    std::optional<Schedule> sums, made;
    if (IsReduction(collective.kind()))
      sums = Reverse(send(ReverseTopology(whole)), whole, of_whole, TransferOp::kReduce);
    if (collective.kind() == CollectiveKind::kReduceScatter)
      made = *sums;
    else
      made = sums ? Compose(*sums, send(whole)) : send(whole);
    XCCL_RETURN_IF_ERROR(LeadAround(*made, missing, machine, whole, group, collective, bytes, "levels"));
    return *made;
  }
};

// The estimate of a large machine's time, by its columns, over that of the plain form, which is exact.
double EstimateOverExact(const Lacking& lacking, const Schedule& compressed, const Schedule& plain,
                         const Collective& collective, int64_t bytes) {
  const Collective of_whole = WholeOf(lacking.missing, collective, lacking.whole).value();
  const int64_t of_all_bytes = WholeSizeBytes(collective, of_whole, bytes);
  const SlowedMachine slowed =
      SlowedOf(compressed, CollectiveSizes(of_whole, of_all_bytes), lacking.machine,
               Translations::Create(compressed, collective, lacking.machine).value());
  Schedule whole = compressed;
  whole.missing = {};
  whole.detours.clear();
  whole.ways.clear();
  whole = *Expand(whole, of_whole, lacking.whole);
  const int64_t estimate_ps = std::max(
      slowed.least_ps, Simulate(whole, of_whole, slowed.topology, {.size_bytes = of_all_bytes}).time_ps);
  const int64_t exact_ps = Simulate(plain, collective, lacking.machine, {.size_bytes = bytes}).time_ps;
  return static_cast<double>(estimate_ps) / static_cast<double>(exact_ps);
}

// True of an alltoall in which a lost rank would have to pass on what ranks that are there send to each
// other.
bool IsPassedOn(const StatusOr<Schedule>& made) {
  return !made.ok() &&
         made.status().message().find("would pass on what other hosts send") != std::string::npos;
}

void ExpectRight(const Topology& machine, int64_t most_peers, int32_t chunks) {
  const Lacking lacking(machine);
  ASSERT_FALSE(lacking.missing.hosts.empty());
  ASSERT_TRUE(lacking.group.IsTransitive());
  for (const CollectiveKind kind : kServed) {
    SCOPED_TRACE(std::string(ToString(kind)));
    const Collective collective = lacking.Cut(kind, chunks);
    const int64_t bytes = int64_t{machine.num_ranks()} << 20;
    const StatusOr<Schedule> made = lacking.Plan(collective, bytes, most_peers);
    if (IsPassedOn(made)) continue;
    const Schedule& compressed = *made;
    ASSERT_EQ(ToStatus(VerifySchedule(compressed, collective, machine)).message(), "");
    const Schedule plain = *Expand(compressed, collective, machine);
    EXPECT_TRUE(plain.missing.empty() && plain.ways.empty());
    EXPECT_EQ(ToStatus(VerifySchedule(plain, collective, machine)).message(), "");
    EXPECT_EQ(ExpandedTransfers(compressed, collective, machine), plain.size());
    // Where translates share links, the estimate is one of the columns alone.
    if (!Translations::Create(compressed, collective, machine)->KeepApart(compressed.paths)) continue;
    const double ratio = EstimateOverExact(lacking, compressed, plain, collective, bytes);
    EXPECT_GE(ratio, 0.85);
    EXPECT_LE(ratio, 1.2);
  }
}

// Rails without two hosts and one cable, of those cables that are not the only one of a NIC.
std::vector<Topology> RailsWithoutCables() {
  const Topology whole = AllKinds().front().machine;
  std::vector<Topology> machines;
  for (uint64_t seed = 1; machines.size() < 4; ++seed) {
    Topology machine = Without(whole, {3, 9}, 1, seed);
    const Collective collective = All(CollectiveKind::kAllgather, machine);
    SynthesisRequest request;
    request.topology = &machine;
    request.collective = &collective;
    request.size_bytes = 1 << 20;
    if (LevelsEngine().Synthesize(request).ok()) machines.push_back(std::move(machine));
  }
  return machines;
}

TEST(LostHosts, EveryHostOfSmallMachinesMayBeLost) {
  for (const Kind& kind : AllKinds())
    for (int32_t host = 0; host < kind.machine.num_hosts(); ++host)
      for (const int64_t most_peers : {int64_t{1} << 30, int64_t{1}}) {
        SCOPED_TRACE(fmt::format("{} without host {}, {} peers", kind.name, host, most_peers));
        ExpectRight(Without(kind.machine, {host}), most_peers, 1);
      }
}

TEST(LostHosts, SeveralHostsAndCablesMayBeLost) {
  const std::vector<Kind> kinds = AllKinds();
  for (const Kind& kind : kinds)
    for (int32_t other = 1; other < kind.machine.num_hosts(); ++other) {
      SCOPED_TRACE(fmt::format("{} without hosts 0 and {}", kind.name, other));
      // Too much would be missing of the smallest machine.
      const Topology machine = Without(kind.machine, {0, other});
      if (FindMissingLinks(machine)) ExpectRight(machine, 1 << 30, 1);
    }
  for (const Topology& machine : RailsWithoutCables()) ExpectRight(machine, 1 << 30, 2);
}

// Plans of the engine, which are compressed on so many ranks.
TEST(LostHosts, PlansOfLargerMachinesAreNearTheBound) {
  const Topology machine = Without(ReadNativeXml(RailsXml(8, 24, 1200), "test").value(), {0, 30, 100}, 0);
  for (const CollectiveKind kind : kServed)
    for (const int64_t bytes : {int64_t{1} << 30, int64_t{1} << 22}) {
      SCOPED_TRACE(fmt::format("{}, {} bytes", ToString(kind), bytes));
      const Collective collective = All(kind, machine);
      SynthesisRequest request;
      request.topology = &machine;
      request.collective = &collective;
      request.size_bytes = bytes;
      const StatusOr<Synthesis> made = LevelsEngine().Synthesize(request);
      ASSERT_TRUE(made.ok()) << made.status().message();
      ASSERT_TRUE(HasLostHosts(made->schedule));
      EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, machine)).message(), "");
      const Bound bound = *LowerBound(machine, collective, bytes, request.model);
      const int64_t time_ps =
          Simulate(made->schedule, made->collective, machine, {.size_bytes = bytes}).time_ps;
      EXPECT_GE(time_ps, bound.bound_ps);
      if (bytes > 1 << 25) {
        EXPECT_LE(static_cast<double>(time_ps), 1.2 * static_cast<double>(bound.bound_ps));
      }
    }
}

// Collectives of one root have no blocks that translations move.
TEST(LostHosts, OtherCollectivesAreRefused) {
  const Topology machine = Without(AllKinds().front().machine, {3});
  SynthesisRequest request;
  request.topology = &machine;
  request.size_bytes = 1 << 20;
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    const Collective collective = All(kind, machine);
    request.collective = &collective;
    EXPECT_EQ(LevelsEngine().Synthesize(request).status().message(),
              fmt::format("levels: ranks that differ; expected ranks that are all alike in a {}",
                          collective.name()));
  }
}

// The hosts of a pod are two levels, so that a rank passes on what it gets for the other half of its pod.
TEST(LostHosts, RanksPassOnTheirOwnHostsDataInAnAlltoall) {
  const Lacking lacking(Without(AllKinds().front().machine, {3}));
  const Collective alltoall = lacking.Cut(CollectiveKind::kAlltoall, 1);
  EXPECT_TRUE(lacking.Plan(alltoall, 1 << 20, 1 << 30).ok());
  EXPECT_THAT(lacking.Plan(alltoall, 1 << 20, 1).status().message(),
              HasSubstr("would pass on what other hosts send"));
}

// Faults that a wrong file can have.
TEST(LostHosts, WrongPlansAreRefused) {
  const Lacking lacking(Without(AllKinds().front().machine, {3}));
  const Topology& machine = lacking.machine;
  const Collective allreduce = lacking.Cut(CollectiveKind::kAllreduce, 1);
  const Schedule right = *lacking.Plan(allreduce, 1 << 20, 1 << 30);
  ASSERT_FALSE(right.ways.empty());
  const auto refusal_of = [&](const Collective& collective, const std::function<void(Schedule&)>& change) {
    Schedule schedule = right;
    change(schedule);
    return std::string(ToStatus(VerifySchedule(schedule, collective, machine)).message());
  };
  const auto refusal = [&](const std::function<void(Schedule&)>& change) {
    return refusal_of(allreduce, change);
  };
  const int32_t links = machine.num_links(), ranks = machine.num_ranks();
  EXPECT_EQ(refusal([](Schedule&) {}), "");
  EXPECT_EQ(refusal([](Schedule& s) { s.missing.hosts = {HostId(99)}; }),
            "[S8] missing: lost host like 99; hosts are 0..14");
  EXPECT_THAT(refusal([](Schedule& s) { s.missing.hosts.clear(); }), HasSubstr("[S8] missing: "));
  EXPECT_THAT(refusal([](Schedule& s) { s.missing.hosts.push_back(HostId(0)); }),
              HasSubstr("[S1] schedule.chunks"));
  // A host that hangs below other switches than the one that is lost.
  EXPECT_THAT(refusal([](Schedule& s) {
                for (Link& link : s.missing.lost)
                  for (NodeId* const end : {&link.from, &link.to})
                    if (*end == s.missing.lost.back().to) *end = s.missing.lost.front().to;
              }),
              HasSubstr("[S"));
  EXPECT_THAT(refusal([](Schedule& s) { s.ways.clear(); }),
              HasSubstr("expected one of the columns, or a way"));
  EXPECT_THAT(refusal([](Schedule& s) { s.ways.clear(); }), HasSubstr("[S9] step "));
  EXPECT_EQ(refusal([](Schedule& s) { s.ways[0].clear(); }), "[S9] way 0: has no links");
  EXPECT_EQ(refusal([&](Schedule& s) { s.ways[0][0] = LinkId(links); }),
            fmt::format("[S9] way 0: has link {}; expected links 0..{}", links, links - 1));
  EXPECT_THAT(refusal([](Schedule& s) { s.ways[0].pop_back(); }), HasSubstr("expected ranks"));
  EXPECT_THAT(refusal([](Schedule& s) { s.ways[0].erase(s.ways[0].begin() + 1); }),
              HasSubstr("which ends elsewhere"));
  EXPECT_THAT(refusal_of(All(CollectiveKind::kBroadcast, machine), [](Schedule&) {}),
              HasSubstr("[S9] hosts: lost hosts in a plan of broadcast; expected allgather"));
  std::vector<Rank> some = AllRanks(ranks);
  some.pop_back();
  EXPECT_EQ(refusal_of(*Collective::Create(SpecOf(CollectiveKind::kAllgather, some)), [](Schedule&) {}),
            fmt::format("[S9] hosts: {} of {} ranks; expected all, since hosts are lost", ranks - 1, ranks));
  // Ranks 0 and 1 send their sums to each other, too: a plan, but no tree.
  const Collective gather = lacking.Cut(CollectiveKind::kAllgather, 1);
  Schedule twice = *lacking.Plan(gather, 1 << 20, 1 << 30);
  const Transfer first = twice.at(0);
  twice.Add({first.first, 1, first.src, first.dst, first.path, TransferOp::kCopy, twice.num_steps()});
  EXPECT_EQ(
      ToStatus(VerifySchedule(twice, gather, machine)).message(),
      fmt::format("[S9] chunk {}: rank {} is sent a copy of it 2 times; expected 1, since hosts are lost",
                  first.first.value, first.dst.value));
}

// Rank 0 sends what is for rank 2 to rank 4, too, which may be lost while both ends are there.
TEST(LostHosts, AnAlltoallThatLostRanksWouldPassOnIsRefused) {
  const Lacking lacking(Without(AllKinds().front().machine, {3}));
  const Collective alltoall = lacking.Cut(CollectiveKind::kAlltoall, 1);
  Schedule wrong = *lacking.Plan(alltoall, 1 << 20, 1 << 30);
  ASSERT_EQ(ToStatus(VerifySchedule(wrong, alltoall, lacking.machine)).message(), "");
  for (int64_t t = 0, all = wrong.size(); t < all; ++t)
    if (wrong.src[t] == Rank(0) && wrong.dst[t] == Rank(4))
      wrong.Add({ChunkId(2), 1, Rank(0), Rank(4), wrong.path[t], TransferOp::kCopy, wrong.num_steps()});
  EXPECT_THAT(std::string(ToStatus(VerifySchedule(wrong, alltoall, lacking.machine)).message()),
              HasSubstr("passes it on, and so would lost rank 30 of the whole machine"));
}

TEST(LostHosts, AnAlltoallHasNoWays) {
  const Lacking lacking(Without(AllKinds().front().machine, {3}));
  const Collective alltoall = lacking.Cut(CollectiveKind::kAlltoall, 1);
  Schedule wrong = *lacking.Plan(alltoall, 1 << 20, 1 << 30);
  wrong.ways.emplace_back(wrong.paths[PathId(0)].begin(), wrong.paths[PathId(0)].end());
  EXPECT_EQ(ToStatus(VerifySchedule(wrong, alltoall, lacking.machine)).message(),
            "[S9] ways: an alltoall has no heirs; expected none");
}

// Any one transfer that is left out or sent elsewhere is found, as in the plain form.
TEST(LostHosts, EveryTransferCounts) {
  const Lacking lacking(Without(AllKinds().front().machine, {3}));
  for (const CollectiveKind kind : kServed) {
    const Collective collective = lacking.Cut(kind, 1);
    const Schedule right = *lacking.Plan(collective, 1 << 20, 1 << 30);
    for (int64_t t = 0; t < right.size(); ++t) {
      Schedule wrong = right;
      for (auto* column : {&wrong.count, &wrong.step}) column->erase(column->begin() + t);
      wrong.first.erase(wrong.first.begin() + t);
      wrong.src.erase(wrong.src.begin() + t);
      wrong.dst.erase(wrong.dst.begin() + t);
      wrong.path.erase(wrong.path.begin() + t);
      wrong.op.erase(wrong.op.begin() + t);
      EXPECT_FALSE(VerifySchedule(wrong, collective, lacking.machine).empty()) << t;
    }
  }
}

// The parts of all ranks together are a program of the plan that is written out.
void ExpectLowered(const Topology& machine, int64_t most_peers, int32_t chunks) {
  const Lacking lacking(machine);
  for (const CollectiveKind kind : kServed) {
    SCOPED_TRACE(std::string(ToString(kind)));
    const Collective collective = lacking.Cut(kind, chunks);
    const int64_t bytes = int64_t{machine.num_ranks()} << 16;
    StatusOr<Schedule> made = lacking.Plan(collective, bytes, most_peers);
    if (IsPassedOn(made)) continue;
    Plan plan{machine, collective, *std::move(made), std::nullopt, {}};
    const StatusOr<RankLowering> lowering = RankLowering::Create(plan.schedule, collective, machine, bytes);
    ASSERT_TRUE(lowering.ok()) << lowering.status().message();
    plan.program = LoweredProgram{collective, lowering->ProgramOf(AllRanks(machine.num_ranks()))};
    ASSERT_EQ(ToStatus(VerifyPlan(plan)).message(), "");
    CheckRuns(plan.program->program, collective,
              {.size_bytes = 7 * int64_t{4} * machine.num_ranks() * machine.num_ranks()});
    for (int32_t r = 0; r < machine.num_ranks(); r += 5) CheckPart(*lowering, plan.program->program, Rank(r));
  }
}

TEST(LostHosts, RanksAreLoweredAlone) {
  for (const Kind& kind : AllKinds())
    for (int32_t host = 0; host < kind.machine.num_hosts(); host += 3)
      for (const int64_t most_peers : {int64_t{1} << 30, int64_t{1}}) {
        SCOPED_TRACE(fmt::format("{} without host {}, {} peers", kind.name, host, most_peers));
        ExpectLowered(Without(kind.machine, {host}), most_peers, most_peers == 1 ? 2 : 1);
        if (HasFailure()) return;
      }
  for (const Topology& machine : RailsWithoutCables()) ExpectLowered(machine, 1 << 30, 1);
}

// Each damaged link carries as much in paths without their ends as in whole paths, of which there are more.
TEST(LostHosts, PathsWithoutTheirEndsCarryAllBytes) {
  TopologySpec spec = Without(AllKinds().front().machine, {3, 9}).spec();
  const auto is_switch = [&](NodeId n) { return spec.nodes[n.index()].kind == NodeKind::kSwitch; };
  const Link failed =
      *std::ranges::find_if(spec.links, [&](const Link& l) { return is_switch(l.from) && is_switch(l.to); });
  std::erase_if(spec.links, [&](const Link& l) {
    return std::minmax(l.from, l.to) == std::minmax(failed.from, failed.to);
  });
  const Lacking lacking(Topology::Create(std::move(spec)).value());
  const Collective alltoall = lacking.Cut(CollectiveKind::kAlltoall, 1);
  const Schedule plan = *lacking.Plan(alltoall, 1 << 20, 1 << 30);
  const CollectiveSizes sizes(WholeOf(lacking.missing, alltoall, lacking.whole).value(), 1 << 20);
  const PathKinds kinds = PathKindsOf(plan.paths, lacking.whole, lacking.group);
  const std::vector<double> bytes = BytesOfKinds(plan, sizes, kinds);
  const Detours detours(lacking.whole, lacking.missing, plan.detours);
  const auto loads = [&](EndLinks ends, int64_t& paths) {
    std::map<int32_t, double> by_link;
    ForEachDamaged(kinds, bytes, detours, lacking.missing, lacking.whole, lacking.group, ends,
                   [&](std::vector<LinkId>& path, double of_path) {
                     ++paths;
                     for (const LinkId l : path)
                       if (detours.IsDamaged(l)) by_link[l.value] += of_path;
                   });
    return by_link;
  };
  int64_t kept = 0, cut = 0;
  const std::map<int32_t, double> of_whole_paths = loads(EndLinks::kKept, kept);
  EXPECT_EQ(of_whole_paths.size(), 2);
  EXPECT_EQ(loads(EndLinks::kCut, cut), of_whole_paths);
  EXPECT_LT(cut, kept);
}

// In one level every rank sends to all others, and lost ranks leave nothing to take over.
TEST(LostHosts, LeavesNeedNoHeirs) {
  const Topology machine = Without(LoadTopology("leaf-spine:4x4x4").value(), {5, 6});
  ExpectRight(machine, 0, 2);
  ExpectLowered(machine, 0, 2);
}

}  // namespace
}  // namespace xccl
