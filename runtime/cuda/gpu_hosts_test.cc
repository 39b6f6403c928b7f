// GPU ranks on two hosts: processes with the driver in host memory, which libfabric connects over loopback.
#include "runtime/cuda/gpu_hosts.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"
#include "runtime/bootstrap/test_group.h"
#include "runtime/communicator.h"
#include "runtime/cuda/backends.h"
#include "runtime/cuda/run_program.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/testing/ring_programs.h"

namespace xccl {
namespace {

constexpr int32_t kRanks = 4;
constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                                     CollectiveKind::kAlltoall, CollectiveKind::kBroadcast};

std::vector<ServedPlan> Plans(Protocol protocol) {
  std::vector<ServedPlan> plans;
  for (const CollectiveKind kind : kKinds) {
    const Topology topology = FullMesh(kRanks);
    const Collective collective = MakeCollective(kind, kRanks);
    const Schedule schedule = *HandSchedule(Algorithm::kDirect, collective, topology);
    PlanBookEntry entry;
    entry.file = std::string(ToString(kind));
    entry.collective = kind;
    entry.ranks = kRanks;
    entry.root = collective.spec().root;
    plans.push_back({entry, collective, LowerChecked(schedule, collective, topology).value()});
    plans.back().program.protocol = protocol;
  }
  return plans;
}

cuda::BackendOptions OptionsOf(LaunchedGroup& group) {
  cuda::BackendOptions options;
  options.images = [](const std::string&, const ServedPlan&) -> StatusOr<cuda::KernelImages> {
    return cuda::KernelImages();
  };
  options.interpreter = [](const Program&) -> cuda::KernelImages {
    return [](DataType, ReduceOp, int32_t) { return StatusOr<std::string>("fake"); };
  };
  options.program.time_limit = std::chrono::seconds(20);
  options.program.arena.slot_bytes = 4096;  // several messages a connection
  options.hosts = OtherHostsOf(group, std::chrono::seconds(20));
  return options;
}

using Work = std::function<bool(cuda::FakeDriver& fake, Communicator& communicator, int32_t rank)>;
using GroupWork = std::function<bool(LaunchedGroup& group)>;

// Says what a child saw.
bool Is(const Status& seen, const std::string& expected = "") {
  if (seen.message() == expected) return true;
  fprintf(stderr, "saw: %s\nexpected: %s\n", seen.message().c_str(), expected.c_str());
  return false;
}

bool RunRank(const std::string& rendezvous, int32_t rank, const GroupWork& work) {
  Placement placement = testing::PlaceOf(rank, kRanks, rendezvous);
  placement.host_id = rank < 2 ? "first" : "second";
  StatusOr<std::unique_ptr<Bootstrap>> joined = Bootstrap::Join(placement, testing::Patient());
  if (!Is(joined.status())) return false;
  LaunchedGroup group(*std::move(joined), {.network = NetworkKind::kOfi});
  return group.bootstrap().hosts() == std::vector<int32_t>{0, 0, 1, 1} && work(group);
}

// Work on a communicator that has loaded the plans.
GroupWork WithPlans(Protocol protocol, const Work& work) {
  return [protocol, work](LaunchedGroup& group) {
    const Rank rank = group.bootstrap().rank();
    cuda::FakeDriver fake;
    cuda::AddHostKernel(fake, nullptr, DataType::kFloat, ReduceOp::kSum, Protocol::kSimple);
    StatusOr<Backend> backend = cuda::ProcessBackend(fake.table(), "xccl-" + group.bootstrap().job(), rank,
                                                     kRanks, 0, std::chrono::seconds(20), OptionsOf(group));
    if (!Is(backend.status())) return false;
    Communicator communicator(rank, kRanks, *std::move(backend), {});
    return Is(communicator.LoadPlans("book", Plans(protocol))) && work(fake, communicator, rank.value);
  };
}

// The ends of all ranks' processes.
std::vector<int> RunRanks(const GroupWork& work) {
  const std::string rendezvous = testing::FreeEndpoint();
  std::vector<pid_t> children;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(100);
      _exit(RunRank(rendezvous, rank, work) ? 0 : 1);
    }
    children.push_back(child);
  }
  std::vector<int> ends;
  for (const pid_t child : children) waitpid(child, &ends.emplace_back(), 0);
  return ends;
}

