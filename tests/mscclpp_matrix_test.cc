// Library machines × collectives as execution plans of MSCCL++: every plan that is written is read again,
// proved and timed; every other names the limit. Without a machine's model, whose protocols MSCCL++ has not
// all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/interchange/foreign.h"
#include "ir/interchange/mscclpp_json.h"
#include "ir/interchange/mscclpp_read.h"
#include "ir/interchange/place.h"
#include "ir/lower/testing/checked.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kSize = 1 << 20;

struct Count {
  int32_t written = 0, refused = 0, alike = 0;
};

int64_t TimeOf(const LoweredProgram& lowered, const Topology& topology) {
  const StatusOr<Simulation> simulation =
      SimulateProgram(lowered.program, lowered.collective, topology, {.size_bytes = kSize});
  EXPECT_TRUE(simulation.ok()) << simulation.status().message();
  return simulation.ok() ? simulation->time_ps : 0;
}

void Check(const Topology& topology, CollectiveKind kind, Count& count) {
  const std::string name = topology.name() + " " + std::string(ToString(kind));
  SCOPED_TRACE(name);
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(kind)) spec.root = Rank(0);
  const StatusOr<Collective> collective = Collective::Create(spec);
  ASSERT_TRUE(collective.ok()) << collective.status().message();
  const StatusOr<Synthesis> made =
      (*FindEngine("auto"))
          ->Synthesize({.topology = &topology, .collective = &*collective, .size_bytes = kSize});
  ASSERT_TRUE(made.ok()) << made.status().message();
  const StatusOr<LoweredProgram> lowered =
      LowerFoldedChecked(made->schedule, made->collective, topology, {.size_bytes = kSize});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const StatusOr<MscclppJson> json =
      WriteMscclppJson(lowered->program, lowered->collective, {.domains = LoadStoreDomains(topology)});
  if (!json.ok()) {
    EXPECT_NE(json.status().message().find("; expected "), std::string::npos) << json.status().message();
    std::printf("%s: refused: %s\n", name.c_str(), json.status().message().c_str());
    ++count.refused;
    return;
  }
  ++count.written;
  const StatusOr<Imported> read = ReadMscclppJson(json->text, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const StatusOr<Plan> placed = PlaceOnMachine(*read, topology);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  const double ratio = static_cast<double>(TimeOf(*placed->program, topology)) /
                       static_cast<double>(TimeOf(*lowered, topology));
  if (std::abs(ratio - 1) <= 0.01)
    ++count.alike;
  else
    std::printf("%s: %.3f of the time\n", name.c_str(), ratio);
}

// Machines of a host: larger ones take minutes.
std::vector<std::string> SmallMachines() {
  constexpr int32_t kMostRanks = 8;
  std::vector<std::string> names;
  for (const std::string& name : LibraryNames())
    if (LoadTopology(name).value().num_ranks() <= kMostRanks) names.push_back(name);
  return names;
}

class MscclppMatrix : public testing::TestWithParam<std::string> {};

TEST_P(MscclppMatrix, MostPlansAreWrittenAndAllOfTheseAreRead) {
  const StatusOr<Topology> topology = LoadTopology(GetParam());
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  Count count;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAlltoall})
    Check(*topology, kind, count);
  const int32_t all = count.written + count.refused;
  std::printf("%d of %d written, %d of these within 1 %% of the plan's time\n", count.written, all,
              count.alike);
  // Switches that reduce without a multicast after it are what MSCCL++ lacks.
  const bool switches =
      std::ranges::any_of(topology->spec().nodes, [](const Node& node) { return node.multicast; });
  EXPECT_GE(count.written, switches ? 4 : all);
}

INSTANTIATE_TEST_SUITE_P(Library, MscclppMatrix, testing::ValuesIn(SmallMachines()), [](const auto& machine) {
  std::string name = machine.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace xccl
