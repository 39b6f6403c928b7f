// Threads that launch do not hold up each other: one rank may be many calls ahead of the others, whether one
// thread launches for all ranks or each rank has its own. The driver is the one in host memory, which waits
// where a real one does.
#include "runtime/cuda/launch_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/device_program.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/testing/ring_programs.h"

namespace xccl::cuda {
namespace {

constexpr int32_t kRanks = 2;

// Two ranks on a device each, or on one.
struct TwoRanks {
  explicit TwoRanks(const FakeOptions& options) : fake(options) {
    for (int32_t r = 0; r < kRanks; ++r) {
      ranks.push_back({Rank(r), *Gpu::Open(fake.table(), r % options.devices)});
      streams.push_back(*CreateStream(ranks.back().gpu));
    }
  }
  StatusOr<std::unique_ptr<DeviceProgram>> Connect(const Program& program, const Collective& collective) {
    DeviceProgramOptions options;
    options.interpreter = [](DataType, ReduceOp, int32_t) { return std::string("fake"); };
    options.time_limit = std::chrono::seconds(4);
    return DeviceProgram::Connect("swap", program, collective, nullptr, ranks, AloneExchange(), {}, options,
                                  share);
  }
  FakeDriver fake;
  std::vector<LocalRank> ranks;
  std::vector<OwnedStream> streams;
  std::shared_ptr<CommunicatorShare> share =
      std::make_shared<CommunicatorShare>(std::make_shared<Residency>());
};

FakeOptions Devices(int32_t devices) {
  FakeOptions options;
  options.devices = devices;
  return options;
}

// Buffers of every call of every rank, and whether the sums are right.
class Calls {
 public:
  Calls(FakeDriver& fake, const TwoRanks& two, const Collective& collective, std::vector<int64_t> counts)
      : collective_(collective), counts_(std::move(counts)) {
    for (size_t r = 0; r < kRanks; ++r)
      for (const int64_t count : counts_) {
        const DeviceId device = two.ranks[r].gpu->id();
        in_[r].push_back(fake.Allocate<float>(static_cast<size_t>(count), device));
        out_[r].push_back(fake.Allocate<float>(static_cast<size_t>(count), device));
        std::iota(in_[r].back().begin(), in_[r].back().end(), static_cast<float>(100 * r));
      }
  }
  size_t size() const { return counts_.size(); }
  Status Launch(DeviceProgram& program, int32_t rank, size_t call, Stream stream) const {
    const auto r = static_cast<size_t>(rank);
    return program.Launch(Rank(rank),
                          {reinterpret_cast<DevicePointer>(in_[r][call].data()),
                           reinterpret_cast<DevicePointer>(out_[r][call].data())},
                          CollectiveSizes::OfParts(collective_, {counts_[call]}, sizeof(float)), {}, stream);
  }
  int64_t Wrong() const {
    int64_t wrong = 0;
    for (const auto& outputs : out_)
      for (const std::span<float> output : outputs)
        for (size_t i = 0; i < output.size(); ++i)
          wrong += output[i] == static_cast<float>(100 + 2 * i) ? 0 : 1;
    return wrong;
  }

