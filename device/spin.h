// Waits with a limit. A threadblock gives up when another of its launch did, when the host asks for it, or
// when what it waits for has not come within LaunchArgs::spin_limit_ns. The first to give up writes the
// error record.
#pragma once

#include "device/platform.h"

namespace xccl::device {

// Identifies the waiting block; one per block, in shared memory. Read only when a wait is long or fails.
struct Waiter {
  const LaunchArgs* args;
  int32_t rank, instance, threadblock, instruction, pass;
};

XCCL_DEVICE_CALL void Report(const Waiter* who, Wait wait, int32_t peer, uint64_t expected, uint64_t seen) {
  if (!Claim(who->args->stop) || who->args->error == nullptr) return;
  ErrorRecord* const record = who->args->error;
  record->rank = who->rank;
  record->threadblock = who->threadblock;
  record->instruction = who->instruction;
  record->instance = who->instance;
  record->pass = who->pass;
  record->wait = wait;
  record->peer = peer;
  record->expected = expected;
  record->seen = seen;
  StoreWatched(&record->state, 2);
}

// Called now and then during a wait. Returns when the wait started, or -1 to give up.
XCCL_DEVICE_CALL int64_t KeepWaiting(const Waiter* who, uint32_t polls, int64_t since, Wait wait,
                                     int32_t peer, uint64_t expected, uint64_t seen) {
  const LaunchArgs& args = *who->args;
  if (LoadWatched(args.stop) != 0) return -1;
  if ((polls & 1023) == 0 && args.abort != nullptr && LoadWatched(args.abort) != 0) {
    Report(who, Wait::kAborted, peer, expected, seen);
    return -1;
  }
  const int64_t now = Nanoseconds();
  if (since == 0) since = now;
  if (args.spin_limit_ns > 0 && now - since > args.spin_limit_ns) {
    Report(who, wait, peer, expected, seen);
    return -1;
  }
  Pause();
  return since;
}

// The state of a wait between polls. Poll returns false to give up.
struct Patience {
  uint32_t polls = 0;
  int64_t since = 0;

  XCCL_DEVICE bool Poll(const Waiter* who, Wait wait, int32_t peer, uint64_t expected, uint64_t seen) {
    if ((++polls & 63) != 0) return true;
    since = KeepWaiting(who, polls, since, wait, peer, expected, seen);
    return since >= 0;
  }
};

template <bool kSystem>
XCCL_DEVICE uint64_t LoadCounter(const uint64_t* word) {
  return kSystem ? LoadAcquireSystem(word) : LoadAcquireDevice(word);
}

template <bool kSystem>
XCCL_DEVICE_CALL bool AwaitSlowly(const uint64_t* word, uint64_t goal, const Waiter* who, Wait wait,
                                  int32_t peer) {
  for (Patience patience;;) {
    const uint64_t seen = LoadCounter<kSystem>(word);
    if (static_cast<int64_t>(seen - goal) >= 0) return true;
    if (!patience.Poll(who, wait, peer, goal, seen)) return false;
  }
}
// Waits until a counter that only grows has reached `goal`. Then all that its writer stored before is
// visible.
template <bool kSystem>
XCCL_DEVICE bool AwaitCounter(const uint64_t* word, uint64_t goal, const Waiter* who, Wait wait,
                              int32_t peer) {
  for (int poll = 0; poll < 4; ++poll)
    if (static_cast<int64_t>(LoadCounter<kSystem>(word) - goal) >= 0) return true;
  return AwaitSlowly<kSystem>(word, goal, who, wait, peer);
}

}  // namespace xccl::device
