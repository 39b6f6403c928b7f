// Expert dispatch and combine on the GPUs of several processes, which are children of the test, through the C
// API: a driver and kernels in host memory. Each child has threads of the CPU beside its own rank, for all
// ranks, and so knows what its rank should get.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/testing/expert_buffers.h"
#include "runtime/c_api/testing/expert_checks.h"
#include "runtime/c_api/testing/moe_plan.h"
#include "runtime/c_api/testing/processes.h"
#include "runtime/cuda/gpu.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/xccl.h"

namespace xccl::c_api {
namespace {

std::string PlanFile(const std::string& name) {
  return MakeMoePlan(testing::TempDir() + "/" + name + std::to_string(getpid()) + ".plan.json");
}
std::string NameOf(const std::string& plan) { return plan.substr(plan.rfind('/') + 1); }

// Runs the body in a process for each rank. A child's expectations count, too.
void RunInProcesses(const std::function<void(int rank, Shared& all)>& body) {
  InProcesses(kRanks, [&](int rank, Shared& all) {
    body(rank, all);
    return !testing::Test::HasFailure();
  });
}

// Waits until `count` ranks have come here.
void Meet(Shared& all, int count = kRanks) {
  ++all.told;
  while (all.told < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// The GPU of one rank, and its communicator.
class OnGpu {
 public:
  // make: the communicator.
  using Make = std::function<xcclResult_t(xcclComm_t* comm)>;
  OnGpu(int rank, const Make& make, const cuda::FakeOptions& options = {}) : rank_(rank), fake_(options) {
    UseFakeGpus(fake_, {});
    EXPECT_EQ(make(&comm_), xcclSuccess) << xcclGetLastError(nullptr);
    EXPECT_EQ(xcclCommUseCuda(comm_, 0), xcclSuccess);
    EXPECT_EQ(xcclCommSetTimeLimit(comm_, 40), xcclSuccess);
    gpu_ = *cuda::Gpu::Open(fake_.table(), 0);
    stream_ = *CreateStream(gpu_);
    for (Buffers& of : on_gpu_)
      of = MakeBuffers([&]<class T>(std::span<T>& to, size_t count) { to = fake_.Allocate<T>(count); });
  }
  OnGpu(int rank, const Shared& all, const cuda::FakeOptions& options = {})
      : OnGpu(
            rank, [&](xcclComm_t* comm) { return xcclCommInitRank(comm, kRanks, all.id, rank); }, options) {}
  ~OnGpu() {
    EXPECT_EQ(xcclExpertsDestroy(layer_), xcclSuccess);
    xcclCommDestroy(comm_);  // refuses one that failed or is gone
    stream_ = {};
    gpu_.reset();
    TheGpus() = Gpus();
    EXPECT_EQ(fake_.Leaks(), "");
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  xcclResult_t Load(const std::string& plan) const { return xcclCommLoadExperts(comm_, plan.c_str()); }
  void LoadAndCreate(const std::string& plan) {
    ASSERT_EQ(Load(plan), xcclSuccess) << xcclGetLastError(nullptr);
    ASSERT_EQ(xcclExpertsCreate(&layer_, comm_), xcclSuccess) << xcclGetLastError(nullptr);
  }
  xcclResult_t Dispatch(size_t tokens, const std::function<void(xcclDispatchIn_t&)>& change = {}) const {
    xcclDispatchIn_t in = InOf(buffers(), tokens);
    const xcclDispatchOut_t out = OutOf(buffers());
    if (change) change(in);
    return xcclDispatch(&in, &out, layer_, stream_.get());
  }
  xcclResult_t Combine(xcclDataType_t type, xcclExpertRows_t of) const {
    return xcclCombine(buffers().outputs.data(), buffers().sums.data(), kWidth, type, of, layer_,
                       stream_.get());
  }
  void Synchronize() const { ASSERT_EQ(xcclCommSynchronize(comm_), xcclSuccess) << xcclGetLastError(comm_); }
  void DispatchOne() const {
    buffers().choices[0] = 0;
    buffers().choices[1] = -1;
    ASSERT_EQ(Dispatch(1), xcclSuccess) << xcclGetLastError(nullptr);
  }

  const Buffers& buffers() const { return on_gpu_[rank_]; }
  // The buffers of all ranks.
  const std::array<Buffers, kRanks>& all_buffers() const { return on_gpu_; }
  xcclComm_t comm() const { return comm_; }
  const cuda::FakeDriver& fake() const { return fake_; }
  const cuda::Gpu& gpu() const { return *gpu_; }
  cuda::Stream stream() const { return stream_.get(); }
  xcclExperts_t& layer() { return layer_; }

 private:
  const int rank_;
  cuda::FakeDriver fake_;
  xcclComm_t comm_ = nullptr;
  xcclExperts_t layer_ = nullptr;
  std::shared_ptr<const cuda::Gpu> gpu_;
  cuda::OwnedStream stream_;
  std::array<Buffers, kRanks> on_gpu_;
};

// All ranks as threads of the CPU.
class OnCpu {
 public:
  explicit OnCpu(const std::string& plan) {
    EXPECT_EQ(xcclCommInitAll(comms_.data(), kRanks, nullptr), xcclSuccess);
    xcclGroupStart();
    for (const xcclComm_t comm : comms_) xcclCommLoadExperts(comm, plan.c_str());
    EXPECT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(xcclExpertsCreate(&layers_[rank], comms_[rank]), xcclSuccess);
      buffers_[rank] = MakeBuffers([&]<class T>(std::span<T>& to, size_t count) {
        memory_.push_back(std::make_unique<std::byte[]>(count * sizeof(T)));
        to = {reinterpret_cast<T*>(memory_.back().get()), count};
      });
    }
  }
  ~OnCpu() {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(xcclExpertsDestroy(layers_[rank]), xcclSuccess);
      EXPECT_EQ(xcclCommDestroy(comms_[rank]), xcclSuccess);
    }
  }
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

  void Dispatch(std::span<const size_t> tokens,
                const std::function<void(xcclDispatchIn_t&)>& change = {}) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      xcclDispatchIn_t in = InOf(buffers_[rank], tokens[rank]);
      const xcclDispatchOut_t out = OutOf(buffers_[rank]);
      if (change) change(in);
      ASSERT_EQ(xcclDispatch(&in, &out, layers_[rank], nullptr), xcclSuccess) << xcclGetLastError(nullptr);
    }
    Synchronize();
  }
  void Combine(xcclDataType_t type, xcclExpertRows_t of) const {
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_EQ(xcclCombine(buffers_[rank].outputs.data(), buffers_[rank].sums.data(), kWidth, type, of,
                            layers_[rank], nullptr),
                xcclSuccess)
          << xcclGetLastError(nullptr);
    Synchronize();
  }
  const std::array<Buffers, kRanks>& buffers() const { return buffers_; }

