// Programs for other executors: which are taken, what is said of them, and that their simulated times are
// those of the files, read back and put on the machine.
#include "pipeline/lower_for_executor.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "interchange/import.h"
#include "interchange/place.h"
#include "ir/known_machines.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/pipeline.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

struct Case {
  std::string topology;
  CollectiveKind kind;
  int64_t size_bytes;
  std::string engine = std::string(kDefaultEngine);
  bool on_machine = false;  // with the model of the topology's GPUs
};

std::string NameOf(const Case& c) {
  return fmt::format("{} {} {}", c.topology, ToString(c.kind), c.size_bytes);
}

Plan PlanOf(const Case& c) {
  const Topology topology = LoadTopology(c.topology).value();
  CollectiveSpec spec;
  spec.kind = c.kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(c.kind)) spec.root = Rank(0);
  PlanOptions options{.engine = c.engine, .lower = true, .machine_of_topology = c.on_machine};
  options.request.size_bytes = c.size_bytes;
  return MakePlan(topology, Collective::Create(spec).value(), options).value().plan;
}

int64_t TimeOf(const LoweredProgram& lowered, const Plan& plan) {
  const std::optional<MachineModel> machine = KnownMachine(plan.made_by.machine);
  return SimulateProgram(lowered.program, lowered.collective, plan.topology,
                         {.size_bytes = plan.made_by.size_bytes,
                          .model = plan.made_by.model,
                          .machine = machine ? &*machine : nullptr})
      .value()
      .time_ps;
}

int64_t TimeOfFile(const std::string& text, const Plan& plan) {
  const Imported read =
      ReadForeign(text, {.collective = plan.collective.kind(), .root = plan.collective.spec().root}).value();
  return TimeOf(*PlaceOnMachine(read, plan.topology).value().program, plan);
}

TEST(LowerForExecutor, AProgramOfFewSlotsStays) {
  const Plan plan = PlanOf({"torus:4", CollectiveKind::kAllgather, 1 << 20});
  const ExecutorProgram lowered = LowerFor(MscclXmlOptions(), plan).value();
  EXPECT_EQ(lowered.lowered, *plan.program);
  EXPECT_EQ(lowered.warnings, std::vector<std::string>());
}

TEST(LowerForExecutor, TimesAreThoseOfThePlansMachine) {
  const Plan plan =
      PlanOf({"dgx-h100", CollectiveKind::kReduceScatter, 256 << 10, "direct", /*on_machine=*/true});
  const MscclXmlOptions options{.name = "a"};
  const ExecutorProgram lowered = LowerFor(options, plan).value();
  const MscclXml xml = WriteMscclXml(lowered.lowered.program, lowered.lowered.collective, options).value();
  const std::string slower = fmt::format(
      "at 256KiB it is slower than the plan: {} instead of {}, as simulated",
      FormatDurationShort(TimeOfFile(xml.text, plan)), FormatDurationShort(TimeOf(*plan.program, plan)));
  ASSERT_FALSE(lowered.warnings.empty());
  EXPECT_EQ(lowered.warnings.back(), slower);
}

TEST(LowerForExecutor, AProgramThatIsMuchSlowerWithFewSlotsIsReplaced) {
  const Plan plan = PlanOf({"mesh:4", CollectiveKind::kAlltoall, 3 << 10});
  const ExecutorProgram lowered = LowerFor(MscclXmlOptions{.target = MscclTarget::kMsccl}, plan).value();
  EXPECT_LE(lowered.lowered.program.slots, kMscclSimpleSlots);
  ASSERT_EQ(lowered.warnings.size(), 1u);
  EXPECT_TRUE(lowered.warnings[0].starts_with(
      "it is another program of the plan's schedule, for 2 slots: the plan's own takes "))
      << lowered.warnings[0];
}

TEST(LowerForExecutor, AProgramThatWaitsInACircleWithFewSlotsIsReplaced) {
  const Plan plan = PlanOf({"torus:4", CollectiveKind::kAllreduce, 64 << 20, "bfb"});
  const ExecutorProgram lowered = LowerFor(MscclXmlOptions{.name = "a"}, plan).value();
  ASSERT_EQ(lowered.warnings.size(), 2u);
  EXPECT_EQ(
      lowered.warnings[0],
      "it is another program of the plan's schedule, for 2 slots: a: waits in a circle with 2 chunks "
      "under way on a connection, which is what executor has in protocol Simple; expected a program that "
      "needs no more, not 8 slots");
  EXPECT_TRUE(lowered.warnings[1].starts_with("at 64MiB it is slower than the plan: "))
      << lowered.warnings[1];
}

TEST(LowerForExecutor, ThePlansOwnRefusalIsTheError) {
  const Plan plan = PlanOf({"full-mesh:4", CollectiveKind::kGather, 1 << 20});
  const StatusOr<ExecutorProgram> lowered = LowerFor(MscclXmlOptions{.name = "g"}, plan);
  EXPECT_EQ(
      lowered.status().message(),
      "g: gather; expected allreduce, allgather, reduce_scatter, alltoall, broadcast or reduce: executor "
      "selects no others");
}

TEST(LowerForExecutor, SimulatedTimesAreThoseOfTheFilesReadBack) {
  for (const char* const topology :
       {"torus:4", "mesh:4", "torus:3x3", "hypercube:3", "full-mesh:4", "nvswitch:5"})
    for (const CollectiveKind kind :
         {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
          CollectiveKind::kAlltoall, CollectiveKind::kBroadcast})
      for (const int64_t size_bytes : {int64_t{3} << 10, int64_t{1} << 20, int64_t{64} << 20}) {
        const Case c{topology, kind, size_bytes};
        const Plan plan = PlanOf(c);
        const LoweredProgram& own = *plan.program;
        const MscclXmlOptions xml_options;
        if (const StatusOr<MscclXml> xml = WriteMscclXml(own.program, own.collective, xml_options);
            xml.ok()) {
          const LoweredProgram as_run = AsRunByMsccl(own.program, own.collective, xml_options).value();
          const auto of_file = static_cast<double>(TimeOfFile(xml->text, plan));
          EXPECT_NEAR(static_cast<double>(TimeOf(as_run, plan)) / of_file, 1, 0.01) << NameOf(c);
        }
        const MscclppOptions json_options{.domains = LoadStoreDomains(plan.topology)};
        const StatusOr<MscclppJson> json = WriteMscclppJson(own.program, own.collective, json_options);
        if (!json.ok()) continue;
        const LoweredProgram as_run{own.collective, AsRunByMscclpp(own.program, json_options)};
        const auto of_file = static_cast<double>(TimeOfFile(json->text, plan));
        // A receive and the send behind it are read as one instruction, which keeps its slot for longer than
        // the executor does (docs/msccl.md).
        const double ratio = static_cast<double>(TimeOf(as_run, plan)) / of_file;
        EXPECT_GE(ratio, 0.95) << "MSCCL++: " << NameOf(c);
        EXPECT_LE(ratio, 1.01) << "MSCCL++: " << NameOf(c);
      }
}

}  // namespace
}  // namespace xccl
