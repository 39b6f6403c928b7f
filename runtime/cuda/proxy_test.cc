// GPUs of several hosts over verbs: ranks as threads, with the driver and the network's devices in memory.
#include "runtime/cuda/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/cuda/device_program.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/rdma/verbs/verbs_transport.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/testing/ring_programs.h"
#include "runtime/testing/verbs/fake_verbs.h"
#include "runtime/transport/parting.h"

namespace xccl::cuda {
namespace {

using verbs::FakeDevice;
using verbs::FakeVerbs;

constexpr int32_t kRanks = 3;
constexpr int64_t kCount = 5000;

std::vector<FakeDevice> TwoDevices() {
  return {{.name = "fake0", .gids = {verbs::GidBytesOf("10.0.0.1")}},
          {.name = "fake1", .gids = {verbs::GidBytesOf("10.0.1.1")}}};
}

// Every rank is a host with one GPU.
class Hosts {
 public:
  explicit Hosts(const FakeVerbs& network) : network_(network) {}

  std::vector<Rails> rails;  // by the program's connections
  int32_t slots_of_gpus() const { return slots_of_gpus_; }

  // Three ring allreduces; the wrong elements of all ranks, -1 for a rank that failed.
  std::vector<int64_t> Run(FakeDriver& fake) {
    AddTestKernel(fake, program_, collective_);
    std::vector<int64_t> wrong(kRanks, -1);
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < kRanks; ++r)
      threads.emplace_back([&, r] {
        const StatusOr<int64_t> of_rank = RunRank(fake, Rank(r));
        EXPECT_TRUE(of_rank.ok() || failure_) << of_rank.status().message();
        wrong[static_cast<size_t>(r)] = of_rank.ok() ? *of_rank : -1;
      });
    for (std::thread& thread : threads) thread.join();
    return wrong;
  }
  // The group's failure; "" if there is none.
  std::string failure() const { return failure_.value_or(OkStatus()).message(); }

 private:
  std::vector<std::string> AllGather(Rank rank, std::string_view mine) {
    blobs_[rank.index()] = mine;
    meet_.arrive_and_wait();
    std::vector<std::string> all = blobs_;
    meet_.arrive_and_wait();
    return all;
  }

  std::optional<Status> Failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  OtherHosts OthersOf(Rank rank, const std::shared_ptr<const Gpu>& gpu) {
    OtherHosts others;
    others.host_of = {0, 1, 2};
    others.all_gather = [this, rank](std::string_view mine) { return AllGather(rank, mine); };
    others.agree_on_network = OkStatus;
    others.reaches = [this](const NetworkMemory& memory) {
      return verbs::ReachesOver(network_.library(), memory, {}).ok();
    };
    others.connect = [this, rank, gpu](const NetworkMemory& memory) -> StatusOr<std::unique_ptr<Transport>> {
      const ScopedContext context(*gpu);
      const auto slots = reinterpret_cast<DevicePointer>(memory.slots);
      if (gpu->driver().MemGetAddressRange(nullptr, nullptr, slots) == Result::kSuccess) ++slots_of_gpus_;
      NetworkOptions options;
      options.all_gather = [this, rank](std::string_view mine) { return AllGather(rank, mine); };
      XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Transport> made,
                            verbs::ConnectOver(&network_.library(), memory, options));
      return PartWhenTaken(std::move(made), memory,
                           {.failed = [this] { return Failure().has_value(); },
                            .has_left = [](Rank /*rank*/) { return false; },
                            .time_limit = std::chrono::seconds(20)});
    };
    others.failure = [this] { return Failure(); };
    others.fail = [this](const Status& reason) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = reason;
    };
    others.note_progress = [] {};
    return others;
  }

  StatusOr<int64_t> RunRank(FakeDriver& fake, Rank rank) {
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<const Gpu> gpu, Gpu::Open(fake.table(), rank.value));
    DeviceProgramOptions options;
    options.time_limit = std::chrono::seconds(20);
    options.arena.slot_bytes = 4096;  // several messages a connection
    options.proxy = std::make_shared<Proxy>(OthersOf(rank, gpu));
    options.rails = rails;
    const auto image = [](DataType, ReduceOp, int32_t) { return StatusOr<std::string>("fake"); };
    XCCL_ASSIGN_OR_RETURN(
        const std::unique_ptr<DeviceProgram> connected,
        DeviceProgram::Connect("ring", program_, collective_, image, {{rank, gpu}}, AloneExchange(), {},
                               options, std::make_shared<CommunicatorShare>(std::make_shared<Residency>())));
    const std::span<float> input = fake.Allocate<float>(kCount, rank.value);
    const std::span<float> output = fake.Allocate<float>(kCount, rank.value);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(rank.value * 1000 + i % 997);
    const DeviceBuffers buffers{reinterpret_cast<DevicePointer>(input.data()),
                                reinterpret_cast<DevicePointer>(output.data())};
    const CollectiveSizes sizes = CollectiveSizes::OfParts(collective_, {kCount}, sizeof(float));
    XCCL_ASSIGN_OR_RETURN(const OwnedStream stream, CreateStream(gpu));
    for (int32_t call = 0; call < 3; ++call)
      XCCL_RETURN_IF_ERROR(connected->Launch(rank, buffers, sizes, {}, stream.get()));
    XCCL_RETURN_IF_ERROR(connected->Synchronize());
    int64_t wrong = 0;
    for (size_t i = 0; i < output.size(); ++i)
      wrong += output[i] == static_cast<float>(3000 + 3 * (i % 997)) ? 0 : 1;
    return wrong;
  }

  const FakeVerbs& network_;
  const Collective collective_ = AllMembers(CollectiveKind::kAllreduce, kRanks, kRanks);
  const Program program_ = RingAllreduce(kRanks);
  std::vector<std::string> blobs_ = std::vector<std::string>(kRanks);
  std::barrier<> meet_{kRanks};
  std::atomic<int32_t> slots_of_gpus_ = 0;
  std::mutex mutex_;  // guards what follows
  std::optional<Status> failure_;
};