 private:
  void Synchronize() const {
    for (const xcclComm_t comm : comms_) ASSERT_EQ(xcclCommSynchronize(comm), xcclSuccess);
  }

  std::array<xcclComm_t, kRanks> comms_ = {};
  std::array<xcclExperts_t, kRanks> layers_ = {};
  std::array<Buffers, kRanks> buffers_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

// All children draw the same.
using Tokens = std::array<size_t, kRanks>;
void DrawAll(const OnGpu& gpu, const OnCpu& cpu, Random& random) {
  for (int r = 0; r < kRanks; ++r) DrawCall(gpu.all_buffers()[r], cpu.buffers()[r], random);
}
void DrawAllOutputs(const OnGpu& gpu, const OnCpu& cpu, xcclDataType_t type, bool of_rows, Random& random) {
  for (int r = 0; r < kRanks; ++r) DrawOutputs(gpu.all_buffers()[r], cpu.buffers()[r], type, of_rows, random);
}

TEST(GpuExpertProcesses, StepsHaveTheBitsOfCpuRanks) {
  const std::string plan = PlanFile("steps");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    const OnCpu cpu(plan);
    gpu.LoadAndCreate(plan);
    Random random(31);
    for (int step = 0; step < 5 && !testing::Test::HasFailure(); ++step) {
      Tokens tokens = {};
      for (size_t& of : tokens) of = random.Below(3) == 0 ? 0 : random.Below(kTokens + 1);
      DrawAll(gpu, cpu, random);
      cpu.Dispatch(tokens);
      // Without a wait of the host, several calls ahead.
      const int64_t waits = gpu.fake().host_waits();
      ASSERT_EQ(gpu.Dispatch(tokens[rank]), xcclSuccess) << xcclGetLastError(nullptr);
      DrawAllOutputs(gpu, cpu, xcclFloat32, false, random);
      ASSERT_EQ(gpu.Combine(xcclFloat32, xcclWeightedEntries), xcclSuccess);
      EXPECT_EQ(gpu.fake().host_waits(), waits);
      gpu.Synchronize();
      ExpectSameRows(gpu.buffers(), cpu.buffers()[rank], kRowBytes, kScaleBytes);
      cpu.Combine(xcclFloat32, xcclWeightedEntries);
      ExpectSameSums(gpu.buffers(), cpu.buffers()[rank], tokens[rank], kWidth * 4);
      for (const xcclExpertRows_t of : {xcclEntries, xcclRows})
        for (const xcclDataType_t type : {xcclFloat16, xcclBfloat16}) {
          DrawAllOutputs(gpu, cpu, type, of == xcclRows, random);
          cpu.Combine(type, of);
          ASSERT_EQ(gpu.Combine(type, of), xcclSuccess);
          gpu.Synchronize();
          ExpectSameSums(gpu.buffers(), cpu.buffers()[rank], tokens[rank], kWidth * 2);
        }
      // Other rows on the same ways, shorter and without scales.
      for (int r = 0; r < kRanks; ++r) DrawRows(gpu.all_buffers()[r], cpu.buffers()[r], random);
      const auto again = [](xcclDispatchIn_t& in) {
        in.rowBytes = 32;
        in.scaleBytes = 0;
        in.sameChoices = 1;
      };
      cpu.Dispatch(tokens, again);
      ASSERT_EQ(gpu.Dispatch(tokens[rank], again), xcclSuccess);
      gpu.Synchronize();
      ExpectSameRows(gpu.buffers(), cpu.buffers()[rank], 32, 0);
    }
  });
}

