// Groups of ranks on this host for tests: threads of this process, or child processes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/options.h"
#include "runtime/bootstrap/placement.h"

namespace xccl::testing {

// A port that is free at the moment.
uint16_t FreePort();
// "127.0.0.1:PORT" with a free port, or "[::1]:PORT".
std::string FreeEndpoint(bool v6 = false);
Placement PlaceOf(int32_t rank, int32_t ranks, const std::string& rendezvous);
// Time limits for tests: 20 s of joining.
BootstrapOptions Patient();

// Joins a group of `ranks` threads, and runs `work` in each. Join errors fail the test.
void RunGroup(int32_t ranks, const BootstrapOptions& options, const std::function<void(Bootstrap&)>& work,
              bool v6 = false);
// The status of joining, by rank, each in a thread of its own.
std::vector<Status> JoinAll(const std::vector<Placement>& placements, const BootstrapOptions& options);

// A child process that runs `work`, which gives its exit status. Killed and waited for at the end of its
// life.
class Child {
 public:
  explicit Child(const std::function<int()>& work);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  int Wait();  // the exit status; 128 + the signal that ended it

 private:
  pid_t pid_ = -1;
  bool waited_ = false;
};

}  // namespace xccl::testing
