// A kernel's messages to the proxy: what threadblocks push arrives once, in each one's order.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "device/fifo.h"

namespace xccl::device {
namespace {

TEST(DeviceFifo, AWordComesBackAsItWas) {
  for (const FifoWord& word :
       {FifoWord{0, false, 0}, FifoWord{1, true, 0}, FifoWord{0x7fffffff, false, 0xffffffff}}) {
    const FifoWord back = DecodeFifoWord(Encode(word));
    EXPECT_EQ(back.index, word.index);
    EXPECT_EQ(back.taken, word.taken);
    EXPECT_EQ(back.bytes, word.bytes);
  }
}

// Every thread has at most two words under way, as a connection with two slots has.
TEST(DeviceFifo, EveryWordArrivesOnceAndInItsThreadsOrder) {
  constexpr int32_t kThreads = 4;
  constexpr uint32_t kWords = 20000;
  std::vector<FifoEntry> entries(2 * kThreads);
  Fifo fifo;
  fifo.entries = entries.data();
  fifo.mask = entries.size() - 1;
  fifo.pushed = ~uint64_t{0} - 1000;  // the number of an entry may wrap
  uint64_t turn = fifo.pushed;
  std::vector<std::atomic<uint32_t>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t w = 0; w < kWords; ++w) {
        while (w - seen[static_cast<size_t>(t)].load() >= 2) std::this_thread::yield();
        Push(&fifo, Encode({t, w % 2 == 1, w}));
      }
    });
  for (uint32_t n = 0; n < kThreads * kWords; ++n, ++turn) {
    const FifoEntry& entry = entries[turn & fifo.mask];
    while (LoadAcquireSystem(&entry.turn) != turn + 1) std::this_thread::yield();
    const FifoWord word = DecodeFifoWord(LoadWatched(&entry.what));
    const uint32_t expected = seen[static_cast<size_t>(word.index)].load();
    EXPECT_EQ(word.bytes, expected);
    EXPECT_EQ(word.taken, expected % 2 == 1);
    seen[static_cast<size_t>(word.index)].store(expected + 1);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xccl::device
