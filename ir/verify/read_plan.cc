#include "ir/verify/read_plan.h"

#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {

StatusOr<Plan> ReadPlan(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlanUnverified(path));
  XCCL_RETURN_IF_ERROR(
      Annotate(ToStatus(VerifySchedule(plan.schedule, plan.collective, plan.topology)), path));
  if (plan.program)
    XCCL_RETURN_IF_ERROR(
        Annotate(ToStatus(VerifyProgram(plan.program->program, plan.program->collective)), path));
  return plan;
}

}  // namespace xccl
