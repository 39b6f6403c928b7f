// A plan: all that is needed to check, time and run a collective, in one self-contained file (*.plan.json;
// docs/ir.md, Plan files). Written and read as a stream; deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "ir/schedule.h"
#include "ir/time_model.h"
#include "topologies/topology.h"

namespace xccl {

// How a plan was made. A field that a file leaves out has the default given here.
struct MadeBy {
  std::string engine;
  uint64_t seed = 0;
  std::string limits;  // the flags that bounded the search, as written
  std::string version;
  int64_t size_bytes = int64_t{64} << 20;  // the size that the plan is made for
  TimeModel model = TimeModel::kPipelined;
  std::string machine = {};  // known machine that the program is made for: "hopper"; empty: none, or a file's
  bool operator==(const MadeBy&) const = default;
};

// Sizes that a plan is for, as nccl-tests counts them, both inclusive. Every plan runs at any size. The maker
// of the plan wants it chosen for these sizes, and files for other executors state them.
struct PlanSizes {
  int64_t min_bytes = 0, max_bytes = 0;  // 0: no upper limit
  bool operator==(const PlanSizes&) const = default;
};

struct Plan {
  Topology topology;
  Collective collective;
  Schedule schedule;
  std::optional<LoweredProgram> program;
  MadeBy made_by;
  // Whether floating-point rounding gives every rank the same bits (ir/analysis/bitwise_same.h); absent:
  // nothing is claimed.
  std::optional<bool> bitwise_same = std::nullopt;
  PlanSizes sizes = {};
};

// Writes the plan to a file. A compressed schedule is written in its plain form if that has at most
// `most_transfers`, and at most kFewTransfers on a large machine or without a program: a transfer takes about
// 100 bytes of a file.
Status WritePlan(const Plan& plan, const std::string& path, int64_t most_transfers = kMostTransfers);
// Reads the format but proves nothing. Code that executes or trusts a plan calls ReadPlan
// (ir/verify/read_plan.h). Errors: kInvalidInput with the place.
StatusOr<Plan> ReadPlanUnverified(const std::string& path);

}  // namespace xccl
