#include "runtime/testing/namespaces.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace xccl::testing {
namespace {

constexpr int kRefused = 99;

bool Enter() { return unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0; }

int StatusOf(pid_t process) {
  int ending = 0;
  waitpid(process, &ending, 0);
  return WIFEXITED(ending) ? WEXITSTATUS(ending) : kRefused;
}

}  // namespace

pid_t ForkIntoNamespace(const std::function<int()>& child) {
  const pid_t outer = fork();
  if (outer != 0) return outer;
  if (!Enter()) _exit(kRefused);
  const pid_t inner = fork();
  if (inner == 0) _exit(getpid() == 1 ? child() : kRefused);
  _exit(StatusOf(inner));
}

bool CanMakeNamespaces() {
  return StatusOf(ForkIntoNamespace([] { return 0; })) == 0;
}

}  // namespace xccl::testing
