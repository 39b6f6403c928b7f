// Converts plans to the page of `xccl-synth view`. The JSON of a plan (view/src/view/data.ts) holds the
// drawing of the machine, traces of the simulated schedule and program, and the bound. If a plan is too large
// for a page of a few MB, the JSON holds sums over time, ranks and chunks instead, and says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/machine_model.h"
#include "ir/plan.h"

namespace xccl {

struct ViewOptions {
  const MachineModel* machine = nullptr;  // machine model for programs; null: only links take time
  bool links_alone = false;               // no model by request: the page does not say why it has none
  int64_t most_entries = 60'000;          // most entries of one list; larger plans are shown as sums
  Deadline deadline = Deadline();
};

// One line of the page's list of plans, and the plan's data.
struct PlanView {
  std::string name;    // name of the plan's file
  std::string serves;  // the calls that the plan serves in its book; empty: the plan is in no book
  std::string collective, topology, engine;
  int32_t ranks = 0;
  int64_t size_bytes = 0;
  int64_t time_ps = 0;  // time of the program; without a program, time of the schedule
  int64_t bound_ps = 0;
  std::string json;  // contains no '<', so that it can be placed in a script element
};

// Simulates the plan and draws its machine. Errors: those of LowerBound and SimulateProgram, kLimit if
// the deadline passes.
StatusOr<PlanView> ViewPlan(const Plan& plan, const std::string& name, const ViewOptions& options);

// Returns `page` with the mark @XCCL_DATA@ replaced by the plans. The page shows `title` and `command`.
// Requires that `page` has the mark once.
std::string ViewPage(std::string_view page, const std::vector<PlanView>& plans, const std::string& title,
                     const std::string& command);

}  // namespace xccl
