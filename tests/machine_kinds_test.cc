// Machines of the kinds that people own, by every engine: verified, timed, lowered, run, damaged and
// repaired.
//   XCCL_LONG=1 draws fresh machines for ten minutes (XCCL_SECONDS=N for another time) and prints their
//   seeds. XCCL_SEED=N repeats one of them.
#include "tests/testing/machine_kinds.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "ir/bounds/bound.h"
#include "pipeline/pipeline.h"
#include "pipeline/repair.h"
#include "synth/engines.h"
#include "tests/testing/check.h"
#include "tests/testing/collectives.h"

namespace xccl::testing {
namespace {

std::optional<uint64_t> Number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return static_cast<uint64_t>(ParseInteger(text, 0, INT64_MAX).value());
}

// Plans with auto, then repairs the plan for a damaged machine. The pipeline verifies schedule and program.
void CheckRepair(const SynthesisRequest& request, Random& random) {
  PlanOptions options;
  options.request = request;
  options.lower = true;
  const StatusOr<PlanResult> whole = MakePlan(*request.topology, *request.collective, options);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const size_t cable = random.Below(request.topology->spec().links.size() / 2);
  const Topology damaged = WithDamage(*request.topology, cable, random.Below(2) == 0);
  if (!CheckReachable(damaged, *request.collective).ok()) return;
  const StatusOr<PlanResult> repaired =
      RepairPlan(whole->plan, "p.json", damaged, *request.collective, options);
  ASSERT_TRUE(repaired.ok()) << repaired.status().message();
  EXPECT_GE(repaired->simulation.time_ps, repaired->bound.bound_ps);
  EXPECT_GE(static_cast<double>(repaired->bound.bound_ps),
            static_cast<double>(whole->bound.bound_ps) * (1 - 1e-9) - 1);
}

// One collective of each kind, at one size, by every engine.
void CheckMachine(uint64_t seed, int32_t max_ranks, size_t collectives) {
  SCOPED_TRACE(fmt::format("XCCL_SEED={}", seed));
  Random random(seed);
  const Topology topology = MakeMachineOfKind(static_cast<int32_t>(seed % kMachineKinds), seed, max_ranks);
  const std::vector<Collective> all = AllCollectives(topology.num_ranks());
  for (size_t c = 0; c < collectives; ++c) {
    const Collective& collective = all[random.Below(all.size())];
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    request.size_bytes = int64_t{1} << (10 + random.Below(21));
    request.model = random.Below(4) == 0 ? TimeModel::kBlocking : TimeModel::kPipelined;
    request.seed = seed;
    CheckAllEngines(request);
    SCOPED_TRACE(Describe(collective) + " repaired");
    if (collective.kind() != CollectiveKind::kBarrier) CheckRepair(request, random);
  }
}

TEST(MachineKinds, EveryEngine) {
  if (LongRun() || Number("XCCL_SEED")) return;
  for (uint64_t seed = 0; seed < kMachineKinds; ++seed) CheckMachine(seed, 8, 1);
}

TEST(MachineKinds, FreshOnes) {
  if (const std::optional<uint64_t> seed = Number("XCCL_SEED")) return CheckMachine(*seed, 12, 3);
  if (!LongRun()) return;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(Number("XCCL_SECONDS").value_or(600));
  const uint64_t first = std::random_device()() * uint64_t{1000};
  uint64_t seed = first;
  for (; std::chrono::steady_clock::now() < end && !HasFailure(); ++seed) CheckMachine(seed, 12, 3);
  std::printf("machines with seeds %ju to %ju\n", static_cast<uintmax_t>(first),
              static_cast<uintmax_t>(seed - 1));
}

TEST(MachineKinds, AreTheSameForTheSameSeed) {
  for (int32_t kind = 0; kind < kMachineKinds; ++kind) {
    EXPECT_TRUE(MakeMachineOfKind(kind, 5, 16) == MakeMachineOfKind(kind, 5, 16));
    EXPECT_FALSE(MakeMachineOfKind(kind, 5, 16) == MakeMachineOfKind(kind, 6, 16));
    EXPECT_GE(MakeMachineOfKind(kind, 5, 16).num_ranks(), 4);
  }
}

}  // namespace
}  // namespace xccl::testing
