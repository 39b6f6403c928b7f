#include "pipeline/measure/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/known_machines.h"
#include "ir/machine_model.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "topologies/load/load.h"
#include "topologies/topology.h"

namespace xccl {
namespace {

constexpr int64_t kGb = 1'000'000'000;

// Simulates programs on a known machine.
Measure On(const MachineModel& machine, const Topology& topology) {
  return [&machine, &topology](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<Measured> {
    EXPECT_LE(size_bytes, 16 << 20);
    EXPECT_EQ(ToStatus(VerifyProgram(lowered.program, lowered.collective, topology)).message(), "");
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(lowered.program, lowered.collective, topology,
                                          {.size_bytes = size_bytes, .machine = &machine}));
    return Measured{PsToUs(simulation.time_ps)};
  };
}

// A machine whose constants differ from all of the known ones'.
MachineModel MadeUp() {
  MachineModel machine;
  machine.name = "made up";
  machine.launch_ps = 7 * kPsPerUs;
  machine.hand_off_ps = 3'300'000;
  machine.nvlink_bytes_per_s = 333 * kGb;
  machine.nic_per_mille = 800;
  machine.nic_hop_ps = 4'100'000;
  machine.switch_per_mille = 600;
  machine.protocols[0] = {.hop_ps = 900'000,
                          .message_ps = 1'100'000,
                          .block_bytes_per_s = 90 * kGb,
                          .read_bytes_per_s = 150 * kGb};
  machine.protocols[1] = {.hop_ps = 50'000,
                          .message_ps = 250'000,
                          .block_bytes_per_s = 12 * kGb,
                          .read_bytes_per_s = 9 * kGb,
                          .data_bytes = 8,
                          .wire_bytes = 16};
  machine.protocols[2] = {.hop_ps = 150'000,
                          .message_ps = 0,
                          .block_bytes_per_s = 55 * kGb,
                          .read_bytes_per_s = 60 * kGb,
                          .data_bytes = 120,
                          .wire_bytes = 128};
  return machine;
}

// The parts of a topology beside GPUs and their links.
struct Parts {
  bool nics = false, multicasts = false;
  bool third_gpu = true;
};

void ExpectNear(int64_t found, int64_t expected, double relative, const std::string& what) {
  EXPECT_NEAR(static_cast<double>(found), static_cast<double>(expected),
              relative * static_cast<double>(expected) + 2'000)  // 2 ns
      << what;
}

// `nvlink_bytes_per_s`: 0 where the topology says less than the machine's.
void ExpectFound(const MachineModel& found, const MachineModel& machine, int64_t nvlink_bytes_per_s,
                 const Parts& parts) {
  ExpectNear(found.launch_ps, machine.launch_ps, 0, "launch");
  ExpectNear(found.hand_off_ps, machine.hand_off_ps, 0, "hand-off");
  ExpectNear(found.nvlink_bytes_per_s, nvlink_bytes_per_s, 0.001, "NVLinks");
  EXPECT_EQ(found.nic_per_mille, parts.nics ? machine.nic_per_mille : 1000);
  ExpectNear(found.nic_hop_ps, parts.nics ? machine.nic_hop_ps : 0, 0, "hop of NICs");
  EXPECT_NEAR(found.switch_per_mille, parts.multicasts ? machine.switch_per_mille : 1000, 1);
  for (size_t p = 0; p < kNumProtocols; ++p) {
    const std::string of = " of protocol " + std::to_string(p);
    const ProtocolCost &is = found.protocols[p], &was = machine.protocols[p];
    ExpectNear(is.hop_ps, was.hop_ps, 0, "hop" + of);
    ExpectNear(is.message_ps, was.message_ps, 0, "message" + of);
    ExpectNear(is.block_bytes_per_s, was.block_bytes_per_s, 0.001, "threadblock" + of);
    ExpectNear(is.read_bytes_per_s, parts.third_gpu ? was.read_bytes_per_s : 0, 0.001, "reads" + of);
    EXPECT_EQ(is.data_bytes, was.data_bytes);
    EXPECT_EQ(is.wire_bytes, was.wire_bytes);
  }
}

TEST(MeasureMachine, FindsEveryConstantOfEveryMachine) {
  const struct {
    std::string topology;
    int64_t nvlink_bytes_per_s;  // of all of a GPU's
    Parts parts;
  } topologies[] = {
      {"dgx-h100", 450 * kGb, {.multicasts = true}},
      {"rail-2", 450 * kGb, {.nics = true, .multicasts = true}},
      {"full-mesh:4@bandwidth=150GB/s", 450 * kGb, {}},
      {"full-mesh:4", 3 * 25 * kGb, {}},  // its links are slower than threadblocks
      {"nvswitch:4@bandwidth=18GB/s", 18 * kGb, {}},
      {"nvswitch:2@bandwidth=900GB/s", 900 * kGb, {.third_gpu = false}},
  };
  for (const auto& c : topologies) {
    const Topology topology = LoadTopology(c.topology).value();
    for (const MachineModel& machine : {AmpereModel(), HopperModel(), BlackwellModel(), MadeUp()}) {
      SCOPED_TRACE(c.topology + " " + machine.name);
      const MeasuredMachine measured =
          MeasureMachine(topology, "a test", true, On(machine, topology)).value();
      const MachineModel& found = measured.model;
      EXPECT_EQ(found.source, "a test");
      EXPECT_EQ(measured.doubt, "");
      ExpectFound(found, machine,
                  machine.nvlink_bytes_per_s < c.nvlink_bytes_per_s ? machine.nvlink_bytes_per_s : 0,
                  c.parts);
    }
  }
}

// Two hosts with so many GPUs on PCIe, and a NIC each.
Topology Hosts(int32_t gpus_of_a_host) {
  TopologySpec spec;
  spec.name = "hosts";
  spec.hosts = {{"a"}, {"b"}};
  const auto add = [&](NodeKind kind, int32_t id, int32_t host) {
    spec.nodes.push_back({kind, std::to_string(id), HostId(host), false, false});
    return NodeId(static_cast<int32_t>(spec.nodes.size()) - 1);
  };
  const auto join = [&](NodeId a, NodeId b, int64_t gb_per_s, int64_t latency_ps) {
    spec.links.push_back({a, b, gb_per_s * kGb, latency_ps, 0});
    spec.links.push_back({b, a, gb_per_s * kGb, latency_ps, 0});
  };
  std::vector<NodeId> nics;
  for (int32_t host : {0, 1}) {
    std::vector<NodeId> gpus;
    for (int32_t g = 0; g < gpus_of_a_host; ++g) gpus.push_back(add(NodeKind::kGpu, g, host));
    const NodeId cpu = add(NodeKind::kCpu, 0, host);
    nics.push_back(add(NodeKind::kNic, 0, host));
    for (const NodeId gpu : gpus) join(gpu, cpu, 30, 400'000);
    join(cpu, nics.back(), 30, 100'000);
  }
  join(nics[0], nics[1], 25, 1'300'000);
  return Topology::Create(spec).value();
}

TEST(MeasureMachine, TakesNicsThatAllMessagesPassForTheHop) {
  const Topology topology = Hosts(1);
  MachineModel machine = MadeUp();
  const MachineModel found = MeasureMachine(topology, "a test", false, On(machine, topology)).value().model;
  EXPECT_EQ(found.nic_hop_ps, 0);
  EXPECT_EQ(found.nic_per_mille, 800);
  for (const size_t p : {0, 1, 2})
    ExpectNear(found.protocols[p].hop_ps, machine.protocols[p].hop_ps + machine.nic_hop_ps, 0, "hop");
  ExpectNear(found.launch_ps, machine.launch_ps, 0, "launch");
}

TEST(MeasureMachine, DoesNotTakeNicsForPcie) {
  const Topology topology = Hosts(2);
  MachineModel machine = MadeUp();
  // As it is found without NVLinks: nothing has LL128.
  machine.nvlink_bytes_per_s = 0;
  machine.protocols[2] = machine.protocols[0];
  const MachineModel found = MeasureMachine(topology, "a test", true, On(machine, topology)).value().model;
  ExpectFound(found, machine, 0, {.nics = true});
}

// Executors refuse LL128 over PCIe; the model takes simple's figures for it.
TEST(MeasureMachine, LeavesLl128OutWhereGpusAreJoinedByPcie) {
  const Topology topology = Hosts(3);
  int32_t calls = 0;
  const Measure measure = [&](const LoweredProgram& lowered, int64_t) -> StatusOr<Measured> {
    EXPECT_NE(lowered.program.protocol, Protocol::kLl128);
    return Measured{static_cast<double>(++calls)};
  };
  const MachineModel found = MeasureMachine(topology, "a test", true, measure).value().model;
  EXPECT_EQ(found.protocols[2], found.protocols[0]);
  // On CPU threads all protocols are alike.
  std::vector<Protocol> seen;
  const Measure sees = [&](const LoweredProgram& lowered, int64_t) -> StatusOr<Measured> {
    seen.push_back(lowered.program.protocol);
    return Measured{1.0};
  };
  const MachineModel alike = MeasureMachine(topology, "a test", false, sees).value().model;
  EXPECT_NE(std::ranges::find(seen, Protocol::kLl128), seen.end());
  EXPECT_EQ(alike.protocols[2].wire_bytes, 1);
}

// The rate of all threadblocks together is then no rate of a link.
TEST(MeasureMachine, DoesNotSeeLinksThatAreFasterThanThreadblocks) {
  const Topology topology = LoadTopology("nvswitch:4@bandwidth=2000GB/s").value();
  MachineModel machine = HopperModel();
  machine.nvlink_bytes_per_s = 0;
  ExpectFound(MeasureMachine(topology, "a test", true, On(machine, topology)).value().model, machine, 0, {});
}

TEST(MeasureMachine, FindsNothingWhereTheMachineAddsNothing) {
  const MachineModel nothing;
  for (const char* name : {"nvswitch:2", "full-mesh:3", "dgx-h100", "rail-2"}) {
    SCOPED_TRACE(name);
    const Topology topology = LoadTopology(name).value();
    MachineModel found = MeasureMachine(topology, "", false, On(nothing, topology)).value().model;
    for (ProtocolCost& cost : found.protocols) {
      EXPECT_LE(cost.message_ps + cost.hop_ps, 1'000);  // 16 bytes on a link
      cost.message_ps = cost.hop_ps = 0;
      // At least as fast as the links.
      if (cost.block_bytes_per_s >= topology.link(LinkId(0)).bandwidth_bytes_per_s * 0.99)
        cost.block_bytes_per_s = 0;
      cost.read_bytes_per_s = 0;  // of members that come one after the other
    }
    EXPECT_LE(found.launch_ps, 1'000);
    EXPECT_LE(found.nic_hop_ps, 1'000);
    found.launch_ps = found.nic_hop_ps = 0;
    EXPECT_EQ(found, nothing);
  }
}

// Every measured value is within what a machine.json may have, whatever the times are.
TEST(MeasureMachine, StaysWithinItsBoundsWhereTimesAreNoise) {
  const std::string file = std::string(testing::TempDir()) + "/machine.json";
  std::mt19937_64 random(1);
  const MachineModel hopper = HopperModel();
  for (const char* name : {"nvswitch:2", "full-mesh:3", "rail-2"}) {
    const Topology topology = LoadTopology(name).value();
    const Measure simulated = On(hopper, topology);
    for (const double most : {1e-6, 0.3, 1.0, 1000.0}) {
      for (int32_t i = 0; i < 20; ++i) {
        const Measure noisy = [&](const LoweredProgram& lowered, int64_t size) -> StatusOr<Measured> {
          XCCL_ASSIGN_OR_RETURN(Measured measured, simulated(lowered, size));
          measured.us *= std::uniform_real_distribution<>(1 - std::min(1.0, most), 1 + most)(random);
          return measured;
        };
        const MachineModel found = MeasureMachine(topology, "noise", true, noisy).value().model;
        ASSERT_EQ(WriteMachineModel(found, file), OkStatus());
        EXPECT_EQ(ReadMachineModel(file).value(), found);
        EXPECT_NEAR(static_cast<double>(found.hand_off_ps), 1e6, most < 0.1 ? 1e3 : 1e18);
      }
    }
  }
}

// A GPU that cannot answer has nothing to be measured by.
TEST(MeasureMachine, LeavesAllAtNothingWhereNoMessageComesBack) {
  TopologySpec spec;
  spec.name = "one way";
  spec.nodes = {{NodeKind::kGpu, "0", {}, false, false}, {NodeKind::kGpu, "1", {}, false, false}};
  spec.links = {{NodeId(0), NodeId(1), 20 * kGb, 1'000'000, 0}};
  const Topology topology = Topology::Create(spec).value();
  const MachineModel hopper = HopperModel();
  MachineModel nothing;
  nothing.source = "a test";
  EXPECT_EQ(MeasureMachine(topology, "a test", true, On(hopper, topology)).value().model, nothing);
}

TEST(MeasureMachine, DoubtsWhatNoiseMade) {
  const Topology topology = LoadTopology("full-mesh:4").value();
  const MachineModel hopper = HopperModel();
  const Measure simulated = On(hopper, topology);
  // Every program takes as long as every other.
  const Measure equal = [](const LoweredProgram&, int64_t) -> StatusOr<Measured> {
    return Measured{50, 0.1};
  };
  EXPECT_EQ(
      MeasureMachine(topology, "a test", false, equal).value().doubt,
      "measurements vary by 10 %; the model is not reliable: hop 0us; half of its times differ from the "
      "measured ones by over 169 %; expected at most 50 %");
  const Measure noisy = [&](const LoweredProgram& lowered, int64_t size) -> StatusOr<Measured> {
    XCCL_ASSIGN_OR_RETURN(Measured measured, simulated(lowered, size));
    measured.spread = 0.34;
    return measured;
  };
  EXPECT_EQ(MeasureMachine(topology, "a test", false, noisy).value().doubt,
            "measurements vary by 34 %; the model is not reliable: a spread above 20 %");
}

TEST(MeasureMachine, FailsAsARunFails) {
  const Topology topology = LoadTopology("rail-2").value();
  const MachineModel hopper = HopperModel();
  const Measure simulated = On(hopper, topology);
  for (int32_t fails_at = 0;; ++fails_at) {
    int32_t calls = 0;
    const Measure measure = [&](const LoweredProgram& lowered, int64_t size) -> StatusOr<Measured> {
      if (calls++ == fails_at) return LimitReached("rank 1 died");
      return simulated(lowered, size);
    };
    const StatusOr<MeasuredMachine> found = MeasureMachine(topology, "", true, measure);
    if (found.ok()) {
      EXPECT_EQ(calls, fails_at);
      EXPECT_LE(calls, 45);
      break;
    }
    EXPECT_EQ(found.status().message(), "rank 1 died");
  }
}

}  // namespace
}  // namespace xccl
