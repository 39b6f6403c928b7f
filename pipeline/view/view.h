// A plan as the page of `xccl-synth view` shows it: the JSON that view/src/view/data.ts describes, with the
// machine drawn, the schedule and the program simulated and traced, and the bound. Where a plan is too large
// for a page of a few MB, loads and holdings are added up over time, ranks and chunks, and the JSON says so.
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
  const MachineModel* machine = nullptr;  // that the program runs on; null: only links take time
  int64_t most_entries = 60'000;          // in one list of the page; a schedule with more is added up
  Deadline deadline = Deadline();
};

// One line of the page's list of plans, and the plan's data.
struct PlanView {
  std::string name;    // the file's
  std::string serves;  // the calls that a book has it for; empty: it is in no book
  std::string collective, topology, engine;
  int32_t ranks = 0;
  int64_t size_bytes = 0;
  int64_t time_ps = 0;  // the program's where there is one
  int64_t bound_ps = 0;
  std::string json;  // without '<', so that it may stand in a page
};

// Simulates and draws. Errors: those of LowerBound; kLimit where the deadline passes.
StatusOr<PlanView> ViewPlan(const Plan& plan, const std::string& name, const ViewOptions& options);

// The page: `page` with the plans in place of its mark. `command` and `title` are shown. Requires: `page`
// has the mark @XCCL_DATA@ once.
std::string ViewPage(std::string_view page, const std::vector<PlanView>& plans, const std::string& title,
                     const std::string& command);

}  // namespace xccl
