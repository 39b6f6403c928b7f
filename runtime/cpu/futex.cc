#include "runtime/cpu/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace xccl {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

uint32_t* Address(std::atomic<uint32_t>& word) { return reinterpret_cast<uint32_t*>(&word); }

}  // namespace

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds limit,
               bool across_processes) {
  timespec timeout = {};
  timeout.tv_sec = limit.count() / 1'000'000'000;
  timeout.tv_nsec = limit.count() % 1'000'000'000;
  const int op = across_processes ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE;
  syscall(SYS_futex, Address(word), op, expected, &timeout, nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word, bool across_processes) {
  const int op = across_processes ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE;
  syscall(SYS_futex, Address(word), op, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace xccl
