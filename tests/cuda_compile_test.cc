// Compiles the CUDA of every golden plan with NVRTC for several architectures. This needs the toolkit's
// library but no device.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "codegen/emit.h"
#include "ir/lower/testing/checked.h"
#include "ir/plan.h"
#include "ir/verify/read_plan.h"
#include "runtime/cuda/kernel_source.h"
#include "runtime/cuda/nvrtc.h"

namespace xccl {
namespace {

TEST(CudaCompile, EveryGoldenPlanForEveryArchitecture) {
  const auto nvrtc = cuda::LoadNvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  std::set<std::string> plans;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden"))
    if (entry.path().string().ends_with(".plan.json")) plans.insert(entry.path().string());
  ASSERT_GE(plans.size(), 5U);
  int32_t number = 0;
  for (const std::string& file : plans) {
    const auto plan = ReadPlan(file);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto lowered = LowerChecked(plan->schedule, plan->collective, plan->topology, {});
    ASSERT_TRUE(lowered.ok()) << lowered.status().message();
    const auto source = Emit(*lowered, plan->collective, {});
    ASSERT_TRUE(source.ok()) << source.status().message();
    // One type and one operator per plan; tests of the device headers cover them all.
    const DataType type = AllDataTypes()[static_cast<size_t>(number) % AllDataTypes().size()];
    const ReduceOp op = AllReduceOps()[static_cast<size_t>(number) % AllReduceOps().size()];
    ++number;
    for (const int32_t arch : {80, 90, 100}) {
      const auto cubin = cuda::CompileToCubin(**nvrtc, cuda::KernelRequest(file, *source, type, op, arch));
      ASSERT_TRUE(cubin.ok()) << cubin.status().message();
      EXPECT_EQ(cubin->substr(1, 3), "ELF");
      EXPECT_NE(cubin->find("xccl_kernel_info"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace xccl