TEST(Proxy, SlotsAreOfTheGpuWhereTheNetworkReachesIt) {
  struct Case {
    const char* name;
    bool rdma, dma_buf, ordered;
    int32_t capability;
    const char* refused;  // a call of the network's devices that fails once
    int32_t of_gpus;      // ranks
    int64_t files;        // dma-bufs registered: once to try, once to keep
    bool flushed;
  };
  const Case cases[] = {
      {"a GPU that no device reaches", false, false, true, 90, "", 0, 0, false},
      {"as files", true, true, true, 90, "", 3, 6, false},
      {"by address", true, false, true, 90, "", 3, 0, false},
      {"a device that takes no file", true, true, true, 90, "RegDmabufMr", 3, 4, false},
      {"a device that takes no address either", true, false, true, 90, "RegMr", 2, 0, false},
      {"a driver that does not promise the order", true, true, false, 90, "", 3, 6, true},
      {"a GPU that does not keep it", true, true, true, 80, "", 3, 6, true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    FakeVerbs network(TwoDevices());
    if (*one.refused != '\0') network.FailCall(one.refused, EFAULT);
    FakeDriver fake({.devices = kRanks,
                     .capability = one.capability,
                     .rdma = one.rdma,
                     .dma_buf = one.dma_buf,
                     .rdma_ordered = one.ordered});
    // The network's writes become visible only when the GPU is flushed.
    int64_t flushed = 0;
    if (one.flushed) network.Withhold();
    fake.OnFlush([&] {
      ++flushed;
      network.Show();
    });
    Hosts hosts(network);
    EXPECT_EQ(hosts.Run(fake), std::vector<int64_t>(kRanks, 0));
    EXPECT_EQ(hosts.failure(), "");
    EXPECT_EQ(hosts.slots_of_gpus(), one.of_gpus);
    EXPECT_EQ(std::ssize(network.dmabufs()), one.files);
    EXPECT_EQ(flushed > 0, one.flushed);
    EXPECT_EQ(fake.Leaks(), "");
    EXPECT_EQ(network.misuse(), "");
    EXPECT_EQ(network.alive(), 0);
  }
}

TEST(Proxy, ConnectionsGoOverTheRailsOfThePlan) {
  FakeVerbs network(TwoDevices());
  FakeDriver fake({.devices = kRanks});
  Hosts hosts(network);
  hosts.rails = {{0, 1}, {0, 1}, {0, 1}};
  EXPECT_EQ(hosts.Run(fake), std::vector<int64_t>(kRanks, 0));
  EXPECT_EQ(network.most_queues(), 2 * kRanks);  // on both devices of every rank
}

TEST(Proxy, AFailureOfTheNetworkNamesTheRankThatSawIt) {
  FakeVerbs network(TwoDevices());
  FakeDriver fake({.devices = kRanks});
  Hosts hosts(network);
  network.FailRequest(IBV_WC_REM_ACCESS_ERR);
  hosts.Run(fake);
  EXPECT_THAT(hosts.failure(),
              testing::MatchesRegex(
                  "rank [0-2]: (write|signal) to rank [0-2] \\(.*\\) over fake0 failed: status 10"));
}

}  // namespace
}  // namespace xccl::cuda
