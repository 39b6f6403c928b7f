// The plans that auto picks on a known machine, beside what people write by hand: one-shot, two-shot, ring,
// tree and multicast, each by every protocol, in any number of instances and passes that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/known_machines.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "pipeline/pipeline.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kKib = 1 << 10, kMib = 1 << 20, kGib = 1 << 30;
// Smaller messages leave most threads of a block idle, which the model's rates do not know.
constexpr int64_t kLeastBytes = kKib;
// A program is replaced by a less plain one only where that gains a fiftieth.
constexpr double kPlainer = 1.02;

Collective Allreduce(int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(ranks);
  return Collective::Create(std::move(spec)).value();
}

class MachinePlans : public ::testing::Test {
 protected:
  PlanOptions Options(const std::string& engine, int64_t size_bytes) const {
    PlanOptions options;
    options.engine = engine;
    options.request.size_bytes = size_bytes;
    options.lower = true;
    options.machine = hopper_;
    return options;
  }
  // The fastest of all ways to run a program at this size.
  int64_t ByHand(const LoweredProgram& written, int64_t size_bytes) const {
    LoweredProgram by_hand = written;
    size_t blocks = 1;
    for (const RankProgram& rank : written.program.ranks) blocks = std::max(blocks, rank.threadblocks.size());
    const int64_t chunk = CollectiveSizes(written.collective, size_bytes).LargestChunkBytes();
    const bool switches = std::ranges::any_of(written.program.groups, HasSwitch);
    int64_t best = INT64_MAX;
    for (const Protocol protocol : {Protocol::kSimple, Protocol::kLl, Protocol::kLl128})
      for (const int32_t instances : {1, 2, 4, 8, 16})
        for (const int32_t passes : {1, 2, 4, 8, 32}) {
          if ((switches && protocol != Protocol::kSimple) ||
              (instances > 1 && static_cast<size_t>(instances) * blocks > kDefaultBlocks) ||
              (instances * passes > 1 && chunk / (instances * passes) < kLeastBytes))
            continue;
          by_hand.program.protocol = protocol;
          by_hand.program.instances = instances;
          by_hand.program.segment_bytes = instances * passes == 1 ? 0 : chunk / (instances * passes);
          const auto simulation = SimulateProgram(by_hand.program, by_hand.collective, topology_,
                                                  {.size_bytes = size_bytes, .machine = &hopper_});
          EXPECT_EQ(simulation.status(), OkStatus());
          if (simulation.ok()) best = std::min(best, simulation->time_ps);
        }
    return best;
  }

  const Topology topology_ = LoadTopology("dgx-h100").value();
  const MachineModel hopper_ = HopperModel();
};

TEST_F(MachinePlans, AutoIsNoSlowerThanWhatIsWrittenByHand) {
  const Collective collective = Allreduce(8);
  struct Written {
    const char* engine;
    int64_t size_bytes;  // that the schedule is made for
  };
  for (const int64_t size : {kKib, 8 * kKib, 64 * kKib, 512 * kKib, 4 * kMib, 64 * kMib, kGib}) {
    const auto chosen = MakePlan(topology_, collective, Options("auto", size));
    ASSERT_EQ(chosen.status(), OkStatus());
    for (const Written& written :
         {Written{"direct", kKib}, Written{"direct", 64 * kMib}, Written{"ring", size}, Written{"tree", size},
          Written{"multicast", size}}) {
      const auto plan = MakePlan(topology_, collective, Options(written.engine, written.size_bytes));
      ASSERT_EQ(plan.status(), OkStatus());
      const int64_t by_hand = ByHand(*plan->plan.program, size);
      EXPECT_LE(static_cast<double>(*chosen->program_time_ps), kPlainer * static_cast<double>(by_hand))
          << size << " bytes: " << chosen->plan.made_by.engine << " beside " << written.engine << " of "
          << plan->schedule_stats.steps << " steps";
    }
  }
}

// On ideal links direct is the fastest plan of mi300x. Its messages cost more than they save on the machine,
// so the program of a plan that takes four times as long there is faster.
TEST(AmdPlans, AutoIsNoSlowerThanTheProgramOfAnyEngine) {
  for (const std::string name : {"mi300x", "mi250x"}) {
    const Topology topology = LoadTopology(name).value();
    const Collective collective = Allreduce(topology.num_ranks());
    PlanOptions options{.lower = true, .machine_of_topology = true};
    options.request.size_bytes = kMib;
    const int64_t chosen_ps = *MakePlan(topology, collective, options)->program_time_ps;
    for (const Engine& engine : AllEngines()) {
      if (engine.asks_others || engine.searches_long) continue;
      options.engine = engine.name;
      const auto plan = MakePlan(topology, collective, options);
      if (!plan.ok() || !plan->program_time_ps) continue;
      EXPECT_LE(static_cast<double>(chosen_ps), kPlainer * static_cast<double>(*plan->program_time_ps))
          << name << " " << engine.name;
    }
  }
}

}  // namespace
}  // namespace xccl
