#include "ir/lower.h"

#include <gtest/gtest.h>

#include "ir/interpret.h"
#include "ir/program_test_util.h"
#include "ir/verify_program.h"

namespace xccl {
namespace {

std::string FirstOf(const std::vector<Violation>& violations) {
  return violations.empty() ? "" : ToString(violations.front());
}

// Lowers, proves and runs; compares with what the postcondition says.
void CheckRuns(const Schedule& schedule, const Collective& collective, const Topology& topology,
               const LowerOptions& lower, InterpretOptions options, int64_t segment_bytes) {
  StatusOr<Program> program = Lower(schedule, collective, topology, lower);
  ASSERT_TRUE(program.ok()) << program.status().message();
  program->segment_bytes = segment_bytes;
  ASSERT_EQ(FirstOf(VerifyProgram(*program, collective)), "");
  const std::vector<std::vector<std::byte>> inputs = ExactInputs(*program, collective, options);
  const std::vector<std::vector<std::byte>> expected = ExpectedOutputs(*program, collective, inputs, options);
  for (bool in_place : {false, true}) {
    if (in_place && !program->in_place) continue;
    options.in_place = in_place;
    const auto outputs = Interpret(*program, collective, inputs, options);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    for (Rank r : collective.ranks())
      ASSERT_EQ((*outputs)[r.index()], expected[r.index()])
          << "rank " << r.value << (in_place ? " in place" : "");
  }
}

TEST(Lower, EveryKindAndAlgorithmComputesItsPostcondition) {
  for (int32_t ranks : {1, 2, 3, 5, 7, 8}) {
    const Topology topology = FullMesh(ranks);
    for (CollectiveKind kind : AllNamedCollectives()) {
      for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
        for (int32_t chunks : {1, 3}) {
          const Collective collective = MakeCollective(kind, ranks).WithChunks(chunks);
          const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, topology);
          if (!schedule) continue;
          SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(algorithm)) + " on " +
                       std::to_string(ranks) + " in " + std::to_string(chunks));
          for (int32_t slots : {1, 2, 8})
            CheckRuns(*schedule, collective, topology, {.slots = slots}, {.size_bytes = 1000}, 64);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace xccl
