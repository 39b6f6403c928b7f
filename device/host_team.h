// The threads of one block on the host, in place of a GPU's block and warps: barriers and votes among them.
// Only the host compiler sees this file.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>

namespace xccl::device {

// Ends the block of the thread that throws it, as an illegal address ends a kernel.
struct HostKilled {};

// A barrier for a fixed number of threads that can be used again and again. Everything that a thread wrote
// before it arrived is visible to all after the barrier.
class HostBarrier {
 public:
  explicit HostBarrier(int32_t threads) : threads_(threads) {}

  // Waits for all threads. Returns whether any of them brought true. Throws HostKilled after Kill.
  bool Arrive(bool any) {
    if (threads_ == 1) return any;
    const uint32_t turn = turn_.load(std::memory_order_acquire);
    if (killed_.load(std::memory_order_relaxed)) throw HostKilled();
    if (any) any_.store(true, std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      // The result of the turn before last may go: all have come here since they read it.
      result_[turn & 1] = any_.exchange(false, std::memory_order_relaxed);
      arrived_.store(0, std::memory_order_relaxed);
      turn_.fetch_add(1, std::memory_order_release);
      turn_.notify_all();
    } else {
      for (int yields = 0; yields < 8 && turn_.load(std::memory_order_acquire) == turn; ++yields)
        std::this_thread::yield();
      turn_.wait(turn, std::memory_order_acquire);
    }
    if (killed_.load(std::memory_order_acquire)) throw HostKilled();
    return result_[turn & 1];
  }
  // All that wait, and all that come later, throw.
  void Kill() {
    killed_.store(true, std::memory_order_release);
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
  }

 private:
  const int32_t threads_;
  std::atomic<int32_t> arrived_ = 0;
  std::atomic<uint32_t> turn_ = 0;
  std::atomic<bool> any_ = false, killed_ = false;
  bool result_[2] = {};
};

// A block's threads, in warps of `lanes` neighbours. `shared` is the block's shared memory. Requires: `lanes`
// divides `threads`.
struct HostTeam {
  HostTeam(int32_t threads_of, int32_t lanes_of, void* shared_of)
      : threads(threads_of),
        lanes(lanes_of),
        shared(shared_of),
        block(threads_of),
        movers(threads_of - lanes_of) {
    for (int32_t w = 0; w < threads / lanes; ++w) warps.emplace_back(lanes);
  }
  void Kill() {
    block.Kill();
    movers.Kill();
    for (HostBarrier& warp : warps) warp.Kill();
  }

  int32_t threads, lanes;
  void* shared;
  HostBarrier block;
  HostBarrier movers;  // all threads but the last warp
  std::deque<HostBarrier> warps;
};

// This thread's place in its block. Null: it is the only one.
struct HostPlace {
  HostTeam* team = nullptr;
  int32_t index = 0;
};
inline constinit thread_local HostPlace host_place = {};

}  // namespace xccl::device
