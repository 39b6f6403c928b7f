// Executes plans on CPU ranks, as threads or processes, or on GPUs, and checks every element.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "ir/machine_model.h"
#include "ir/plan.h"
#include "runtime/cuda/run_program.h"
#include "runtime/launched/launched_group.h"
#include "runtime/plan_book.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"

namespace xccl {

struct GpuRun {
  cuda::GpuRunOptions options;
  std::string kernel_cache;  // a directory; empty: the default one
  bool interpreter = false;  // run on the interpreter kernel rather than generated code
};

// How plans are run; sizes and predictions are set for each run.
struct RunSettings {
  RunOptions options;
  std::optional<GpuRun> gpus;      // absent: CPU ranks
  Deadline deadline = Deadline();  // no size begins after it
  LaunchedGroup* group = nullptr;  // ranks that are processes, of which this is one; the plan is for all
};

// Where the kernel of a plan comes from: a plan book, which may have none for it; else it is emitted.
struct KernelOrigin {
  bool from_book = false;
  std::vector<PlanCubin> cubins = {};  // compiled from the source ahead of time; their files are paths
  std::string source = {};             // from the book; empty: the interpreter kernel runs the plan
};

struct RunResult {
  RunTableOptions ran;  // the head of the table
  std::vector<RunRow> rows;
  std::optional<cuda::DeviceUsage> usage;  // for GPUs
  std::vector<std::string> notices;        // why the interpreter kernel ran; sizes that are rounded to none
};

// As ReadPlan; also kInvalidInput for a plan without a program.
StatusOr<Plan> ReadRunnablePlan(const std::string& file);

// Runs the plan's program at these sizes, beside a simulated time for each, with the machine's model where
// there is one. The interpreter kernel runs programs that are too large to emit or do not compile, and all
// programs where the settings say so. Requires: a program. Errors: those of the back end.
StatusOr<RunResult> RunPlan(const std::string& name, const Plan& plan, const KernelOrigin& origin,
                            const std::vector<int64_t>& sizes, const RunSettings& settings,
                            const std::optional<MachineModel>& machine);

// Told what happens while sizes run, so that it can be shown at once. A table is for one collective. An error
// ends the runs.
struct RunShow {
  std::function<Status(const RunResult& of_table)> begin;  // rows are for `size`
  std::function<Status(const RunResult& size)> size;
  std::function<Status(const std::string& note)> end;  // why sizes are missing; empty: none is
};

// Runs a plan's program, size after size. No sizes: the plan's own. Errors: those of RunPlan; kLimit where
// the deadline passes before the first size.
Status RunSizes(const std::string& file, std::vector<int64_t> sizes, const RunSettings& settings,
                const RunShow& show);
// Runs every collective of the book, at every size with the plan that the book has for it. Predictions use
// the machine that tune measured. No sizes: 64 MiB.
Status RunBook(const std::string& directory, std::vector<int64_t> sizes, const RunSettings& settings,
               const RunShow& show);

}  // namespace xccl
