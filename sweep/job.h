// One job of a sweep as a child process: `xccl-synth plan ... --json`. A job that crashes or runs out of
// memory ends alone. A child ends with its parent, even where that is killed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/status.h"
#include "sweep/table.h"
#include "sweep/work_list.h"

namespace xccl {

// The row's cells: the plan's JSON, or "infeasible", "limit" and so on with the last error that was printed.
SweepResult ResultOf(const ChildOutput& output);

// Where xccl-synth is: beside this program, else in the folders of PATH. Errors: kInvalidInput.
StatusOr<std::string> FindSynth();

// Runs from Start until it has ended. The destructor kills a job that has not.
class JobProcess {
 public:
  // `program`: xccl-synth; `arguments`: PlanArguments. Errors: kSystem.
  static StatusOr<JobProcess> Start(const std::string& program, std::vector<std::string> arguments);

  // A descriptor that poll finds readable once the job has ended.
  int ended_fd() const { return child_.ended_fd(); }
  // Waits for the end. To be called once.
  SweepResult Finish();

 private:
  explicit JobProcess(ChildProcess child) : child_(std::move(child)) {}

  ChildProcess child_;
};

}  // namespace xccl
