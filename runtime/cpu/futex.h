// Linux futexes on words that other processes may share. std::atomic::wait will not do: its futexes are
// private to a process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace xccl {

// Sleeps while word == expected, until a wake, a signal or `limit`; it may return early without a reason.
// `across_processes`: the word lies in shared memory.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, std::chrono::nanoseconds limit,
               bool across_processes);
void FutexWakeAll(std::atomic<uint32_t>& word, bool across_processes);

}  // namespace xccl
