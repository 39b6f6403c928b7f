#include "ir/machine_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "ir/known_machines.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate_program.h"
#include "ir/testing/graphs.h"
#include "ir/testing/programs.h"
#include "topologies/load/load.h"
#include "topologies/topology.h"

namespace xccl {
namespace {

constexpr int64_t kUs = 1'000'000;

TEST(MachineModel, CountsWireAndTime) {
  const MachineModel model = HopperModel();
  EXPECT_EQ(model.CostOf(Protocol::kSimple).WireBytes(1000), 1000);
  EXPECT_EQ(model.CostOf(Protocol::kLl).WireBytes(1000), 2000);
  EXPECT_EQ(model.CostOf(Protocol::kLl128).WireBytes(120), 128);
  EXPECT_EQ(model.CostOf(Protocol::kLl128).WireBytes(121), 130);  // 129.07
  EXPECT_EQ(model.CostOf(Protocol::kLl).BlockPs(18'350), kUs);
  EXPECT_EQ(ProtocolCost{}.BlockPs(1 << 30), 0);
  EXPECT_EQ(
      (ProtocolCost{.block_bytes_per_s = 1'000'000'000, .read_bytes_per_s = 2'000'000'000}.FanInPs(1000, 4)),
      2 * kUs);
  EXPECT_EQ(ProtocolCost{.block_bytes_per_s = 1'000'000'000}.FanInPs(1000, 4), 4 * kUs);
  EXPECT_EQ(ProtocolCost{}.FanInPs(1 << 30, 8), 0);
  EXPECT_EQ(model.CostOf(Protocol::kLl).WireBytes(INT64_MAX), INT64_MAX);
}

class MachineFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/machine.json";
    ASSERT_EQ(WriteMachineModel(HopperModel(), path_), OkStatus());
    text_ = ReadFile(path_).value();
  }
  std::string path_, text_;
};

TEST_F(MachineFile, ReadsBackToTheSameValueAndText) {
  const StatusOr<MachineModel> read = ReadMachineModel(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  MachineModel unnamed = HopperModel();
  unnamed.name.clear();
  EXPECT_EQ(*read, unnamed);
  ASSERT_EQ(WriteMachineModel(*read, path_), OkStatus());
  EXPECT_EQ(ReadFile(path_).value(), text_);
}

TEST_F(MachineFile, RejectsWhatIsNotAMachine) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"\"format\":2", "\"format\":3", ": format: version 3; this program reads versions 1 to 2"},
      {"\"format\":2", "\"format\":1",
       ": unknown key 'hand_off_ps'; expected format, source, launch_ps or protocols"},
      {"\"launch_ps\":2500000", "\"launch_ps\":-1", ": launch_ps: -1; expected 0..1000000000000000"},
      {"\"hand_off_ps\":1000000", "\"hand_off_ps\":-1", ": hand_off_ps: -1; expected 0..1000000000000000"},
      {"\"nic_per_mille\":970", "\"nic_per_mille\":1001", ": nic_per_mille: 1001; expected 1..1000"},
      {"\"message_ps\":2000000", "\"message_ps\":-1",
       ": protocols.simple.message_ps: -1; expected 0..1000000000000000"},
      {"\"ll\":", "\"ll64\":", ": protocols: unknown key 'll64'; expected simple, ll or ll128"},
      {"\"wire_bytes\":128", "\"wire_bytes\":100",
       ": protocols.ll128.wire_bytes: 100; expected 120..1048576"},
      {"\"launch_ps\"", "\"launch\"", ": unknown key 'launch'; did you mean 'launch_ps'?"},
  };
  for (const Case& c : cases) {
    std::string text = text_;
    const size_t at = text.find(c.from);
    ASSERT_NE(at, text.npos) << c.from;
    std::ofstream(path_, std::ios::trunc) << text.replace(at, std::string_view(c.from).size(), c.to);
    EXPECT_EQ(ReadMachineModel(path_).status().message(), path_ + c.message);
  }
}

TEST_F(MachineFile, ReadsTheFirstFormat) {
  std::ofstream(path_, std::ios::trunc)
      << R"({"format":1, "source":"old", "launch_ps":7, "protocols":{)"
         R"("simple":{"hop_ps":1, "block_bytes_per_s":2, "data_bytes":1, "wire_bytes":1},)"
         R"("ll":{"hop_ps":3, "block_bytes_per_s":4, "data_bytes":8, "wire_bytes":16},)"
         R"("ll128":{"hop_ps":5, "block_bytes_per_s":6, "data_bytes":120, "wire_bytes":128}}})";
  const StatusOr<MachineModel> read = ReadMachineModel(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  MachineModel expected;
  expected.source = "old";
  expected.launch_ps = 7;
  expected.protocols = {{{.hop_ps = 1, .block_bytes_per_s = 2},
                         {.hop_ps = 3, .block_bytes_per_s = 4, .data_bytes = 8, .wire_bytes = 16},
                         {.hop_ps = 5, .block_bytes_per_s = 6, .data_bytes = 120, .wire_bytes = 128}}};
  EXPECT_EQ(*read, expected);
}

TEST(KnownMachines, ByNameAndByArchitecture) {
  for (const std::string_view name : KnownMachineNames()) EXPECT_TRUE(KnownMachine(name)) << name;
  EXPECT_EQ(KnownMachine("hopper2"), std::nullopt);
  const struct {
    const char* arch;
    std::optional<MachineModel> model;
  } cases[] = {
      {"sm80", AmpereModel()},     {"sm90", HopperModel()},  {"sm100", BlackwellModel()},
      {"sm120", BlackwellModel()}, {"sm70", std::nullopt},   {"sm", std::nullopt},
      {"sm90a", std::nullopt},     {"sm103", Gb300Model()},  {"gfx942", Mi300xModel()},
      {"gfx90a", Mi250xModel()},   {"gfx908", std::nullopt}, {"", std::nullopt},
  };
  for (const auto& c : cases) EXPECT_EQ(MachineOfArch(c.arch), c.model) << c.arch;
  EXPECT_EQ(KnownMachine("b200"), BlackwellModel());
}

// A plan file keeps a model by its name.
TEST(KnownMachines, KeepTheirNames) {
  for (const std::string_view name : KnownMachineNames()) {
    const MachineModel model = KnownMachine(name).value();
    EXPECT_EQ(model.name, name == "b200" ? "blackwell" : name);
    EXPECT_EQ(KnownMachine(model.name), model);
    EXPECT_NE(model.source.find("tuning tables"), std::string::npos) << name;
  }
}

// A hop of RCCL's ring is a link of the library's machine, 0.7 us, and what a message adds to it.
TEST(KnownMachines, OfAmdHaveTheHopsAndLinksOfRccl) {
  const struct {
    MachineModel model;
    int64_t simple_ps, ll128_ps, link_bytes_per_s;
  } cases[] = {{Mi250xModel(), 36 * kUs / 10, 22 * kUs / 10, 36'000'000'000},
               {Mi300xModel(), 21 * kUs / 10, 12 * kUs / 10, 48'000'000'000}};
  for (const auto& c : cases) {
    const auto hop_ps = [&](Protocol protocol) {
      const ProtocolCost& cost = c.model.CostOf(protocol);
      return 7 * kUs / 10 + cost.hop_ps + cost.message_ps;
    };
    EXPECT_EQ(hop_ps(Protocol::kSimple), c.simple_ps) << c.model.name;
    EXPECT_EQ(hop_ps(Protocol::kLl128), c.ll128_ps) << c.model.name;
    EXPECT_EQ(c.model.nvlink_bytes_per_s, 7 * c.link_bytes_per_s) << c.model.name;
    const Topology machine = LoadTopology(c.model.name).value();
    const std::vector<int64_t> reached = ReachedBandwidths(machine, c.model);
    for (int32_t l = 0; l < machine.num_links(); ++l) {
      const Link& link = machine.link(LinkId(l));
      if (!machine.IsGpu(link.from) || !machine.IsGpu(link.to)) continue;
      const int64_t peak = c.model.name == "mi250x" ? 50 : 64;  // of an xGMI link, in GB/s
      EXPECT_EQ(reached[static_cast<size_t>(l)],
                link.bandwidth_bytes_per_s / (peak * 1'000'000'000) * c.link_bytes_per_s)
          << c.model.name << " link " << l;
    }
  }
}

// A GPU on an NVSwitch and a NIC, whose own link goes to a network's switch.
TEST(ReachedBandwidths, NvlinksHaveWhatAllOfAGpuReachAndNicsTheirShare) {
  const auto gb = [](int64_t value) { return value * 1'000'000'000; };
  TopologySpec spec;
  spec.name = "hosts";
  spec.nodes = {{NodeKind::kGpu, "0", {}},
                {NodeKind::kGpu, "1", {}},
                {NodeKind::kSwitch, "nvswitch", {}},
                {NodeKind::kNic, "nic", {}},
                {NodeKind::kSwitch, "fabric", {}}};
  const auto link = [&](int32_t from, int32_t to, int64_t bandwidth) {
    spec.links.push_back({NodeId(from), NodeId(to), gb(bandwidth), 0, 0});
  };
  link(0, 2, 300);  // with the next one 400 out of GPU 0
  link(0, 1, 100);
  link(2, 1, 100);  // 200 into GPU 1
  link(1, 2, 150);
  link(1, 3, 50);
  link(3, 4, 50);
  const Topology topology = Topology::Create(spec).value();
  MachineModel model;
  EXPECT_EQ(ReachedBandwidths(topology, model),
            (std::vector{gb(300), gb(100), gb(100), gb(150), gb(50), gb(50)}));
  model.nvlink_bytes_per_s = gb(160);
  model.nic_per_mille = 900;
  EXPECT_EQ(ReachedBandwidths(topology, model),
            (std::vector{gb(120), gb(40), gb(80), gb(150), gb(45), gb(45)}));
}

// Rank 0 sends 1000 bytes to rank 1 over 1 GB/s and 500 ns.
struct OneSend {
  Topology topology = testing::MakeGraph("pair", 2, 0, {{0, 1, 1, 500, 0}});
  Collective collective = [] {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kSendrecv;
    spec.ranks = {Rank(0), Rank(1)};
    spec.pairs = {{Rank(0), Rank(1)}};
    return Collective::Create(spec).value();
  }();
  Program program = [this] {
    Schedule schedule;
    schedule.num_chunks = 1;
    schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), std::vector{LinkId(0)}, TransferOp::kCopy, 0);
    return LowerChecked(schedule, collective, topology, {.size_bytes = 1000}).value();
  }();
  int64_t TimeUnder(const MachineModel* machine) const {
    return SimulateProgram(program, collective, topology, {.size_bytes = 1000, .machine = machine})
        .value()
        .time_ps;
  }
};

TEST(SimulateOnMachine, AddsLaunchHopFlagsAndTheThreadblocksOwnTime) {
  OneSend one;
  const int64_t links = one.TimeUnder(nullptr);
  EXPECT_EQ(links, 1500'000);
  MachineModel machine;
  EXPECT_EQ(one.TimeUnder(&machine), links);  // adds nothing
  machine.launch_ps = 3 * kUs;
  EXPECT_EQ(one.TimeUnder(&machine), links + 3 * kUs);
  machine.protocols[0] = {.hop_ps = 2 * kUs, .data_bytes = 1, .wire_bytes = 2};
  EXPECT_EQ(one.TimeUnder(&machine), links + 3 * kUs + 2 * kUs + kUs);  // 1000 bytes more on the wire
  // The sender takes 4 us; the receiver starts when all has arrived and takes as long.
  machine.protocols[0] = {.block_bytes_per_s = 250'000'000};
  EXPECT_EQ(one.TimeUnder(&machine), 3 * kUs + 4 * kUs + 500'000 + 4 * kUs);
  // A message holds either of them for 2 us more.
  machine.protocols[0].message_ps = 2 * kUs;
  EXPECT_EQ(one.TimeUnder(&machine), 3 * kUs + 6 * kUs + 500'000 + 6 * kUs);
}

// Threadblock 1 of a rank copies what threadblock 0 has copied.
TEST(SimulateOnMachine, WhatWaitsForAnotherThreadblockGoesOnOneHandOffLater) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.root = Rank(0);
  spec.ranks = {Rank(0)};
  const Collective collective = Collective::Create(spec).value();
  const Topology topology = testing::MakeGraph("one", 1, 0, {});
  Program program;
  program.ranks.resize(1);
  Instruction copy{
      .op = Opcode::kCopy, .count = 1, .src = {BufferKind::kInput, 0}, .dst = {BufferKind::kOutput, 0}};
  Threadblock first, second;
  first.instructions = {copy};
  copy.dep_count = 1;
  second.instructions = {copy};
  program.ranks[Rank(0)].threadblocks = {first, second};
  program.dependencies = {{0, 0}};
  MachineModel machine;
  machine.protocols[0].block_bytes_per_s = 1'000'000'000;
  const auto time = [&] {
    return SimulateProgram(program, collective, topology, {.size_bytes = 1000, .machine = &machine})
        .value()
        .time_ps;
  };
  EXPECT_EQ(time(), 2 * kUs);
  machine.hand_off_ps = 5 * kUs;
  EXPECT_EQ(time(), 7 * kUs);
  // One instance makes two passes: the hand-off of pass 1 overlaps that of pass 0, so its time does not add
  // up.
  program.segment_bytes = 512;
  EXPECT_EQ(time(), 512'000 + 5 * kUs + 512'000 + 488'000);
}

// Every rank adds up the values of the three other ranks, and its own.
TEST(SimulateOnMachine, AFanInReadsEveryOperandAndCostsOneMessage) {
  const Topology topology = FullMesh(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 4);
  Schedule schedule;
  schedule.num_chunks = 1;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    schedule.Add(ChunkId(0), 1, *topology.RankOf(link.from), *topology.RankOf(link.to),
                 std::vector{LinkId(l)}, TransferOp::kReduce, 0);
  }
  const Program program = LowerChecked(schedule, collective, topology, {.size_bytes = 1000}).value();
  ASSERT_EQ(program.groups.size(), 4u);
  ASSERT_EQ(program.groups[0].kind, Group::Kind::kFanIn);
  MachineModel machine;
  const auto time = [&] {
    return SimulateProgram(program, collective, topology, {.size_bytes = 1000, .machine = &machine})
        .value()
        .time_ps;
  };
  EXPECT_EQ(time(), 520'000);
  machine.protocols[0].read_bytes_per_s = 1'000'000'000;
  EXPECT_EQ(time(), 520'000 + 4 * kUs);
  machine.protocols[0].message_ps = 2 * kUs;
  EXPECT_EQ(time(), 2 * kUs + 500'000 + 2 * kUs + 4 * kUs);
}

TEST(LowerForMachine, ChoosesTheProtocolForTheSize) {
  const Topology topology = OneSwitch(4);
  const Collective collective = MakeCollective(CollectiveKind::kAllgather, 4);
  const Schedule schedule = *HandSchedule(Algorithm::kDirect, collective, topology);
  const MachineModel machine = HopperModel();
  const auto protocol = [&](int64_t size_bytes) {
    return LowerChecked(schedule, collective, topology, {.size_bytes = size_bytes, .machine = &machine})
        .value()
        .protocol;
  };
  EXPECT_EQ(protocol(256), Protocol::kLl);
  EXPECT_EQ(protocol(64 << 20), Protocol::kSimple);
  EXPECT_EQ(LowerChecked(schedule, collective, topology, {.size_bytes = 256}).value().protocol,
            Protocol::kSimple);
}

TEST(LowerForMachine, KeepsToTheThreadblocksThatAreAllowed) {
  const Topology topology = FullMesh(8);
  const Collective collective = MakeCollective(CollectiveKind::kBroadcast, 8);
  const Schedule schedule = *HandSchedule(Algorithm::kTree, collective, topology);
  const auto lowered = [&](int32_t most) {
    return LowerChecked(schedule, collective, topology, {.size_bytes = 64 << 20, .max_blocks = most});
  };
  const auto blocks = [&](int32_t most) {
    const StatusOr<Program> program = lowered(most);
    XCCL_CHECK(program.ok());
    return Stats(*program, CollectiveSizes(collective, 1024)).threadblocks;
  };
  const int32_t one = blocks(512) / lowered(512).value().instances;
  ASSERT_GE(blocks(512), 2 * one);
  for (const int32_t most : {one, 2 * one - 1, 2 * one, 3 * one}) EXPECT_LE(blocks(most), most);
  EXPECT_EQ(lowered(one - 1).status().message(),
            "lower: " + std::to_string(one) + " threadblocks on a rank; expected at most " +
                std::to_string(one - 1) + "; hint: --max-ctas=" + std::to_string(one));
}

}  // namespace
}  // namespace xccl
