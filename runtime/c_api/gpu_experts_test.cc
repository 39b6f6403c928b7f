// Expert dispatch and combine on GPUs through the C API, with a driver and kernels in host memory: the bits
// of CPU ranks, without a wait of the host, in streams and graphs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "device/host.h"
#include "ir/call_log.h"
#include "ir/collective.h"
#include "runtime/c_api/call_log.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/testing/books.h"
#include "runtime/c_api/testing/expert_buffers.h"
#include "runtime/c_api/testing/expert_checks.h"
#include "runtime/c_api/testing/moe_plan.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/xccl.h"

namespace xccl::c_api {
namespace {

using OwnedGraph = cuda::Owned<cuda::GraphExec, &cuda::Driver::GraphExecDestroy>;

// Four ranks on two devices, and four threads of the CPU beside them.
class GpuExpertsTest : public testing::Test {
 protected:
  void SetUp() override {
    UseFakeGpus(*fake_, shape_);
    plan_ = MakeMoePlan(testing::TempDir() + "/gpus" + std::to_string(getpid()) + ".plan.json");
    const int devices[kRanks] = {0, 1, 0, 1};
    ASSERT_NO_FATAL_FAILURE(MakeRanks(devices));
    ASSERT_EQ(xcclCommInitAll(cpu_.data(), kRanks, nullptr), xcclSuccess);
    for (const xcclComm_t comm : gpu_) ASSERT_EQ(xcclCommSetTimeLimit(comm, 60), xcclSuccess);
    Load(gpu_, gpu_layers_);
    Load(cpu_, cpu_layers_);
    for (int rank = 0; rank < kRanks; ++rank) {
      gpus_[rank] = *cuda::Gpu::Open(fake_->table(), devices[rank]);
      streams_[rank] = *CreateStream(gpus_[rank]);
      on_gpu_[rank] = MakeBuffers(
          [&]<class T>(std::span<T>& to, size_t count) { to = fake_->Allocate<T>(count, devices[rank]); });
      on_cpu_[rank] = MakeBuffers([&]<class T>(std::span<T>& to, size_t count) {
        memory_.push_back(std::make_unique<std::byte[]>(count * sizeof(T)));
        to = {reinterpret_cast<T*>(memory_.back().get()), count};
      });
    }
  }
  void TearDown() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(xcclExpertsDestroy(gpu_layers_[rank]), xcclSuccess);
      EXPECT_EQ(xcclExpertsDestroy(cpu_layers_[rank]), xcclSuccess);
      xcclCommDestroy(gpu_[rank]);  // refuses those that failed or are gone
      xcclCommDestroy(cpu_[rank]);
      streams_[rank] = {};
      gpus_[rank].reset();
    }
    TheGpus() = Gpus();
    EXPECT_EQ(fake_->Leaks(), "");
  }
  virtual void MakeRanks(const int* devices) {
    ASSERT_EQ(xcclCommInitAll(gpu_.data(), kRanks, devices), xcclSuccess);
  }
  void Load(std::span<const xcclComm_t> comms, std::array<xcclExperts_t, kRanks>& layers) const {
    xcclGroupStart();
    for (const xcclComm_t comm : comms) xcclCommLoadExperts(comm, plan_.c_str());
    ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_EQ(xcclExpertsCreate(&layers[rank], comms[rank]), xcclSuccess) << xcclGetLastError(nullptr);
  }
  std::string Said(const std::string& fault) const { return plan_.substr(plan_.rfind('/') + 1) + fault; }
  // The calls of other ranks may end before the kernel of this one fails, so it is waited for first.
  void AllEndAfter(int rank, const std::string& fault) const {
    EXPECT_EQ(xcclCommSynchronize(gpu_[rank]), xcclInvalidUsage);
    for (const xcclComm_t comm : gpu_) {
      EXPECT_EQ(xcclCommSynchronize(comm), xcclInvalidUsage);
      EXPECT_EQ(xcclGetLastError(comm), Said(fault));
    }
  }
  void Synchronize() const {
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(xcclCommSynchronize(cpu_[rank]), xcclSuccess) << xcclGetLastError(cpu_[rank]);
      ASSERT_EQ(xcclCommSynchronize(gpu_[rank]), xcclSuccess) << xcclGetLastError(gpu_[rank]);
    }
  }

  void RunSteps(int steps);

  // A thread for each rank makes the calls and waits for its own rank after each.
  template <typename Call>
  void CallOnThreads(const Call& call) const {
    constexpr int kCalls = 100;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([this, rank, &call] {
        for (int i = 0; i < kCalls && !HasFailure(); ++i) {
          EXPECT_EQ(call(rank), xcclSuccess) << xcclGetLastError(nullptr);
          EXPECT_EQ(xcclCommSynchronize(gpu_[rank]), xcclSuccess) << xcclGetLastError(nullptr);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }

  // Both get equal choices, weights and rows.
  void Draw(Random& random) {
    for (size_t& tokens : tokens_) tokens = random.Below(3) == 0 ? 0 : random.Below(kTokens + 1);
    DrawChoices(random);
  }
  void DrawChoices(Random& random) const {
    for (int rank = 0; rank < kRanks; ++rank) DrawCall(on_gpu_[rank], on_cpu_[rank], random);
  }

  void DispatchOnCpu(const std::function<void(const Buffers&, xcclDispatchIn_t&)>& change = {}) const {
    for (int rank = 0; rank < kRanks; ++rank)
      Dispatch(cpu_layers_[rank], on_cpu_[rank], tokens_[rank], change, nullptr);
  }
  void DispatchOnGpu(const std::function<void(const Buffers&, xcclDispatchIn_t&)>& change = {}) const {
    for (int rank = 0; rank < kRanks; ++rank)
      Dispatch(gpu_layers_[rank], on_gpu_[rank], tokens_[rank], change, streams_[rank].get());
  }
  static void Dispatch(xcclExperts_t layer, const Buffers& of, size_t tokens,
                       const std::function<void(const Buffers&, xcclDispatchIn_t&)>& change,
                       xcclStream_t stream) {
    xcclDispatchIn_t in = InOf(of, tokens);
    const xcclDispatchOut_t out = OutOf(of);
    if (change) change(of, in);
    EXPECT_EQ(xcclDispatch(&in, &out, layer, stream), xcclSuccess) << xcclGetLastError(nullptr);
  }

  void ExpectAllRows(size_t row_bytes = kRowBytes, size_t scale_bytes = kScaleBytes) const {
    for (int rank = 0; rank < kRanks; ++rank)
      ExpectSameRows(on_gpu_[rank], on_cpu_[rank], row_bytes, scale_bytes);
  }

  void DrawAllOutputs(Random& random, xcclDataType_t type, bool of_rows) const {
    for (int rank = 0; rank < kRanks; ++rank)
      DrawOutputs(on_gpu_[rank], on_cpu_[rank], type, of_rows, random);
  }
  void CombineBoth(Random& random, xcclDataType_t type, xcclExpertRows_t of) const {
    DrawAllOutputs(random, type, of == xcclRows);
    for (int rank = 0; rank < kRanks; ++rank) {
      Combine(cpu_layers_, on_cpu_, rank, type, of, nullptr);
      Combine(gpu_layers_, on_gpu_, rank, type, of, streams_[rank].get());
    }
    Synchronize();
    ExpectAllSums(kWidth * (type == xcclFloat32 ? 4 : 2));
  }
  static void Combine(std::span<const xcclExperts_t> layers, std::span<const Buffers> buffers, int rank,
                      xcclDataType_t type, xcclExpertRows_t of, xcclStream_t stream) {
    EXPECT_EQ(xcclCombine(buffers[rank].outputs.data(), buffers[rank].sums.data(), kWidth, type, of,
                          layers[rank], stream),
              xcclSuccess)
        << xcclGetLastError(nullptr);
  }
  void ExpectAllSums(size_t width) const {
    for (int rank = 0; rank < kRanks; ++rank)
      ExpectSameSums(on_gpu_[rank], on_cpu_[rank], tokens_[rank], width);
  }

  const std::unique_ptr<cuda::FakeDriver> fake_ =
      std::make_unique<cuda::FakeDriver>(cuda::FakeOptions{.devices = 2});
  device::HostShape shape_ = {};  // of a block
  std::string plan_;
  std::array<xcclComm_t, kRanks> gpu_ = {}, cpu_ = {};
  std::array<xcclExperts_t, kRanks> gpu_layers_ = {}, cpu_layers_ = {};
  std::array<std::shared_ptr<const cuda::Gpu>, kRanks> gpus_;
  std::array<cuda::OwnedStream, kRanks> streams_;
  std::array<Buffers, kRanks> on_gpu_, on_cpu_;
  std::array<size_t, kRanks> tokens_ = {};
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

// Steps forward and backward have the bits of CPU ranks.
void GpuExpertsTest::RunSteps(int steps) {
  Random random(31);
  for (int step = 0; step < steps && !HasFailure(); ++step) {
    Draw(random);
    const bool narrow = step % 2 == 1;
    const auto choose = [narrow](const Buffers& of, xcclDispatchIn_t& in) {
      if (narrow) in.choices = of.narrow.data(), in.choiceType = xcclInt32;
    };
    DispatchOnCpu(choose);
    DispatchOnGpu(choose);
    Synchronize();
    ExpectAllRows();
    for (const xcclExpertRows_t of : {xcclWeightedEntries, xcclEntries, xcclRows})
      for (const xcclDataType_t type : {xcclFloat32, xcclFloat16, xcclBfloat16})
        CombineBoth(random, type, of);
    // Other rows on the same ways, shorter and without scales.
    for (int rank = 0; rank < kRanks; ++rank) DrawRows(on_gpu_[rank], on_cpu_[rank], random);
    const auto again = [](const Buffers&, xcclDispatchIn_t& in) {
      in.choices = nullptr;
      in.weights = nullptr;
      in.rowBytes = 32;
      in.scaleBytes = 0;
      in.sameChoices = 1;
    };
    DispatchOnCpu(again);
    DispatchOnGpu(again);
    Synchronize();
    ExpectAllRows(32, 0);
    CombineBoth(random, xcclFloat32, xcclRows);
  }
}

TEST_F(GpuExpertsTest, StepsHaveTheBitsOfCpuRanks) { RunSteps(20); }

class GpuExpertsOfWarps : public GpuExpertsTest {
 protected:
  GpuExpertsOfWarps() { shape_ = cuda::kTestShape; }
};
TEST_F(GpuExpertsOfWarps, StepsHaveTheBitsOfCpuRanks) { RunSteps(2); }

// Ranks that have an id know nothing of their being in one process.
class GpuExpertsById : public GpuExpertsTest {
 protected:
  void MakeRanks(const int* devices) override {
    xcclUniqueId id = {};
    ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(xcclCommInitRank(&gpu_[rank], kRanks, id, rank), xcclSuccess);
      ASSERT_EQ(xcclCommUseCuda(gpu_[rank], devices[rank]), xcclSuccess);
    }
  }
};
TEST_F(GpuExpertsById, StepsHaveTheBitsOfCpuRanks) { RunSteps(2); }

// The calls of a step go into a graph of each rank, which then serves other choices.
TEST_F(GpuExpertsTest, GraphsServeNewChoices) {
  Random random(37);
  tokens_ = {kTokens, kTokens, 0, kTokens - 1};
  std::vector<OwnedGraph> graphs;
  for (int rank = 0; rank < kRanks; ++rank) {
    const cuda::Gpu& gpu = *gpus_[rank];
    const cuda::ScopedContext context(gpu);
    const cuda::Stream stream = streams_[rank].get();
    ASSERT_TRUE(gpu.Check(gpu.driver().StreamBeginCapture(stream, cuda::CaptureMode::kThreadLocal), "").ok());
    Dispatch(gpu_layers_[rank], on_gpu_[rank], tokens_[rank], {}, stream);
    Combine(gpu_layers_, on_gpu_, rank, xcclFloat32, xcclWeightedEntries, stream);
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(gpu.Check(gpu.driver().StreamEndCapture(stream, &graph), "").ok());
    cuda::GraphExec exec = nullptr;
    ASSERT_TRUE(gpu.Check(gpu.driver().GraphInstantiate(&exec, graph, 0), "").ok());
    gpu.driver().GraphDestroy(graph);
    graphs.emplace_back(gpus_[rank], exec);
  }
  for (int replay = 0; replay < 100 && !HasFailure(); ++replay) {
    DrawChoices(random);
    DispatchOnCpu();
    for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(xcclCommSynchronize(cpu_[rank]), xcclSuccess);
    DrawAllOutputs(random, xcclFloat32, false);
    for (int rank = 0; rank < kRanks; ++rank) {
      Combine(cpu_layers_, on_cpu_, rank, xcclFloat32, xcclWeightedEntries, nullptr);
      const cuda::ScopedContext context(*gpus_[rank]);
      gpus_[rank]->driver().GraphLaunch(graphs[rank].get(), streams_[rank].get());
    }
    for (const cuda::OwnedStream& stream : streams_) ASSERT_TRUE(cuda::Synchronize(stream).ok());
    Synchronize();
    ExpectAllRows();
    ExpectAllSums(kWidth * 4);
  }
}

// Several steps are queued, on two streams of each rank, before any of them has run.
TEST_F(GpuExpertsTest, CallsOfARankFollowEachOtherWithoutTheHost) {
  Random random(41);
  std::vector<cuda::OwnedStream> others;
  for (int rank = 0; rank < kRanks; ++rank) others.push_back(*CreateStream(gpus_[rank]));
  Draw(random);
  DispatchOnCpu();
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(xcclCommSynchronize(cpu_[rank]), xcclSuccess);
  DrawAllOutputs(random, xcclFloat32, false);
  const int64_t waits = fake_->host_waits();
  for (int step = 0; step < 10; ++step)
    for (int rank = 0; rank < kRanks; ++rank) {
      const xcclStream_t stream = step % 2 == 0 ? streams_[rank].get() : others[rank].get();
      Dispatch(gpu_layers_[rank], on_gpu_[rank], tokens_[rank], {}, stream);
      Combine(gpu_layers_, on_gpu_, rank, xcclFloat32, xcclEntries, stream);
    }
  EXPECT_EQ(fake_->host_waits(), waits);
  for (int rank = 0; rank < kRanks; ++rank)
    Combine(cpu_layers_, on_cpu_, rank, xcclFloat32, xcclEntries, nullptr);
  Synchronize();
  ExpectAllRows();
  ExpectAllSums(kWidth * 4);
}

// A plan of experts is no book of plans for collectives.
TEST_F(GpuExpertsTest, CollectivesNeedABook) {
  const std::span<float> buffer = fake_->Allocate<float>(8, 0);
  const auto all_reduce = [&] {
    EXPECT_EQ(
        xcclAllReduce(buffer.data(), buffer.data() + 4, 4, xcclFloat32, xcclSum, gpu_[0], streams_[0].get()),
        xcclInvalidUsage);
    return std::string(xcclGetLastError(nullptr));
  };
  EXPECT_EQ(all_reduce(), "allreduce: no plan book is loaded");
  void* handle = nullptr;
  EXPECT_EQ(xcclCommRegister(gpu_[0], buffer.data(), buffer.size_bytes(), &handle), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(nullptr), "register: no plan book is loaded");
  const std::string book = MakeBook("allgather-alone", kRanks, {CollectiveKind::kAllgather});
  xcclGroupStart();
  for (const xcclComm_t comm : gpu_) xcclCommLoadPlanBook(comm, book.c_str());
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  std::array<xcclExperts_t, kRanks> again = {};
  Load(gpu_, again);  // behind the book
  for (const xcclExperts_t layer : again) EXPECT_EQ(xcclExpertsDestroy(layer), xcclSuccess);
  EXPECT_EQ(all_reduce().rfind(book + ": no plan for allreduce", 0), 0U) << all_reduce();
}

// The next call of a rank needs the others, which may still wait for their last one.
TEST_F(GpuExpertsTest, RanksWaitForTheirOwnCalls) {
  Random random(61);
  Draw(random);
  CallOnThreads([&](int rank) {
    const xcclDispatchIn_t in = InOf(on_gpu_[rank], tokens_[rank]);
    const xcclDispatchOut_t out = OutOf(on_gpu_[rank]);
    return xcclDispatch(&in, &out, gpu_layers_[rank], streams_[rank].get());
  });
  DispatchOnCpu();
  Synchronize();
  ExpectAllRows();
}

TEST_F(GpuExpertsTest, RanksWaitForTheirOwnCollectives) {
  const std::string book = MakeBook("allreduce-threads", kRanks, {CollectiveKind::kAllreduce});
  xcclGroupStart();
  for (const xcclComm_t comm : gpu_) xcclCommLoadPlanBook(comm, book.c_str());
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  constexpr size_t kFloats = 64;
  std::array<std::span<float>, kRanks> inputs, outputs;
  for (int rank = 0; rank < kRanks; ++rank) {
    inputs[rank] = fake_->Allocate<float>(kFloats, rank % 2);
    outputs[rank] = fake_->Allocate<float>(kFloats, rank % 2);
    std::ranges::fill(inputs[rank], static_cast<float>(rank + 1));
  }
  CallOnThreads([&](int rank) {
    return xcclAllReduce(inputs[rank].data(), outputs[rank].data(), kFloats, xcclFloat32, xcclSum, gpu_[rank],
                         streams_[rank].get());
  });
  for (const std::span<float> output : outputs) EXPECT_EQ(std::ranges::count(output, 10.0F), kFloats);
}

// A collective of the communicator writes, on another stream, the rows that a dispatch sends.
TEST_F(GpuExpertsTest, CallsFollowCollectivesOfTheirCommunicator) {
  const std::string book = MakeBook("allreduce-ring-simple", kRanks, {CollectiveKind::kAllreduce});
  xcclGroupStart();
  for (const xcclComm_t comm : gpu_) xcclCommLoadPlanBook(comm, book.c_str());
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  std::vector<cuda::OwnedStream> others;
  for (int rank = 0; rank < kRanks; ++rank) others.push_back(*CreateStream(gpus_[rank]));
  Random random(53);
  Draw(random);
  constexpr size_t kFloats = kTokens * kRowBytes / sizeof(float);
  std::array<std::span<float>, kRanks> inputs;
  for (int rank = 0; rank < kRanks; ++rank) inputs[rank] = fake_->Allocate<float>(kFloats, rank % 2);
  for (int step = 0; step < 10 && !HasFailure(); ++step) {
    for (size_t i = 0; i < kFloats; ++i) {
      float sum = 0;
      for (int rank = 0; rank < kRanks; ++rank)
        sum += inputs[rank][i] = static_cast<float>(random.Below(100));
      for (const Buffers& of : on_cpu_) std::memcpy(of.rows.data() + i * sizeof sum, &sum, sizeof sum);
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(xcclAllReduce(inputs[rank].data(), on_gpu_[rank].rows.data(), kFloats, xcclFloat32, xcclSum,
                              gpu_[rank], others[rank].get()),
                xcclSuccess)
          << xcclGetLastError(nullptr);
      Dispatch(gpu_layers_[rank], on_gpu_[rank], tokens_[rank], {}, streams_[rank].get());
    }
    DispatchOnCpu();
    Synchronize();
    ExpectAllRows();
  }
}

class GpuExpertsCounted : public GpuExpertsTest {
 protected:
  void SetUp() override {
    setenv("XCCL_LOG_CALLS", file_.c_str(), 1);
    ForgetCallLog();
    GpuExpertsTest::SetUp();
  }
  void TearDown() override {
    GpuExpertsTest::TearDown();
    unsetenv("XCCL_LOG_CALLS");
    ForgetCallLog();
  }
  const std::string file_ = testing::TempDir() + "/gpu_calls.json";
};

// Kernels' times are not known. Calls that are refused are not counted.
TEST_F(GpuExpertsCounted, CallsAreInTheLog) {
  tokens_ = {kTokens, 3, 0, 1};
  Random random(73);
  DrawChoices(random);
  for (int call = 0; call < 2; ++call) {
    DispatchOnCpu();
    DispatchOnGpu();
  }
  Synchronize();
  CombineBoth(random, xcclBfloat16, xcclEntries);
  xcclDispatchIn_t in = InOf(on_gpu_[0], kTokens + 1);
  const xcclDispatchOut_t out = OutOf(on_gpu_[0]);
  EXPECT_EQ(xcclDispatch(&in, &out, gpu_layers_[0], nullptr), xcclInvalidArgument);
  ASSERT_EQ(xcclCommFinalize(gpu_[0]), xcclSuccess);  // writes
  const StatusOr<std::string> text = ReadFile(file_);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const StatusOr<CallLog> log = ReadCallLog(*text, file_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_EQ(log->communicators.size(), 2U * kRanks);
  for (size_t i = 0; i < 2 * kRanks; ++i) {  // by rank, first that on the GPU
    std::vector<CountedExperts> rows = log->communicators[i].experts;
    const bool on_gpu = i % 2 == 0;
    for (CountedExperts& row : rows) EXPECT_EQ(std::exchange(row.time_ps, 0) > 0, !on_gpu);
    const auto tokens = static_cast<int64_t>(tokens_[i / 2]);
    const CountedExperts dispatches{.combines = false,
                                    .row_bytes = kRowBytes + kScaleBytes,
                                    .served_by = Said(""),
                                    .tokens = 2 * tokens,
                                    .calls = 2,
                                    .timed = on_gpu ? 0 : 2};
    const CountedExperts combines{.combines = true,
                                  .row_bytes = 2 * kWidth,
                                  .served_by = Said(""),
                                  .tokens = tokens,
                                  .calls = 1,
                                  .timed = on_gpu ? 0 : 1};
    EXPECT_EQ(rows, (std::vector<CountedExperts>{dispatches, combines})) << i;
  }
}

// Each layer has its ways, and one that is made later may take the memory of one that is gone.
TEST_F(GpuExpertsTest, LayersKeepTheirWays) {
  Random random(43);
  Draw(random);
  DispatchOnCpu();
  DispatchOnGpu();
  const std::array<xcclExperts_t, kRanks> first = gpu_layers_;
  for (int round = 0; round < 2; ++round) {
    std::array<xcclExperts_t, kRanks> layers = {};
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(xcclExpertsCreate(&layers[rank], gpu_[rank]), xcclSuccess);
      EXPECT_EQ(xcclCombine(on_gpu_[rank].outputs.data(), on_gpu_[rank].sums.data(), kWidth, xcclFloat32,
                            xcclRows, layers[rank], streams_[rank].get()),
                xcclInvalidUsage);
      EXPECT_STREQ(xcclGetLastError(nullptr),
                   "combine: the handle has no ways; expected a dispatch with it before");
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      xcclDispatchIn_t in = InOf(on_gpu_[rank], 0);
      xcclDispatchOut_t out = XCCL_DISPATCH_OUT_INITIALIZER;
      in.rowBytes = in.scaleBytes = 0;
      EXPECT_EQ(xcclDispatch(&in, &out, layers[rank], streams_[rank].get()), xcclSuccess);
      EXPECT_EQ(xcclExpertsDestroy(layers[rank]), xcclSuccess);
    }
  }
  gpu_layers_ = first;
  Synchronize();
  CombineBoth(random, xcclFloat32, xcclWeightedEntries);
}

TEST_F(GpuExpertsTest, CallsThatKernelsCannotServeAreRefusedAtOnce) {
  const Buffers& of = on_gpu_[0];
  const std::string name = plan_.substr(plan_.rfind('/') + 1);
  const auto dispatch = [&](const auto& change) {
    xcclDispatchIn_t in = InOf(of, 1);
    xcclDispatchOut_t out = OutOf(of);
    change(in, out);
    EXPECT_NE(xcclDispatch(&in, &out, gpu_layers_[0], streams_[0].get()), xcclSuccess);
    return std::string(xcclGetLastError(nullptr));
  };
  using In = xcclDispatchIn_t;
  using Out = xcclDispatchOut_t;
  EXPECT_EQ(
      dispatch([](In& in, Out&) { in.rowBytes = 40, in.scaleBytes = 8; }),
      name + ": dispatch: rows of 40 bytes with scales of 8; expected multiples of 16, together at most 64");
  EXPECT_EQ(
      dispatch([](In& in, Out&) { in.rowBytes = 64; }),
      name + ": dispatch: rows of 64 bytes with scales of 16; expected multiples of 16, together at most 64");
  EXPECT_EQ(dispatch([](In&, Out& out) { out.maxRows = 31; }),
            "dispatch: out.maxRows is 31; expected 32 or more: on a GPU each rank has 8 rows");
  EXPECT_EQ(dispatch([](In& in, Out&) { in.rows = static_cast<const char*>(in.rows) + 4; }),
            "dispatch: in.rows is at an address mod 16 of 4; expected 0 on a GPU");
  EXPECT_EQ(dispatch([](In& in, Out&) { in.tokens = 9; }),
            "dispatch: 9 tokens; expected at most 8, the plan's");
  EXPECT_EQ(xcclCombine(of.outputs.data(), of.sums.data(), 3, xcclFloat32, xcclRows, gpu_layers_[0], nullptr),
            xcclInvalidUsage);
  EXPECT_EQ(xcclGetLastError(nullptr),
            name + ": combine: rows of 12 bytes; expected a multiple of 16, at most 128");
  EXPECT_EQ(
      xcclCombine(of.outputs.data() + 1, of.sums.data(), 4, xcclFloat32, xcclRows, gpu_layers_[0], nullptr),
      xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "combine: rows is at an address mod 16 of 4; expected 0 on a GPU");
  Random random(47);
  Draw(random);  // the communicators go on
  DispatchOnCpu();
  DispatchOnGpu();
  Synchronize();
  ExpectAllRows();
}

TEST_F(GpuExpertsTest, LoadsSayWhatDoesNotFit) {
  const int devices[kRanks] = {0, 1, 0, 1};
  const std::string name = plan_.substr(plan_.rfind('/') + 1);
  const std::string other = plan_ + ".other";
  std::ofstream(other) << std::ifstream(plan_).rdbuf() << '\n';
  const auto load = [&](int max_ctas, size_t memory_bytes, const std::string& of_rank_2) {
    std::array<xcclComm_t, kRanks> comms = {};
    EXPECT_EQ(xcclCommInitAll(comms.data(), kRanks, devices), xcclSuccess);
    for (const xcclComm_t comm : comms) {
      EXPECT_EQ(xcclCommLimitCuda(comm, max_ctas, memory_bytes), xcclSuccess);
    }
    std::string text;
    for (int rank = 0; rank < kRanks && text.empty(); ++rank)
      if (xcclCommLoadExperts(comms[rank], rank == 2 ? of_rank_2.c_str() : plan_.c_str()) != xcclSuccess)
        text = xcclGetLastError(nullptr);
    for (const xcclComm_t comm : comms) xcclCommDestroy(comm);
    return text;
  };
  EXPECT_EQ(load(64, 0, plan_), "");
  EXPECT_EQ(load(1, 0, plan_).substr(name.size()), ": 2 CTAs on a rank; xcclCommLimitCuda allows 1");
  const std::string memory = load(0, 1000, plan_), hint = "the limit is 1000 bytes; hint: xcclCommLimitCuda";
  EXPECT_EQ(memory.substr(memory.size() - std::min(memory.size(), hint.size())), hint) << memory;
  EXPECT_EQ(load(0, 0, other), "ranks load different plans of experts; expected the same in the same order");
}

TEST_F(GpuExpertsTest, CollectivesNameTheSameLimits) {
  const int devices[kRanks] = {0, 1, 0, 1};
  const std::string book = MakeBook("alltoall-limited", kRanks, {CollectiveKind::kAlltoall});
  const auto load = [&](int max_ctas, size_t memory_bytes) {
    std::array<xcclComm_t, kRanks> comms = {};
    EXPECT_EQ(xcclCommInitAll(comms.data(), kRanks, devices), xcclSuccess);
    EXPECT_EQ(xcclCommLimitCuda(comms[0], max_ctas, memory_bytes), xcclSuccess);
    EXPECT_EQ(xcclCommLoadPlanBook(comms[0], book.c_str()), xcclInvalidUsage);
    std::string text = xcclGetLastError(nullptr);
    for (const xcclComm_t comm : comms) xcclCommDestroy(comm);
    return text;
  };
  const std::string ctas = load(1, 0), memory = load(0, 1000);
  EXPECT_NE(ctas.find(" CTAs on a rank; xcclCommLimitCuda allows 1"), std::string::npos) << ctas;
  EXPECT_NE(memory.find("the limit is 1000 bytes; hint: xcclCommLimitCuda"), std::string::npos) << memory;
}

// The numbers are the device's, so the kernel finds what is wrong with them, and all ranks end.
TEST_F(GpuExpertsTest, NumbersThatDoNotFitEndAllRanks) {
  tokens_ = {1, 1, 1, 1};
  for (const Buffers& of : on_gpu_) of.choices[1] = -1;
  on_gpu_[3].choices[0] = (int64_t{1} << 32) + 1;
  DispatchOnGpu();
  const std::string fault = ": rank 3: token 0: expert 4294967297; expected -1 to 7";
  AllEndAfter(3, fault);
  xcclDispatchIn_t in = InOf(on_gpu_[0], 0);
  const xcclDispatchOut_t out = OutOf(on_gpu_[0]);
  EXPECT_EQ(xcclDispatch(&in, &out, gpu_layers_[0], streams_[0].get()), xcclInvalidUsage);
  EXPECT_EQ(xcclGetLastError(nullptr), Said(fault));
}

TEST_F(GpuExpertsTest, ExpertsThatATokenChoosesTwiceEndAllRanks) {
  tokens_ = {1, 1, 1, 1};
  for (const Buffers& of : on_gpu_) of.choices[0] = of.choices[1] = -1;
  // The last rank's, since calls after a kernel that fails may be refused.
  on_gpu_[3].choices[0] = on_gpu_[3].choices[1] = 4;
  DispatchOnGpu();
  AllEndAfter(3, ": rank 3: token 0: expert 4 twice; expected each at most once");
}

// A rank may give none where nothing came, which its kernel alone knows.
TEST_F(GpuExpertsTest, NullRowsAreRefusedWhereRowsCame) {
  tokens_ = {1, 1, 1, 1};
  for (const Buffers& of : on_gpu_) of.choices[0] = 6, of.choices[1] = -1;
  DispatchOnGpu();
  Synchronize();
  // Rows come to the last rank, since calls after a kernel that fails may be refused.
  const auto combine = [&](bool null_of_3) {
    for (int rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(xcclCombine(rank == 3 && !null_of_3 ? on_gpu_[rank].outputs.data() : nullptr,
                            on_gpu_[rank].sums.data(), kWidth, xcclFloat32, xcclRows, gpu_layers_[rank],
                            streams_[rank].get()),
                xcclSuccess);
  };
  combine(false);
  Synchronize();
  combine(true);
  AllEndAfter(3, ": rank 3: combine: the rows are null; expected an address, since rows came");
}

TEST_F(GpuExpertsTest, RowsAndSumsThatOverlapAreRefused) {
  tokens_ = {kTokens, kTokens, kTokens, kTokens};
  Random random(67);
  DrawChoices(random);
  DispatchOnCpu();
  DispatchOnGpu();
  Synchronize();
  const auto combine = [&](size_t sums_at, xcclExpertRows_t of) {
    EXPECT_EQ(xcclCombine(on_gpu_[0].outputs.data() + kWidth, on_gpu_[0].outputs.data() + sums_at, kWidth,
                          xcclFloat32, of, gpu_layers_[0], streams_[0].get()),
              xcclInvalidArgument);
    EXPECT_STREQ(xcclGetLastError(nullptr), "combine: rows and sums overlap; expected them apart");
  };
  for (const xcclExpertRows_t of : {xcclWeightedEntries, xcclEntries, xcclRows}) {
    combine(0, of);
    combine(kWidth, of);
  }
  combine(kWidth * kPlaces, xcclRows);
  CombineBoth(random, xcclFloat32, xcclRows);  // the communicators go on
}

// Later launches on any rank know of it.
TEST_F(GpuExpertsTest, CrashedKernelsAreFoundWithoutWaiting) {
  Random random(71);
  Draw(random);
  DispatchOnGpu();
  Synchronize();
  xcclResult_t state = xcclSuccess;
  EXPECT_EQ(xcclCommGetAsyncError(gpu_[1], &state), xcclSuccess);
  EXPECT_EQ(state, xcclSuccess);
  fake_->BreakStreams(cuda::Result::kIllegalAddress);
  EXPECT_EQ(xcclCommGetAsyncError(gpu_[1], &state), xcclSuccess);
  fake_->BreakStreams(cuda::Result::kSuccess);
  EXPECT_EQ(state, xcclInvalidUsage);
  for (const int rank : {3, 1}) {
    const xcclDispatchIn_t in = InOf(on_gpu_[rank], 0);
    const xcclDispatchOut_t out = OutOf(on_gpu_[rank]);
    EXPECT_EQ(xcclDispatch(&in, &out, gpu_layers_[rank], streams_[rank].get()), xcclInvalidUsage);
    EXPECT_EQ(xcclGetLastError(nullptr), "cuda: device 0: " + plan_.substr(plan_.rfind('/') + 1) +
                                             ": a kernel failed: fake error (700, FAKE_ERROR)");
  }
}

TEST_F(GpuExpertsTest, EntriesWithoutRoomEndAllRanks) {
  tokens_ = {1, 1, 1, 1};
  for (int rank = 0; rank < kRanks; ++rank) {
    const Buffers& of = on_gpu_[rank];
    of.choices[0] = 4;
    of.choices[1] = -1;
    xcclDispatchIn_t in = InOf(of, 1);
    xcclDispatchOut_t out = OutOf(of);
    out.maxEntries = 3;
    EXPECT_EQ(xcclDispatch(&in, &out, gpu_layers_[rank], streams_[rank].get()), xcclSuccess);
  }
  AllEndAfter(2, ": rank 2: 4 entries come; expected at most 3, for which there is room");
}

// A rank that never comes: the abort of one ends the kernels of all.
TEST_F(GpuExpertsTest, AbortsEndKernelsThatWait) {
  tokens_ = {1, 1, 1, 1};
  for (const Buffers& of : on_gpu_) of.choices[1] = -1;
  for (int rank = 1; rank < kRanks; ++rank)
    Dispatch(gpu_layers_[rank], on_gpu_[rank], 1, {}, streams_[rank].get());
  EXPECT_EQ(xcclCommAbort(gpu_[1]), xcclSuccess);
  gpu_[1] = nullptr;
  EXPECT_EQ(xcclCommSynchronize(gpu_[2]), xcclRemoteError);
  EXPECT_STREQ(xcclGetLastError(gpu_[2]), "rank 1: aborted");
}

}  // namespace
}  // namespace xccl::c_api