// The calls of a step go into a graph of each rank, which then serves other choices.
TEST(GpuExpertProcesses, GraphsServeNewChoices) {
  const std::string plan = PlanFile("graphs");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    const OnCpu cpu(plan);
    gpu.LoadAndCreate(plan);
    const Tokens tokens = {kTokens, kTokens, 0, kTokens - 1};
    const cuda::ScopedContext context(gpu.gpu());
    const cuda::Driver& driver = gpu.gpu().driver();
    ASSERT_EQ(driver.StreamBeginCapture(gpu.stream(), cuda::CaptureMode::kThreadLocal),
              cuda::Result::kSuccess);
    ASSERT_EQ(gpu.Dispatch(tokens[rank]), xcclSuccess);
    ASSERT_EQ(gpu.Combine(xcclFloat32, xcclWeightedEntries), xcclSuccess);
    cuda::Graph graph = nullptr;
    ASSERT_EQ(driver.StreamEndCapture(gpu.stream(), &graph), cuda::Result::kSuccess);
    cuda::GraphExec exec = nullptr;
    ASSERT_EQ(driver.GraphInstantiate(&exec, graph, 0), cuda::Result::kSuccess);
    driver.GraphDestroy(graph);
    Random random(37);
    for (int replay = 0; replay < 10 && !testing::Test::HasFailure(); ++replay) {
      DrawAll(gpu, cpu, random);
      cpu.Dispatch(tokens);
      DrawAllOutputs(gpu, cpu, xcclFloat32, false, random);
      cpu.Combine(xcclFloat32, xcclWeightedEntries);
      ASSERT_EQ(driver.GraphLaunch(exec, gpu.stream()), cuda::Result::kSuccess);
      ASSERT_EQ(driver.StreamSynchronize(gpu.stream()), cuda::Result::kSuccess);
      gpu.Synchronize();
      ExpectSameRows(gpu.buffers(), cpu.buffers()[rank], kRowBytes, kScaleBytes);
      ExpectSameSums(gpu.buffers(), cpu.buffers()[rank], tokens[rank], kWidth * 4);
    }
    driver.GraphExecDestroy(exec);
  });
}

