// Runs plans on GPUs or CPU ranks, and checks every element of the results. Ranks are threads or processes.
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
  std::string kernel_cache;  // directory of compiled kernels; empty: the default directory
  bool interpreter = false;  // run on the interpreter kernel rather than generated code
};

// How plans are run. RunPlan sets the sizes and predictions in `options` for each run.
struct RunSettings {
  RunOptions options;
  std::optional<GpuRun> gpus;               // absent: CPU ranks
  Deadline deadline = Deadline();           // no size begins after it
  std::optional<CollectiveKind> only = {};  // of a plan book, run this collective alone
  LaunchedGroup* group = nullptr;           // the ranks, if a launcher started each as a process; else null
};

// The source of a plan's kernel. With from_book, the kernel comes from the plan book, which may lack a kernel
// for the plan. Otherwise the kernel is emitted, and the other fields are empty.
struct KernelOrigin {
  bool from_book = false;
  std::vector<PlanCubin> cubins = {};  // compiled from `source` ahead of time; their file names are paths
  std::string source = {};             // the book's kernel; empty: the interpreter kernel runs the plan
};

struct RunResult {
  RunTableOptions ran;  // the header of the table
  std::vector<RunRow> rows;
  std::optional<cuda::DeviceUsage> usage;  // for GPUs
  std::vector<std::string> notices;        // why the interpreter kernel ran; remarks about sizes
};

// Runs the plan's program at the given sizes. Also predicts each size: the program on the machine model
// `measured`, or else on the known model that the plan names, or else the schedule on ideal links. On GPUs
// the interpreter kernel runs a program that is too large to emit or that does not compile, or every program
// if the settings say so. Requires: a program. Errors: those of the back end.
StatusOr<RunResult> RunPlan(const std::string& name, const Plan& plan, const KernelOrigin& origin,
                            const std::vector<int64_t>& sizes, const RunSettings& settings,
                            const std::optional<MachineModel>& measured);

// Callbacks that show results while sizes run. One table is for one collective. An error ends the runs.
struct RunShow {
  std::function<Status(const RunResult& of_table)> begin;  // shows the header; `size` shows the rows
  std::function<Status(const RunResult& size)> size;       // after each size, with the rows of this size
  std::function<Status(const std::string& note)> end;      // why sizes are missing; empty: no size is
};

// Runs the program of the plan in `file` at each size; if `asked_sizes` is empty, at the size that the plan
// was made for. Errors: those of ReadRunnablePlan, LaunchedGroup::Agree and RunPlan; kLimit if the deadline
// passes before the first size.
Status RunSizes(const std::string& file, const std::vector<int64_t>& asked_sizes, const RunSettings& settings,
                const RunShow& show);
// Runs every collective of the plan book, or settings.only, at each size; if `asked_sizes` is empty, at the
// sizes that its plans were made for. Each size runs the plan that the book selects for it. Predictions use
// the book's machine model, if `tune` measured one. Errors: those of ReadPlanBook, SelectPlan and RunSizes;
// kLimit if the deadline passes before the first size of any collective.
Status RunBook(const std::string& directory, const std::vector<int64_t>& asked_sizes,
               const RunSettings& settings, const RunShow& show);

}  // namespace xccl
