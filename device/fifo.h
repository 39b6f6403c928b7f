// A kernel's messages to the proxy, the thread of the host that talks to other hosts.
#pragma once

#include "device/platform.h"

namespace xccl::device {

// As FifoEntry::what.
XCCL_DEVICE uint64_t Encode(const FifoWord& word) {
  return static_cast<uint64_t>(word.bytes) << 32 | static_cast<uint64_t>(word.index) << 1 |
         (word.taken ? 1u : 0u);
}

// Adds an entry for the proxy; any thread may. When the proxy sees the entry, it also sees everything that
// this thread has seen and that its block stored before the last barrier.
XCCL_DEVICE void Push(Fifo* fifo, uint64_t word) {
  const uint64_t turn = FetchAddDevice(&fifo->pushed, 1);
  FifoEntry* const entry = fifo->entries + (turn & fifo->mask);
  StoreWatched(&entry->what, word);
  StoreReleaseSystem(&entry->turn, turn + 1);
}

}  // namespace xccl::device
