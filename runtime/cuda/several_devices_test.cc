// One process with a rank on each of several devices: whose memory they reach, and how far one rank may be
// ahead of the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/device_program.h"
#include "runtime/cuda/peers.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/testing/ring_programs.h"

namespace xccl::cuda {
namespace {

constexpr int32_t kRanks = 3;
constexpr int64_t kCount = 3000;

StatusOr<std::string> FakeImage(DataType, ReduceOp, int32_t) { return std::string("fake"); }

FakeOptions Devices() {
  FakeOptions options;
  options.devices = kRanks;
  return options;
}

// Rank r is on device r; the interpreter kernel runs its programs.
struct Ranks {
  explicit Ranks(const FakeOptions& options = Devices()) : fake(options) {
    for (int32_t r = 0; r < kRanks; ++r) {
      const std::shared_ptr<const Gpu> gpu = *Gpu::Open(fake.table(), r);
      ranks.push_back({Rank(r), gpu});
      gpus.push_back(gpu);
      streams.push_back(*CreateStream(gpu));
    }
  }
  StatusOr<std::unique_ptr<DeviceProgram>> Connect(const Program& program, const Collective& collective,
                                                   DeviceProgramOptions options = {}) {
    AddHostKernel(fake, nullptr, DataType::kFloat, ReduceOp::kSum, program.protocol,
                  [this](const device::LaunchArgs& args) {
                    direct += args.direct;
                    lent += args.own.input_window == 0 && args.own.output_window == 0 ? 1 : 0;
                  });
    options.interpreter = FakeImage;
    options.time_limit = std::chrono::seconds(20);
    return DeviceProgram::Connect("ring", program, collective, nullptr, ranks, AloneExchange(), {}, options,
                                  std::make_shared<CommunicatorShare>(std::make_shared<Residency>()));
  }

  FakeDriver fake;
  std::vector<LocalRank> ranks;
  std::vector<std::shared_ptr<const Gpu>> gpus;
  std::vector<OwnedStream> streams;
  std::atomic<int32_t> direct = 0, lent = 0;  // launches
};

enum class Kind : uint8_t { kAllocated, kForAll, kForItself };

DeviceMemory Make(const Ranks& all, size_t rank, Kind kind) {
  const size_t bytes = kCount * sizeof(float);
  std::vector<std::shared_ptr<const Gpu>> peers;
  if (kind == Kind::kForAll) peers = all.gpus;
  return *DeviceMemory::Create(all.gpus[rank], bytes,
                               kind == Kind::kAllocated ? Sharing::kLegacy : Sharing::kNone, peers, "test");
}

// Two allreduces; the number of wrong elements.
int64_t RunRing(Ranks& all, const std::vector<Kind>& kinds) {
  const Collective collective = AllMembers(CollectiveKind::kAllreduce, kRanks, kRanks);
  const auto program = all.Connect(RingAllreduce(kRanks), collective);
  EXPECT_EQ(program.status(), OkStatus());
  if (!program.ok()) return -1;
  const CollectiveSizes sizes = CollectiveSizes::OfParts(collective, {kCount}, sizeof(float));
  std::vector<DeviceMemory> in, out;
  for (size_t r = 0; r < kRanks; ++r) {
    in.push_back(Make(all, r, kinds[r]));
    out.push_back(Make(all, r, kinds[r]));
    auto* const input = PointerTo<float>(in[r].address());
    std::iota(input, input + kCount, static_cast<float>(1000 * r));
  }
  for (int32_t call = 0; call < 2; ++call)
    for (size_t r = 0; r < kRanks; ++r)
      EXPECT_EQ((*program)->Launch(Rank(static_cast<int32_t>(r)), {in[r].address(), out[r].address()}, sizes,
                                   {}, all.streams[r].get()),
                OkStatus());
  EXPECT_EQ((*program)->Synchronize(), OkStatus());
  int64_t wrong = 0;
  for (const DeviceMemory& each : out)
    for (int64_t i = 0; i < kCount; ++i)
      wrong += PointerTo<float>(each.address())[i] == static_cast<float>(3000 + 3 * i) ? 0 : 1;
  return wrong;
}

TEST(SeveralDevices, MessagesGoStraightToBuffersThatAllDevicesReach) {
  struct Case {
    const char* name;
    std::vector<Kind> kinds;
    int32_t most_peers, direct, lent;  // launches of 6
  };
  const Case cases[] = {
      {"of cuMemAlloc", std::vector(kRanks, Kind::kAllocated), 8, 6, 6},
      {"mapped for all", std::vector(kRanks, Kind::kForAll), 8, 6, 6},
      {"mapped for their own device", std::vector(kRanks, Kind::kForItself), 8, 6, 0},
      {"some of each", {Kind::kAllocated, Kind::kForItself, Kind::kForAll}, 8, 6, 4},
      {"of cuMemAlloc, of contexts that cannot be peers", std::vector(kRanks, Kind::kAllocated), 1, 0, 6},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    FakeOptions options = Devices();
    options.most_peers = one.most_peers;
    Ranks all(options);
    EXPECT_EQ(RunRing(all, one.kinds), 0);
    EXPECT_EQ(all.direct, one.direct);
    EXPECT_EQ(all.lent, one.lent);
    all.streams.clear();
    all.ranks.clear();
    all.gpus.clear();
    EXPECT_EQ(all.fake.Leaks(), "");
  }
}

TEST(SeveralDevices, WhetherAllReachABufferIsAskedOnceForAnAllocation) {
  Ranks all;
  PeerReach reach(all.gpus);
  EXPECT_EQ(reach.Enable(), OkStatus());
  EXPECT_EQ(reach.Enable(), OkStatus());
  const DeviceMemory memory = Make(all, 1, Kind::kAllocated);
  EXPECT_TRUE(reach.Covers(memory.address() + 4, 8));
  const int64_t calls = all.fake.calls();
  EXPECT_TRUE(reach.Covers(memory.address() + 4, 8));
  EXPECT_EQ(all.fake.calls() - calls, 3);  // pushes a context, asks for the allocation, pops
  EXPECT_FALSE(reach.Covers(memory.address() + kCount * sizeof(float) - 4, 8));
  EXPECT_FALSE(reach.Covers(reinterpret_cast<DevicePointer>(&reach), 8));
  EXPECT_TRUE(reach.Covers(0, 0));
  EXPECT_FALSE(reach.Covers(Make(all, 1, Kind::kForItself).address(), 8));
}

}  // namespace
}  // namespace xccl::cuda
