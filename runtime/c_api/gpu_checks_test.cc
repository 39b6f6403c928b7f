// Runs the checks that bench:cuda_api runs on GPUs, with a driver and kernels in host memory.
#include "runtime/c_api/testing/gpu_checks.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/c_api/handles.h"
#include "runtime/c_api/testing/books.h"
#include "runtime/c_api/testing/fake_gpus.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::c_api {
namespace {

class GpuChecks : public testing::TestWithParam<std::string_view> {};

TEST_P(GpuChecks, Hold) {
  MakeBook("allreduce-ring-simple", kCheckedRanks, {CollectiveKind::kAllreduce});
  MakeBook("allgather-ring-simple", kCheckedRanks, {CollectiveKind::kAllgather});
  MakeBook("scratch", kCheckedRanks, {CollectiveKind::kAlltoall});
  cuda::FakeDriver fake;
  UseFakeDriver(fake);
  const Status status =
      RunGpuCheck(GetParam(), fake.table(), {.books = testing::TempDir(), .largest = 16'000});
  EXPECT_TRUE(status.ok()) << status.message();
  TheGpus() = Gpus();
  EXPECT_EQ(fake.Leaks(), "");
}

INSTANTIATE_TEST_SUITE_P(All, GpuChecks, testing::ValuesIn(GpuCheckNames().begin(), GpuCheckNames().end()),
                         [](const auto& of) {
                           std::string name(of.param);
                           std::erase(name, '-');
                           return name;
                         });

TEST(GpuChecksNames, OthersAreRefused) {
  cuda::FakeDriver fake;
  EXPECT_EQ(RunGpuCheck("none", fake.table(), {}), UsageError("no check 'none'"));
}

}  // namespace
}  // namespace xccl::c_api
