#include "cli/interrupt.h"

#include <csignal>

namespace xccl {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void OnInterrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

std::function<bool()> CatchInterrupt() {
  std::signal(SIGINT, OnInterrupt);
  return [] { return interrupted != 0; };
}

}  // namespace xccl
