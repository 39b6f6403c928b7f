#include "ir/verify/read_plan.h"

#include "ir/verify/verify_plan.h"

namespace xccl {

StatusOr<Plan> ReadPlan(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlanUnverified(path));
  XCCL_RETURN_IF_ERROR(Annotate(ToStatus(VerifyPlan(plan)), path));
  return plan;
}

}  // namespace xccl
