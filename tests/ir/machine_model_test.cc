#include "ir/machine_model.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/simulate_program.h"
#include "ir/testing/graphs.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

constexpr int64_t kUs = 1'000'000;

TEST(MachineModel, CountsWireAndTime) {
  const MachineModel model = HopperModel();
  EXPECT_EQ(model.CostOf(Protocol::kSimple).WireBytes(1000), 1000);
  EXPECT_EQ(model.CostOf(Protocol::kLl).WireBytes(1000), 2000);
  EXPECT_EQ(model.CostOf(Protocol::kLl128).WireBytes(120), 128);
  EXPECT_EQ(model.CostOf(Protocol::kLl128).WireBytes(121), 130);  // 129.07
  EXPECT_EQ(model.CostOf(Protocol::kLl).BlockPs(18'000), kUs);
  EXPECT_EQ(ProtocolCost{}.BlockPs(1 << 30), 0);
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
  EXPECT_EQ(*read, HopperModel());
  ASSERT_EQ(WriteMachineModel(*read, path_), OkStatus());
  EXPECT_EQ(ReadFile(path_).value(), text_);
}

TEST_F(MachineFile, RejectsWhatIsNotAMachine) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"\"format\":1", "\"format\":2", ": format: version 2; this program reads version 1"},
      {"\"launch_ps\":3000000", "\"launch_ps\":-1", ": launch_ps: -1; expected 0..1000000000000000"},
      {"\"ll\":", "\"ll64\":", ": protocols: unknown key 'll64'"},
      {"\"wire_bytes\":128", "\"wire_bytes\":100",
       ": protocols.ll128.wire_bytes: 100; expected 120..1048576"},
      {"\"launch_ps\"", "\"launch\"", ": unknown key 'launch'"},
  };
  for (const Case& c : cases) {
    std::string text = text_;
    const size_t at = text.find(c.from);
    ASSERT_NE(at, text.npos) << c.from;
    std::ofstream(path_, std::ios::trunc) << text.replace(at, std::string_view(c.from).size(), c.to);
    EXPECT_EQ(ReadMachineModel(path_).status().message(), path_ + c.message);
  }
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