float ValueAt(int32_t rank, int64_t i) { return static_cast<float>(rank * 1000 + i % 977); }

// The expected value of element i of a rank's output.
float Expected(CollectiveKind kind, int32_t rank, int64_t i, int64_t count) {
  const auto block = static_cast<int32_t>(i / count);
  switch (kind) {
    case CollectiveKind::kAllgather:
      return ValueAt(block, i % count);
    case CollectiveKind::kAlltoall:
      return ValueAt(block, rank * count + i % count);
    case CollectiveKind::kBroadcast:
      return ValueAt(kRanks / 2, i);
    default: {
      float sum = 0;
      for (int32_t r = 0; r < kRanks; ++r) sum += ValueAt(r, i);
      return sum;
    }
  }
}

bool RunKind(cuda::FakeDriver& fake, Communicator& communicator, int32_t rank, CollectiveKind kind,
             int64_t count) {
  const bool gathers = kind == CollectiveKind::kAllgather || kind == CollectiveKind::kAlltoall;
  const int64_t elements = gathers ? kRanks * count : count;
  const std::span<float> in = fake.Allocate<float>(static_cast<size_t>(elements));
  const std::span<float> out = fake.Allocate<float>(in.size());
  std::ranges::fill(out, -1.0f);
  for (int64_t i = 0; i < elements; ++i) in[static_cast<size_t>(i)] = ValueAt(rank, i);
  Call call;
  call.collective = kind;
  call.send = reinterpret_cast<const std::byte*>(in.data());
  call.receive = reinterpret_cast<std::byte*>(out.data());
  call.count = count;
  if (kind == CollectiveKind::kBroadcast) call.root = Rank(kRanks / 2);
  if (!Is(communicator.Enqueue(call)) || !Is(communicator.Synchronize())) return false;
  int64_t wrong = 0;
  for (int64_t i = 0; i < elements; ++i)
    wrong += out[static_cast<size_t>(i)] != Expected(kind, rank, i, count) ? 1 : 0;
  if (wrong > 0)
    fprintf(stderr, "%s: rank %d: %ld wrong of %ld\n", std::string(ToString(kind)).c_str(), rank,
            static_cast<long>(wrong), static_cast<long>(elements));
  return wrong == 0;
}

bool RunAll(cuda::FakeDriver& fake, Communicator& communicator, int32_t rank) {
  for (const CollectiveKind kind : kKinds)
    for (const int64_t count : {int64_t{1}, int64_t{37}, int64_t{30001}, int64_t{64}})
      if (!RunKind(fake, communicator, rank, kind, count)) return false;
  return true;
}

TEST(GpuHosts, CollectivesAcrossTwoHostsAreRight) {
  EXPECT_EQ(RunRanks(WithPlans(Protocol::kSimple, RunAll)), std::vector<int>(kRanks, 0));
}

TEST(GpuHosts, ProtocolsOfOneHostAreRefused) {
  const auto work = [](cuda::FakeDriver&, Communicator&, int32_t) { return true; };
  EXPECT_EQ(RunRanks(WithPlans(Protocol::kLl, work)), std::vector<int>(kRanks, 1 << 8));
}

// The plans before it are connected then, and end in good order.
TEST(GpuHosts, AllSayWhyOneRankCouldNotLoad) {
  const auto work = [](LaunchedGroup& group) {
    const Rank rank = group.bootstrap().rank();
    cuda::FakeDriver fake;
    cuda::AddHostKernel(fake, nullptr, DataType::kFloat, ReduceOp::kSum, Protocol::kSimple);
    cuda::BackendOptions options = OptionsOf(group);
    options.images = [rank](const std::string& name, const ServedPlan&) -> StatusOr<cuda::KernelImages> {
      if (rank == Rank(2) && name == "book/alltoall") return InvalidInput("no room for it");
      return cuda::KernelImages();
    };
    StatusOr<Backend> backend = cuda::ProcessBackend(fake.table(), "xccl-" + group.bootstrap().job(), rank,
                                                     kRanks, 0, std::chrono::seconds(20), options);
    if (!Is(backend.status())) return false;
    Communicator communicator(rank, kRanks, *std::move(backend), {});
    const Status loaded = communicator.LoadPlans("book", Plans(Protocol::kSimple));
    return rank == Rank(2) ? Is(loaded, "no room for it")
                           : loaded.message().find("rank 2: no room for it") != std::string::npos ||
                                 Is(loaded, "... rank 2: no room for it");
  };
  EXPECT_EQ(RunRanks(work), std::vector<int>(kRanks, 0));
}

