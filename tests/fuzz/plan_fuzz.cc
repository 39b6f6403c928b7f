// Plan files: a plan that is read and proved is written twice to the same bytes, and timed as schedule and as
// program.
#include "base/files.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/read_plan.h"
#include "tests/fuzz/fuzz.h"

namespace xccl::testing {
namespace {

constexpr int64_t kSizes[] = {0, 1000, 8 << 10};

void CheckWritten(const Plan& plan) {
  const std::string& path = FileWith("");
  XCCL_CHECK(WritePlan(plan, path).ok());
  const std::string first = ReadFile(path).value();
  XCCL_CHECK(WritePlan(ReadPlan(path).value(), path).ok());
  XCCL_CHECK(ReadFile(path).value() == first);
}

void CheckTimed(const Plan& plan) {
  for (const TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking})
    for (const int64_t size : kSizes) {
      const SimulateOptions options{.size_bytes = size, .model = model};
      XCCL_CHECK(Simulate(plan.schedule, plan.collective, plan.topology, options).time_ps >= 0);
      if (!plan.program) continue;
      const StatusOr<Simulation> program =
          SimulateProgram(plan.program->program, plan.program->collective, plan.topology, options);
      if (!program.ok()) CheckRefusal(program.status());
    }
}

}  // namespace

void FuzzOne(std::string_view text) {
  const StatusOr<Plan> plan = ReadPlan(FileWith(text));
  if (!plan.ok()) return CheckRefusal(plan.status());
  CheckWritten(*plan);
  CheckTimed(*plan);
}

}  // namespace xccl::testing