 private:
  const Collective& collective_;
  const std::vector<int64_t> counts_;
  std::array<std::vector<std::span<float>>, kRanks> in_, out_;
};

const Collective& Allreduce() {
  static const Collective collective = AllMembers(CollectiveKind::kAllreduce, kRanks);
  return collective;
}

// The largest call does not fit what was allocated for those before, which run.
TEST(LaunchOrders, AThreadMayLaunchGrowingCallsOfARankBeforeThoseOfTheNext) {
  for (const int32_t devices : {1, 2}) {
    TwoRanks two(Devices(devices));
    AddHostKernel(two.fake, nullptr, DataType::kFloat, ReduceOp::kSum, Protocol::kSimple);
    {
      const auto program = two.Connect(SwapAllreduce(), Allreduce());
      ASSERT_EQ(program.status(), OkStatus());
      const Calls calls(two.fake, two, Allreduce(), {10, 100'000, 1000, 300'000, 700'000});
      for (int32_t r = 0; r < kRanks; ++r)
        for (size_t call = 0; call < calls.size(); ++call)
          ASSERT_EQ(calls.Launch(**program, r, call, two.streams[static_cast<size_t>(r)].get()), OkStatus());
      EXPECT_EQ((*program)->Synchronize(), OkStatus());
      EXPECT_EQ(calls.Wrong(), 0);
      // 40, 400,000, 1,200,000 and 2,800,000 bytes, in pieces of 64 KiB.
      EXPECT_EQ((*program)->usage().scratch_bytes, (1 + 7 + 19 + 43) << 16);
    }
    two.streams.clear();
    two.ranks.clear();
    EXPECT_EQ(two.fake.Leaks(), "");
  }
}

// A launch waits where the device's queue is full. The other rank's thread makes room.
TEST(LaunchOrders, AThreadMayBeMoreLaunchesAheadThanADeviceQueues) {
  FakeOptions options = Devices(2);
  options.most_launches = 3;
  TwoRanks two(options);
  AddHostKernel(two.fake, nullptr, DataType::kFloat, ReduceOp::kSum, Protocol::kSimple);
  {
    const auto program = two.Connect(SwapAllreduce(), Allreduce());
    ASSERT_EQ(program.status(), OkStatus());
    const Calls calls(two.fake, two, Allreduce(), std::vector<int64_t>(20, 64));
    std::atomic<int32_t> failed = 0;
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < kRanks; ++r)
      threads.emplace_back([&, r] {
        // The second rank comes when the first one's queue is full.
        while (r == 1 && two.fake.launches() == 0) std::this_thread::yield();
        for (size_t call = 0; call < calls.size(); ++call)
          if (!calls.Launch(**program, r, call, two.streams[static_cast<size_t>(r)].get()).ok()) ++failed;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ((*program)->Synchronize(), OkStatus());
    EXPECT_EQ(calls.Wrong(), 0);
  }
}

TEST(LaunchOrders, AStreamOfTwoRanksIsRefusedWhereItWouldHang) {
  TwoRanks two(Devices(1));
  AddHostKernel(two.fake, nullptr, DataType::kFloat, ReduceOp::kSum, Protocol::kSimple);
  const auto program = two.Connect(SwapAllreduce(), Allreduce());
  ASSERT_EQ(program.status(), OkStatus());
  const Calls calls(two.fake, two, Allreduce(), {64, 64});
  const Stream one = two.streams[0].get(), other = two.streams[1].get();
  ASSERT_EQ(calls.Launch(**program, 0, 0, one), OkStatus());
  EXPECT_EQ(
      calls.Launch(**program, 1, 0, one),
      InvalidInput("swap: rank 1 launches on the stream of rank 0, whose kernel runs there and waits for "
                   "this one; expected a stream for each rank of a device"));
  ASSERT_EQ(calls.Launch(**program, 1, 0, other), OkStatus());
  // Behind an earlier call of the other rank it waits for nothing that is not there.
  ASSERT_EQ(calls.Launch(**program, 1, 1, one), OkStatus());
  ASSERT_EQ(calls.Launch(**program, 0, 1, other), OkStatus());
  EXPECT_EQ((*program)->Synchronize(), OkStatus());
  EXPECT_EQ(calls.Wrong(), 0);
}

// They hold the same multiprocessors.
TEST(LaunchOrders, KernelsOfARankRunOneAfterAnotherWhateverTheirProgramAndStream) {
  TwoRanks two(Devices(2));
  std::array<std::atomic<int32_t>, kRanks> running = {};
  std::atomic<int32_t> at_once = 0, launches = 0;
  // Nothing but a kernel that takes its time.
  AddHostKernel(two.fake, nullptr, DataType::kFloat, ReduceOp::kSum, Protocol::kSimple,
                [&](const device::LaunchArgs& args) {
                  std::atomic<int32_t>& mine = running[static_cast<size_t>(args.first_rank)];
                  if (++mine > 1) ++at_once;
                  for (int32_t i = 0; i < 2000; ++i) std::this_thread::yield();
                  --mine;
                  ++launches;
                });
  std::vector<OwnedStream> more;
  for (const LocalRank& rank : two.ranks) more.push_back(*CreateStream(rank.gpu));
  {
    const auto first = two.Connect(SwapAllreduce(), Allreduce());
    auto second = two.Connect(RingAllreduce(kRanks), AllMembers(CollectiveKind::kAllreduce, kRanks, kRanks));
    ASSERT_EQ(first.status(), OkStatus());
    ASSERT_EQ(second.status(), OkStatus());
    const Calls calls(two.fake, two, Allreduce(), std::vector<int64_t>(8, 64));
    for (size_t call = 0; call < calls.size(); ++call)
      for (int32_t r = 0; r < kRanks; ++r) {
        const auto& streams = call % 4 < 2 ? two.streams : more;
        DeviceProgram& program = call % 2 == 0 ? **first : **second;
        ASSERT_EQ(calls.Launch(program, r, call, streams[static_cast<size_t>(r)].get()), OkStatus());
      }
    // An event of a program that has been destroyed is not waited for by launches that follow.
    second = InvalidInput("gone");
    ASSERT_EQ(calls.Launch(**first, 0, 0, more[0].get()), OkStatus());
    ASSERT_EQ(calls.Launch(**first, 1, 0, more[1].get()), OkStatus());
    EXPECT_EQ((*first)->Synchronize(), OkStatus());
    EXPECT_EQ(calls.Wrong(), 0);
  }
  EXPECT_EQ(launches, 18);
  EXPECT_EQ(at_once, 0);
}

}  // namespace
}  // namespace xccl::cuda
