// A plan of expert dispatch for tests of the C API, and a layer that runs it on threads.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"
#include "runtime/c_api/testing/moe_step.h"
#include "runtime/xccl.h"

namespace xccl {

// Writes a plan for two hosts of two ranks, 8 experts and top-2. Returns the path.
inline std::string MakeMoePlan(const std::string& path, int32_t tokens = 8) {
  const Topology topology = dispatch::Read(dispatch::TestMachines()[2]);
  const StatusOr<dispatch::ExpertPlan> plan =
      dispatch::MakeExpertPlan(topology, dispatch::RequestOf(topology, tokens, 2));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(dispatch::WriteExpertPlan(*plan, path).ok());
  return path;
}

// Runs a layer forward and backward on the plan's four ranks, a thread each, and expects right results.
inline void RunMoeByThreads(const std::string& plan) {
  constexpr int kRanks = 4;
  std::vector<xcclComm_t> comms(kRanks);
  ASSERT_EQ(xcclCommInitAll(comms.data(), kRanks, nullptr), xcclSuccess);
  std::vector<int> wrong(kRanks, -1);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] { wrong[rank] = RunMoeStep(comms[rank], plan.c_str()); });
  }
  EXPECT_EQ(wrong, std::vector<int>(kRanks, 0));
  for (const xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

}  // namespace xccl