TEST(GpuHosts, LibfabricIsGivenNoMemoryOfGpus) {
  const auto work = [](LaunchedGroup& group) {
    return group.AgreeOnNetwork().ok() && !group.ReachesSlots(NetworkMemory());
  };
  EXPECT_EQ(RunRanks(work), std::vector<int>(kRanks, 0));
}

TEST(GpuHosts, AKilledRankIsNamedByAll) {
  const auto work = [](cuda::FakeDriver& fake, Communicator& communicator, int32_t rank) {
    if (rank == 3) raise(SIGKILL);
    const std::span<float> in = fake.Allocate<float>(100), out = fake.Allocate<float>(100);
    Call call;
    call.send = reinterpret_cast<const std::byte*>(in.data());
    call.receive = reinterpret_cast<std::byte*>(out.data());
    call.count = 100;
    Status status = communicator.Enqueue(call);
    if (status.ok()) status = communicator.Synchronize();
    if (status.message().find("rank 3: its process has ended") == 0) return true;
    return Is(status, "rank 3: its process has ended ...");
  };
  const std::vector<int> ends = RunRanks(WithPlans(Protocol::kSimple, work));
  EXPECT_TRUE(WIFSIGNALED(ends[3]));
  for (size_t r = 0; r < 3; ++r) EXPECT_EQ(ends[r], 0) << "rank " << r;
}

// Runs a table of sizes as `xccl-synth run --backend cuda` does under a launcher.
bool RunTableOn(LaunchedGroup& group, const cuda::KernelImages& images) {
  cuda::FakeDriver fake({.devices = 2});
  const Program program = RingAllreduce(kRanks);
  const Collective collective = AllMembers(CollectiveKind::kAllreduce, kRanks, kRanks);
  cuda::AddTestKernel(fake, program, collective);
  RunOptions options;
  options.sizes_bytes = {0, 4, 100000};
  options.iterations = 3;
  options.time_limit = std::chrono::seconds(20);
  cuda::GpuRunOptions gpu;
  gpu.registered = true;
  gpu.program.arena.slot_bytes = 4096;
  gpu.launched = {group.bootstrap().rank(), group.bootstrap().job(),
                  OtherHostsOf(group, std::chrono::seconds(20))};
  const auto driver = [&]() -> StatusOr<const cuda::Driver*> { return &fake.table(); };
  const StatusOr<cuda::RunReport> report =
      cuda::RunProgram("ring", program, collective, images, driver, options, gpu);
  if (!report.ok()) {
    fprintf(stderr, "%s\n", report.status().message().c_str());
    return report.status() == InvalidInput("rank 1: no compiler here");
  }
  // Every rank has the times of all.
  if (report->devices != fmt::format("1 x Fake GPU {}", group.bootstrap().rank().value % 2)) return false;
  return report->rows.size() == 6 && AllRight(report->rows) && report->rows[5].rank_us[2] > 0 &&
         report->rows[5].rank_us[3] > 0 && fake.Leaks().empty();
}

TEST(GpuHosts, ALaunchedRunChecksEveryElementOfAllHosts) {
  const auto work = [](LaunchedGroup& group) {
    return RunTableOn(group, [](DataType, ReduceOp, int32_t) { return StatusOr<std::string>("fake"); });
  };
  EXPECT_EQ(RunRanks(work), std::vector<int>(kRanks, 0));
}

TEST(GpuHosts, ALaunchedRunThatFailsOnOneRankSaysSoOnAll) {
  const auto work = [](LaunchedGroup& group) {
    const bool fails = group.bootstrap().rank() == Rank(1);
    return RunTableOn(group, [fails](DataType, ReduceOp, int32_t) -> StatusOr<std::string> {
      if (fails) return InvalidInput("no compiler here");
      return std::string("fake");
    });
  };
  EXPECT_EQ(RunRanks(work), std::vector<int>(kRanks, 0));
}

}  // namespace
}  // namespace xccl
