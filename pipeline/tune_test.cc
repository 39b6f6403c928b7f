#include "pipeline/tune.h"

#include <gtest/gtest.h>

#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

// Simulates programs on a known machine.
Measure On(const MachineModel& machine, const Topology& topology) {
  return [&machine, &topology](const LoweredProgram& lowered, int64_t size_bytes) -> StatusOr<double> {
    EXPECT_EQ(ToStatus(VerifyProgram(lowered.program, lowered.collective, topology)).message(), "");
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(lowered.program, lowered.collective, topology,
                                          {.size_bytes = size_bytes, .machine = &machine}));
    return static_cast<double>(simulation.time_ps) / 1e6;
  };
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
