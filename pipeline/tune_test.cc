#include "pipeline/tune.h"

#include <gtest/gtest.h>

#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

// A line of ranks whose links take no time of their own, so the measurement is the machine's.
Topology Quick(int32_t ranks) {
  return LoadTopology("full-mesh:" + std::to_string(ranks) + "@bandwidth=1000000GB/s,latency=0ns").value();
}

// Simulates programs on a known machine; connections get the link that joins their ends.
Measure On(const MachineModel& machine, const Topology& topology) {
  return [&machine, &topology](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<double> {
    Program program = lowered.program;
    for (Connection& connection : program.connections)
      for (const LinkId l : topology.Out(topology.NodeOf(connection.src)))
        if (topology.link(l).to == topology.NodeOf(connection.dst)) connection.path = {l};
    EXPECT_EQ(ToStatus(VerifyProgram(program, lowered.collective, topology)).message(), "");
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(program, lowered.collective, topology,
                                          {.size_bytes = size_bytes, .machine = &machine}));
    return static_cast<double>(simulation.time_ps) / 1e6;
  };
}

TEST(MeasureMachine, FindsWhatTheMachineIs) {
  MachineModel machine;
  machine.launch_ps = 5'000'000;
  machine.protocols[0] = {.hop_ps = 3'000'000, .message_ps = 2'000'000, .block_bytes_per_s = 40'000'000'000};
  machine.protocols[1] = {.hop_ps = 600'000, .block_bytes_per_s = 18'000'000'000};
  machine.protocols[2] = {.hop_ps = 1'900'000, .block_bytes_per_s = 36'000'000'000};
  for (const int32_t ranks : {3, 4, 9}) {
    const Topology topology = Quick(ranks);
    const MachineModel found = MeasureMachine(topology, "a test", true, On(machine, topology)).value();
    EXPECT_EQ(found.source, "a test");
    for (size_t p = 0; p < kNumProtocols; ++p)
      EXPECT_NEAR(static_cast<double>(found.protocols[p].hop_ps),
                  static_cast<double>(machine.protocols[p].hop_ps), 2'000)
          << p;
    EXPECT_NEAR(static_cast<double>(found.protocols[0].message_ps), 2'000'000, 2'000);
    EXPECT_NEAR(static_cast<double>(found.launch_ps), 5'000'000, 2'000);
    // A message passes a sender and a receiver, one after the other.
    EXPECT_NEAR(static_cast<double>(found.protocols[0].block_bytes_per_s), 20e9, 1e8);
    EXPECT_EQ(found.protocols[1].wire_bytes, 16);
    EXPECT_EQ(found.protocols[2].data_bytes, 120);
  }
}

// Executors refuse LL128 over PCIe; the model takes simple's figures for it.
TEST(MeasureMachine, LeavesLl128OutWhereGpusAreJoinedByPcie) {
  TopologySpec spec;
  spec.name = "pcie";
  for (const char* id : {"0", "1", "2"}) spec.nodes.push_back({NodeKind::kGpu, id, {}, false, false});
  spec.nodes.push_back({NodeKind::kCpu, "numa0", {}, false, false});
  for (int32_t r : {0, 1, 2})
    for (const bool up : {true, false})
      spec.links.push_back({NodeId(up ? r : 3), NodeId(up ? 3 : r), 20'000'000'000, 1'000'000, 0});
  const Topology topology = Topology::Create(spec).value();
  int32_t calls = 0;
  const Measure measure = [&](const LoweredProgram& lowered, int64_t) -> StatusOr<double> {
    EXPECT_NE(lowered.program.protocol, Protocol::kLl128);
    return ++calls;
  };
  const MachineModel found = MeasureMachine(topology, "a test", true, measure).value();
  EXPECT_EQ(found.protocols[2], found.protocols[0]);
  // On CPU threads all protocols are alike.
  EXPECT_TRUE(MeasureMachine(topology, "a test", false, [](const LoweredProgram&, int64_t) {
                return StatusOr<double>(1.0);
              }).ok());
}

TEST(Tune, ServesEverySizeByWhatRanFastest) {
  const Topology topology = LoadTopology("dgx1").value();
  TuneRequest request;
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllgather;
  spec.ranks = AllRanks(8);
  request.collectives = {Collective::Create(spec).value()};
  request.sizes_bytes = {1 << 10, 1 << 16, 1 << 28};
  // Each size is served by a plan made for it, or by an equally good one, as predicted.
  const MachineModel links;
  const Tuned tuned = Tune({&topology, 1}, request, On(links, topology)).value();
  ASSERT_EQ(tuned.rows.size(), 3u);
  for (const TunedRow& row : tuned.rows) EXPECT_DOUBLE_EQ(row.measured_us, row.predicted_us);
  ASSERT_GE(tuned.entries.size(), 2u);
  EXPECT_EQ(tuned.entries.size(), tuned.plans.size());
  EXPECT_EQ(tuned.entries.front().min_bytes, 0);
  EXPECT_EQ(tuned.entries.back().max_bytes, std::nullopt);
  for (size_t e = 1; e < tuned.entries.size(); ++e)
    EXPECT_EQ(tuned.entries[e].min_bytes, *tuned.entries[e - 1].max_bytes + 1);
  EXPECT_EQ(tuned.entries.front().file, "allgather-1KiB.plan.json");
  // On a machine where all plans take the same time the first serves all sizes.
  const Tuned one = Tune({&topology, 1}, request, [](const LoweredProgram&, int64_t) -> StatusOr<double> {
                      return 7.0;
                    }).value();
  EXPECT_EQ(one.entries.size(), 1u);
  // A run that fails makes the whole fail.
  const StatusOr<Tuned> none =
      Tune({&topology, 1}, request,
           [](const LoweredProgram&, int64_t) -> StatusOr<double> { return LimitReached("rank 1 died"); });
  EXPECT_EQ(none.status().message(), "rank 1 died");
}

}  // namespace
}  // namespace xccl
