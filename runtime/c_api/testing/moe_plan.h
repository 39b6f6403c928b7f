// A plan of expert dispatch for tests of the C API.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"

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

}  // namespace xccl
