// Waiting, never for ever: a threadblock gives up when another of its launch did, when the host says so, or
// when what it waits for has not come for LaunchArgs::spin_limit_ns. The first to give up writes the error
// record.
#pragma once

#include "device/platform.h"

namespace xccl::device {

// Who waits and for whom. Cold: only looked at when something is wrong.
struct Waiter {
  const LaunchArgs* args;
  int32_t rank, threadblock, instruction, instance, pass;
  Wait wait;
  int32_t peer;
};

XCCL_DEVICE_CALL void Report(Waiter who, uint64_t expected, uint64_t seen) {
  if (!Claim(who.args->stop) || who.args->error == nullptr) return;
  ErrorRecord* const record = who.args->error;
  record->rank = who.rank;
  record->threadblock = who.threadblock;
  record->instruction = who.instruction;
  record->instance = who.instance;
  record->pass = who.pass;
  record->wait = who.wait;
  record->peer = who.peer;
  record->expected = expected;
  record->seen = seen;
  StoreWatched(&record->state, 2);
}

// What a wait remembers between polls. Poll returns false when it is over for nothing.
struct Patience {
  uint32_t polls = 0;
  int64_t since = 0;

  XCCL_DEVICE bool Poll(Waiter who, uint64_t expected, uint64_t seen) {
    if ((++polls & 63) != 0) return true;
    if (LoadWatched(who.args->stop) != 0) return false;
    if ((polls & 1023) == 0 && who.args->abort != nullptr && LoadWatched(who.args->abort) != 0) {
      who.wait = Wait::kAborted;
      Report(who, expected, seen);
      return false;
    }
    if (who.args->spin_limit_ns > 0) {
      const int64_t now = Nanoseconds();
      if (since == 0) since = now;
      if (now - since > who.args->spin_limit_ns) {
        Report(who, expected, seen);
        return false;
      }
    }
    Pause();
    return true;
  }
};

template <bool kSystem>
XCCL_DEVICE uint64_t LoadCounter(const uint64_t* word) {
  return kSystem ? LoadAcquireSystem(word) : LoadAcquireDevice(word);
}

template <bool kSystem>
XCCL_DEVICE_CALL bool AwaitSlowly(const uint64_t* word, uint64_t goal, Waiter who) {
  for (Patience patience;;) {
    const uint64_t seen = LoadCounter<kSystem>(word);
    if (static_cast<int64_t>(seen - goal) >= 0) return true;
    if (!patience.Poll(who, goal, seen)) return false;
  }
}
// Until a counter that only grows has reached `goal`; what its writer stored before is visible then.
template <bool kSystem>
XCCL_DEVICE bool AwaitCounter(const uint64_t* word, uint64_t goal, const Waiter& who) {
  for (int poll = 0; poll < 16; ++poll)
    if (static_cast<int64_t>(LoadCounter<kSystem>(word) - goal) >= 0) return true;
  return AwaitSlowly<kSystem>(word, goal, who);
}

}  // namespace xccl::device