TEST(GpuExpertProcesses, AKilledRankEndsTheCallsOfTheOthers) {
  const std::string plan = PlanFile("killed");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    gpu.LoadAndCreate(plan);
    gpu.DispatchOne();
    gpu.Synchronize();
    Meet(all);
    if (rank == 1) std::_Exit(0);  // without a farewell
    gpu.Dispatch(1);               // refused where it is known already
    EXPECT_EQ(xcclCommSynchronize(gpu.comm()), xcclRemoteError);
    const std::string text = xcclGetLastError(gpu.comm());
    EXPECT_EQ(text.rfind("rank 1: its process has ended", 0), 0U) << text;
    EXPECT_EQ(gpu.Dispatch(1), xcclRemoteError);
  });
}

// The kernel finds it, and ranks whose kernels wait for that one are told by its process.
TEST(GpuExpertProcesses, NumbersThatDoNotFitEndAllRanks) {
  const std::string plan = PlanFile("numbers");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    gpu.LoadAndCreate(plan);
    gpu.buffers().choices[0] = rank == 3 ? 8 : 0;
    gpu.buffers().choices[1] = -1;
    EXPECT_EQ(gpu.Dispatch(1), xcclSuccess);
    Meet(all);
    EXPECT_EQ(xcclCommSynchronize(gpu.comm()), xcclInvalidUsage);
    EXPECT_EQ(xcclGetLastError(gpu.comm()), NameOf(plan) + ": rank 3: token 0: expert 8; expected -1 to 7");
    Meet(all, 2 * kRanks);
  });
}

TEST(GpuExpertProcesses, AnAbortEndsKernelsOfOtherProcesses) {
  const std::string plan = PlanFile("abort");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    gpu.LoadAndCreate(plan);
    if (rank != 1) gpu.DispatchOne();
    Meet(all);
    if (rank == 1) {
      EXPECT_EQ(xcclCommAbort(gpu.comm()), xcclSuccess);
    } else {
      EXPECT_EQ(xcclCommSynchronize(gpu.comm()), xcclRemoteError);
      EXPECT_STREQ(xcclGetLastError(gpu.comm()), "rank 1: aborted");
    }
    Meet(all, 2 * kRanks);
  });
}

TEST(GpuExpertProcesses, AnotherPlanOnOneRankIsRefusedAndMayBeTriedAgain) {
  const std::string plan = PlanFile("plan"), other = plan + ".other";
  std::ofstream(other) << std::ifstream(plan).rdbuf() << '\n';
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    EXPECT_EQ(gpu.Load(rank == 2 ? other : plan), xcclInvalidUsage);
    EXPECT_STREQ(xcclGetLastError(nullptr),
                 "rank 2: loads another plan book than rank 0; expected the same on all ranks");
    EXPECT_EQ(gpu.Load(rank == 2 ? "/no/such/file" : plan), xcclInvalidUsage);
    const std::string text = xcclGetLastError(nullptr);
    EXPECT_EQ(text.rfind(rank == 2 ? "/no/such/file: " : "rank 2: /no/such/file: ", 0), 0U) << text;
    EXPECT_EQ(gpu.Load(plan), xcclSuccess) << xcclGetLastError(nullptr);
    gpu.LoadAndCreate(plan);  // for handles made from here on
    gpu.DispatchOne();
    gpu.Synchronize();
    EXPECT_EQ(gpu.buffers().num_rows[0], rank == 0 ? kRanks : 0);
  });
}

TEST(GpuExpertProcesses, ARankOnTheCpuIsNamed) {
  const std::string plan = PlanFile("mixed");
  RunInProcesses([&](int rank, Shared& all) {
    const std::string text = "rank 2: is on the CPU, and rank 0 on a GPU; expected all on GPUs or on the CPU";
    if (rank == 2) {
      xcclComm_t comm = nullptr;
      EXPECT_EQ(xcclCommInitRank(&comm, kRanks, all.id, rank), xcclSuccess);
      EXPECT_EQ(xcclCommLoadExperts(comm, plan.c_str()), xcclInvalidUsage);
      EXPECT_EQ(xcclGetLastError(nullptr), text);
      EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
    } else {
      const OnGpu gpu(rank, all);
      EXPECT_EQ(gpu.Load(plan), xcclInvalidUsage);
      EXPECT_EQ(xcclGetLastError(nullptr), text);
    }
  });
}

