// Another program as a child process, with its output. It ends with its parent, even where that is killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace xccl {

// The output of a child process, and how the process ended.
struct ChildOutput {
  int status = 0;  // as waitpid gives it
  std::string out, err;
};

// Runs from Start until it has ended. The destructor kills a child that has not.
class ChildProcess {
 public:
  // `program`: a path. The child has a process group of its own, so that Ctrl-C is for the parent alone.
  // Errors: kSystem "WHAT's process: REASON". Requires: the calling thread lives as long as the child.
  static StatusOr<ChildProcess> Start(const std::string& what, const std::string& program,
                                      std::vector<std::string> arguments);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  // A descriptor that poll finds readable once the child has ended.
  int ended_fd() const { return ended_; }
  // Waits for the end. To be called once.
  ChildOutput Finish();
  // Waits so long for the end; kills the child, and returns nothing, where it has not come. To be called
  // once, and not after Finish.
  std::optional<ChildOutput> FinishWithin(double seconds);

 private:
  ChildProcess() = default;

  pid_t child_ = -1;
  int ended_ = -1, out_ = -1, err_ = -1;
};

// The reason of an xccl-synth's failure: the signal that ended it; else the last line of its standard error
// that begins with the program's name, without the name; else its exit code. `what`: begins the line where
// the process gave no reason.
std::string FailureOf(const std::string& what, const ChildOutput& output);

}  // namespace xccl
