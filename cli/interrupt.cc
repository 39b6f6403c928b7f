#include <atomic>
#include <csignal>

#include "cli/progress.h"

namespace xccl {
namespace {

std::atomic<bool> interrupted = false;  // asked by several threads
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void OnInterrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

std::function<bool()> CatchInterrupt() {
  std::signal(SIGINT, OnInterrupt);
  return [] { return interrupted.load(); };
}

}  // namespace xccl