TEST(GpuExpertProcesses, OtherLimitsOnOneRankAreRefused) {
  const std::string plan = PlanFile("limits");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    EXPECT_EQ(xcclCommLimitCuda(gpu.comm(), rank == 2 ? 2 : 0, 0), xcclSuccess);
    EXPECT_EQ(gpu.Load(plan), xcclInvalidUsage);
    const std::string text = xcclGetLastError(nullptr), hint = "hint: xcclCommLimitCuda";
    EXPECT_NE(text.find(NameOf(plan) + ": process "), std::string::npos) << text;
    EXPECT_EQ(text.substr(text.size() - std::min(text.size(), hint.size())), hint) << text;
    Meet(all);
  });
}

TEST(GpuExpertProcesses, LimitsAreNamedAsTheProgramSetsThem) {
  const std::string plan = PlanFile("named-limits");
  RunInProcesses([&](int rank, Shared& all) {
    const OnGpu gpu(rank, all, {.multiprocessors = 1, .kernel = {.registers = 168}});
    EXPECT_EQ(gpu.Load(plan), xcclInvalidUsage);
    const std::string text = xcclGetLastError(nullptr),
                      end = "other communicators of this process hold 0; hint: xcclCommLimitCuda";
    EXPECT_EQ(text.substr(text.size() - std::min(text.size(), end.size())), end) << text;
    Meet(all);
  });
}

// The others wait for it when it fails.
TEST(GpuExpertProcesses, AllSayWhyOneRankCouldNotLoad) {
  const std::string plan = PlanFile("one-fails");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    if (rank == 2)
      TheGpus().expert_images = [](DataType, int32_t) -> StatusOr<std::string> {
        return InvalidInput("no compiler here");
      };
    EXPECT_EQ(gpu.Load(plan), xcclInvalidUsage);
    EXPECT_STREQ(xcclGetLastError(nullptr), "rank 2: no compiler here");
    Meet(all);
  });
}

TEST(GpuExpertProcesses, LegacyIpcIsRefused) {
  const std::string plan = PlanFile("legacy");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all, {.file_descriptors = false});
    EXPECT_EQ(gpu.Load(plan), xcclInvalidUsage);
    const std::string text = xcclGetLastError(nullptr);
    EXPECT_NE(text.find(": " + NameOf(plan) +
                        ": device 0 shares memory between processes by legacy IPC; expected file "
                        "descriptors: peers may use a rank's slots after its process has given them back"),
              std::string::npos)
        << text;
    Meet(all);
  });
}

TEST(GpuExpertProcesses, SeveralHostsAreRefusedAndTheCommunicatorGoesOn) {
  if (!ofi::Available().ok()) GTEST_SKIP() << ofi::Available().message();
  const std::string plan = PlanFile("hosts");
  RunInProcesses([&](int rank, Shared& all) {
    setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
    setenv("XCCL_SIZE", std::to_string(kRanks).c_str(), 1);
    setenv("XCCL_JOB", NameOf(plan).c_str(), 1);
    setenv("XCCL_HOST_ID", rank < 2 ? "first" : "second", 1);
    const OnGpu gpu(rank, xcclCommInitFromLauncher);
    EXPECT_EQ(gpu.Load(plan), xcclInvalidUsage);
    EXPECT_EQ(
        xcclGetLastError(nullptr),
        NameOf(plan) +
            ": ranks 0 and 2 are on different hosts; expected one host: rows between hosts need a proxy "
            "that sends messages of dispatch, and collectives alone have one; hint: a communicator on the "
            "CPU");
    xcclResult_t state = xcclInternalError;
    EXPECT_EQ(xcclCommGetAsyncError(gpu.comm(), &state), xcclSuccess);
    EXPECT_EQ(state, xcclSuccess);
    Meet(all);
  });
}

// The memory of a rank that has left is there for as long as a peer uses it, and a handle may outlive its
// communicator.
TEST(GpuExpertProcesses, RanksLeaveOneAfterTheOther) {
  const std::string plan = PlanFile("leave");
  RunInProcesses([&](int rank, Shared& all) {
    OnGpu gpu(rank, all);
    gpu.LoadAndCreate(plan);
    for (int call = 0; call < 20; ++call) gpu.DispatchOne();
    gpu.Synchronize();
    while (all.told < rank) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(xcclCommDestroy(gpu.comm()), xcclSuccess);
    ++all.told;
  });
}

}  // namespace
}  // namespace xccl::c_api
