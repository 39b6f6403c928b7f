// One job of a sweep as a child process: `xccl-synth plan ... --json`. A job that crashes or runs out of
// memory ends alone. A child ends with its parent, even where that is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "sweep/table.h"
#include "sweep/work_list.h"

namespace xccl {

// The output of a child process, and how the process ended.
struct ChildOutput {
  int status = 0;  // as waitpid gives it
  std::string out, err;
};
// The row's cells: the plan's JSON, or "infeasible", "limit" and so on with the last error that was printed.
SweepResult ResultOf(const ChildOutput& output);

// Where xccl-synth is: beside this program, else in the folders of PATH. Errors: kInvalidInput.
StatusOr<std::string> FindSynth();

// Runs from Start until it has ended. The destructor kills a job that has not.
class JobProcess {
 public:
  // `program`: xccl-synth; `arguments`: PlanArguments. Errors: kSystem.
  static StatusOr<JobProcess> Start(const std::string& program, std::vector<std::string> arguments);
  JobProcess(JobProcess&& other) noexcept;
  JobProcess& operator=(JobProcess&& other) noexcept;
  ~JobProcess();

  // A descriptor that poll finds readable once the job has ended.
  int ended_fd() const { return ended_; }
  // Waits for the end. To be called once.
  SweepResult Finish();

 private:
  JobProcess() = default;

  pid_t child_ = -1;
  int ended_ = -1, out_ = -1, err_ = -1;
};

}  // namespace xccl
