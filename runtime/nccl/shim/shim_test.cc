// Jobs that call NCCL, on a stub of it and a driver in host memory: what plans serve is run by plans, NCCL
// runs the rest, and all results are right.
#include "runtime/nccl/shim/shim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "ir/call_log.h"
#include "runtime/c_api/call_log.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/testing/books.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/test_kernel.h"
#include "runtime/nccl/shim/testing/stub_nccl.h"
#include "runtime/plan_book.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::nccl_shim {
namespace {

using testing::HasSubstr;
using Calls = std::map<std::string, int>;
using Kind = CollectiveKind;

constexpr int kFloat = 7, kInt32 = 2;
constexpr int kRoot = 2;               // root of the rooted plans for 4 ranks
constexpr size_t kOurs = 64;           // a count of elements that the book serves,
constexpr size_t kNccls = 3000;        // and one that it does not serve
constexpr int64_t kMostOfBook = 8192;  // bytes
constexpr size_t kRegion = 1 << 12;    // elements of a region of a buffer
constexpr size_t kElements = 1 << 14;  // elements of every buffer

const std::initializer_list<Kind> kKinds = {Kind::kAllreduce, Kind::kBroadcast,     Kind::kReduce,
                                            Kind::kAllgather, Kind::kReduceScatter, Kind::kAlltoall,
                                            Kind::kGather,    Kind::kScatter};

std::string Book(int ranks) {
  const std::string path = MakeBook("shim-" + std::to_string(ranks), ranks, kKinds);
  PlanBook book = *ReadPlanBook(path);
  for (PlanBookEntry& entry : book.entries) entry.max_bytes = kMostOfBook;
  EXPECT_EQ(WritePlanBook(book), OkStatus());
  return path;
}

// The process's driver, GPUs of the C API, NCCL and environment.
class World {
 public:
  explicit World(const std::string& book, const cuda::FakeOptions& options = {}) : fake_(options) {
    c_api::TheGpus().driver = [this]() -> StatusOr<const cuda::Driver*> { return &fake_.table(); };
    c_api::TheGpus().adapt = [this](cuda::BackendOptions& backend) {
      backend.images = [](const std::string&, const ServedPlan&) -> StatusOr<cuda::KernelImages> {
        return cuda::KernelImages();
      };
      backend.interpreter = [this](const Program& program) -> cuda::KernelImages {
        return [this, protocol = program.protocol](DataType type, ReduceOp op,
                                                   int32_t) -> StatusOr<std::string> {
          cuda::AddHostKernel(fake_, nullptr, type, op, protocol);
          return std::string("fake");
        };
      };
    };
    SetStubDriver(&fake_.table());
    SetNccl(StubNccl());
    setenv("XCCL_BOOK", book.c_str(), 1);
    ForgetEnvironment();
    TakeStubCalls();
  }
  ~World() {
    unsetenv("XCCL_BOOK");
    ForgetEnvironment();
    c_api::TheGpus() = c_api::Gpus();
    EXPECT_EQ(fake_.Leaks(), "");
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  cuda::FakeDriver& fake() { return fake_; }

 private:
  cuda::FakeDriver fake_;
};

// A rank: its stream, and two buffers on its device.
struct Worker {
  Worker(World& world, int rank_in, int ranks_in, int device_in, NcclComm comm_in)
      : rank(rank_in),
        ranks(ranks_in),
        gpu(*cuda::Gpu::Open(world.fake().table(), device_in)),
        owned(*cuda::CreateStream(gpu)),
        stream(owned.get()),
        in(world.fake().Allocate<int32_t>(kElements, device_in)),
        out(world.fake().Allocate<int32_t>(kElements, device_in)),
        comm(comm_in) {}
  const int rank, ranks;
  const std::shared_ptr<const cuda::Gpu> gpu;
  const cuda::OwnedStream owned;
  void* const stream;
  const std::span<int32_t> in, out;
  NcclComm comm;

  void Settle() const { ASSERT_EQ(cuda::Synchronize(owned), OkStatus()); }
};

// Element i of rank r's input.
int32_t Value(int r, size_t i) { return static_cast<int32_t>(i % 100) * 8 + r + 1; }

// The inputs of a collective, and what the outputs must be then. The counts are NCCL's.
struct Check {
  Kind kind = Kind::kAllreduce;
  size_t count = kOurs;
  int root = 0;
  bool in_place = false;
  size_t region = 0;  // index of the region of kRegion elements in the buffers

  size_t Inputs(int ranks) const {
    const bool for_all = kind == Kind::kReduceScatter || kind == Kind::kAlltoall || kind == Kind::kScatter;
    return count * static_cast<size_t>(for_all ? ranks : 1);
  }
  size_t Outputs(const Worker& on) const {
    if ((kind == Kind::kReduce || kind == Kind::kGather) && on.rank != root) return 0;
    const bool of_all = kind == Kind::kAllgather || kind == Kind::kAlltoall || kind == Kind::kGather;
    return count * static_cast<size_t>(of_all ? on.ranks : 1);
  }
  int32_t Expected(const Worker& on, size_t i) const {
    const size_t own = static_cast<size_t>(on.rank) * count;
    const auto sum = [&](size_t at) {
      int32_t total = 0;
      for (int r = 0; r < on.ranks; ++r) total += Value(r, at);
      return total;
    };
    switch (kind) {
      case Kind::kReduceScatter:
        return sum(own + i);
      case Kind::kAllgather:
      case Kind::kGather:
        return Value(static_cast<int>(i / count), i % count);
      case Kind::kAlltoall:
        return Value(static_cast<int>(i / count), own + i % count);
      case Kind::kBroadcast:
        return Value(root, i);
      case Kind::kScatter:
        return Value(root, own + i);
      default:
        return sum(i);
    }
  }
  // Where in place, one buffer: the input lies where NCCL's rules say.
  int32_t* Send(const Worker& on) const {
    const size_t own = static_cast<size_t>(on.rank) * count;
    return (in_place ? on.out.data() + (kind == Kind::kAllgather ? own : 0) : on.in.data()) +
           region * kRegion;
  }
  int32_t* Receive(const Worker& on) const {
    const size_t own = static_cast<size_t>(on.rank) * count;
    return on.out.data() + (in_place && kind == Kind::kReduceScatter ? own : 0) + region * kRegion;
  }
  void Fill(const Worker& on) const {
    std::ranges::fill(on.out.subspan(region * kRegion), -7);
    int32_t* const send = Send(on);
    for (size_t i = 0; i < Inputs(on.ranks); ++i) send[i] = Value(on.rank, i);
  }
  int Call(const Worker& on) const { return Call(on, on.comm); }
  int Call(const Worker& on, NcclComm comm) const {
    return RunCollective({kind, Send(on), Receive(on), count, kInt32, 0, root, on.stream}, comm);
  }
  size_t Wrong(const Worker& on) const {
    size_t wrong = 0;
    for (size_t i = 0; i < Outputs(on); ++i)
      if (Receive(on)[i] != Expected(on, i)) ++wrong;
    return wrong;
  }
  void Run(const Worker& on) const {
    Fill(on);
    ASSERT_EQ(Call(on), kSuccess) << ToString(kind);
    on.Settle();
    EXPECT_EQ(Wrong(on), 0U) << ToString(kind) << " of " << count << " on rank " << on.rank;
  }
};

// Each rank is a thread. The communicator is left to `body`, which destroys it or aborts it.
void AsThreads(World& world, const std::vector<int>& devices, const std::vector<NcclComm>& comms,
               const std::function<void(Worker& on)>& body) {
  std::vector<std::jthread> threads;
  for (size_t r = 0; r < devices.size(); ++r)
    threads.emplace_back([&, r] {
      Worker worker(world, static_cast<int>(r), static_cast<int>(devices.size()), devices[r], comms[r]);
      body(worker);
    });
}
void AsThreads(World& world, const std::vector<int>& devices, const std::function<void(Worker& on)>& body) {
  AsThreads(world, devices, MakeStubComms(devices), body);
}

// All-gathers that the agreement of a communicator's ranks takes, once for each rank.
constexpr int kRounds = 4;

TEST(Shim, RunsWhatTheBookServes) {
  World world(Book(4));
  AsThreads(world, {0, 0, 0, 0}, [](Worker& on) {
    for (const Kind kind : kKinds) {
      const int root = IsRooted(kind) ? kRoot : 0;
      Check{kind, kOurs, root}.Run(on);
      Check{kind, kNccls, root}.Run(on);
    }
    // NCCL's, since the book has another root.
    Check{Kind::kBroadcast, kOurs, 1}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllReduce", 4},
                                    {"Broadcast", 8},
                                    {"Reduce", 4},
                                    {"AllGather", 4 + 4 * kRounds},
                                    {"ReduceScatter", 4},
                                    {"AlltoAll", 4},
                                    {"Gather", 4},
                                    {"Scatter", 4},
                                    {"CommDestroy", 4}}));
}

// Sets the variable while it lives; the shim reads it when it reads its environment.
class Logging {
 public:
  explicit Logging(const std::string& name) : file(testing::TempDir() + "/" + name) {
    std::filesystem::remove(file);
    setenv("XCCL_LOG_CALLS", file.c_str(), 1);
    c_api::ForgetCallLog();
  }
  ~Logging() {
    unsetenv("XCCL_LOG_CALLS");
    c_api::ForgetCallLog();
    ForgetEnvironment();
  }
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

  // "rank 0: reduce 256 int32 sum root 2 by NCCL: 1", of all ranks.
  std::vector<std::string> Rows() const {
    const StatusOr<std::string> text = ReadFile(file);
    EXPECT_TRUE(text.ok()) << text.status().message();
    if (!text.ok()) return {};
    const CallLog log = ReadCallLog(*text, file).value();
    EXPECT_EQ(log.library, "nccl");
    std::vector<std::string> rows;
    for (const LoggedCommunicator& on : log.communicators)
      for (const CountedCalls& row : on.rows) {
        std::string line = "rank " + std::to_string(on.rank->value) + ": ";
        line += std::string(ToString(row.collective)) + " " + std::to_string(row.size_bytes) + " " +
                std::string(ToString(row.type));
        if (row.op) line += " " + std::string(ToString(*row.op));
        if (row.root) line += " root " + std::to_string(row.root->value);
        rows.push_back(line + " by " + row.served_by + ": " + std::to_string(row.calls));
        EXPECT_EQ(row.timed, 0) << "a GPU's calls have no times";
      }
    std::ranges::sort(rows);
    return rows;
  }
  const std::string file;
};

TEST(Shim, CountsWhatPlansAndNcclRun) {
  const Logging logging("mixed.json");
  World world(Book(2));
  AsThreads(world, {0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    Check{Kind::kAllreduce, kOurs}.Run(on);
    Check{Kind::kAllreduce, kNccls}.Run(on);
    Check{Kind::kBroadcast, kOurs, 0}.Run(on);  // the book's root is 1
    EXPECT_EQ(StartGroup(), kSuccess);
    Check{Kind::kAllgather, kNccls}.Call(on);
    EXPECT_EQ(EndGroup(), kSuccess);
    on.Settle();
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  std::vector<std::string> expected;
  for (const char* rank : {"rank 0: ", "rank 1: "})
    for (const char* row :
         {"allgather 24000 int32 by NCCL: 1", "allreduce 12000 int32 sum by NCCL: 1",
          "allreduce 256 int32 sum by allreduce.plan.json: 2", "broadcast 256 int32 root 0 by NCCL: 1"})
      expected.push_back(std::string(rank) + row);
  EXPECT_EQ(logging.Rows(), expected);
}

TEST(Shim, CountsWithoutABook) {
  const Logging logging("no-book.json");
  World world("");
  AsThreads(world, {0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(FinalizeComm(on.comm), kSuccess);
    EXPECT_EQ(AbortComm(on.comm), kSuccess);
  });
  EXPECT_EQ(logging.Rows(), (std::vector<std::string>{"rank 0: allreduce 256 int32 sum by NCCL: 1",
                                                      "rank 1: allreduce 256 int32 sum by NCCL: 1"}));
}

TEST(Shim, CountsNoCallsThatNcclMakesToItself) {
  const Logging logging("inside.json");
  World world("");
  Nccl nccl = StubNccl();
  static const Nccl stub = nccl;
  nccl.AllReduce = [](const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                      void* stream) {
    static_cast<void>(
        RunCollective({Kind::kBroadcast, send, receive, kOurs, type, 0, /*root=*/1, stream}, comm));
    return stub.AllReduce(send, receive, count, type, op, comm, stream);
  };
  SetNccl(nccl);
  AsThreads(world, {0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kNccls}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(logging.Rows(), (std::vector<std::string>{"rank 0: allreduce 12000 int32 sum by NCCL: 1",
                                                      "rank 1: allreduce 12000 int32 sum by NCCL: 1"}));
}

TEST(Shim, RanksMayDifferInBeingInPlace) {
  World world(Book(4));
  std::vector<Kind> run;
  const PlanBook book = *ReadPlanBook(testing::TempDir() + "/shim-4");
  for (const PlanBookEntry& entry : book.entries)
    if (entry.in_place == InPlaceMode::kBoth && !IsRooted(entry.collective) &&
        entry.collective != Kind::kAlltoall)
      run.push_back(entry.collective);
  ASSERT_FALSE(run.empty());
  AsThreads(world, {0, 0, 0, 0}, [&](Worker& on) {
    for (const Kind kind : run) Check{kind, kOurs, 0, on.rank % 2 == 0}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllGather", 4 * kRounds}, {"CommDestroy", 4}}));
}

TEST(Shim, AGroupOfOneThreadDrivesAllRanks) {
  World world(Book(4), {.devices = 4});
  const std::vector<int> devices = {0, 1, 2, 3};
  const std::vector<NcclComm> comms = MakeStubComms(devices);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int r = 0; r < 4; ++r)
    workers.push_back(std::make_unique<Worker>(world, r, 4, r, comms[static_cast<size_t>(r)]));
  for (const Check& check :
       {Check{Kind::kAllreduce, kOurs}, Check{Kind::kAllgather, kNccls}, Check{Kind::kAlltoall, kOurs}}) {
    ASSERT_EQ(StartGroup(), kSuccess);
    ASSERT_EQ(StartGroup(), kSuccess);
    for (const auto& worker : workers) {
      check.Fill(*worker);
      ASSERT_EQ(check.Call(*worker), kSuccess);
    }
    ASSERT_EQ(EndGroup(), kSuccess);
    EXPECT_EQ(workers[0]->out[0], -7) << "an inner group ran the calls";
    ASSERT_EQ(EndGroup(), kSuccess);
    for (const auto& worker : workers) {
      worker->Settle();
      EXPECT_EQ(check.Wrong(*worker), 0U);
    }
  }
  for (const NcclComm comm : comms) EXPECT_EQ(DestroyComm(comm), kSuccess);
  workers.clear();
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllGather", 4 + 4 * kRounds}, {"CommDestroy", 4}}));
}

// Calls of both sides, of two communicators, in one group.
TEST(Shim, AGroupMayMixAll) {
  World world(Book(4));
  const std::vector<NcclComm> second = MakeStubComms({0, 0, 0, 0});
  AsThreads(world, {0, 0, 0, 0}, [&](Worker& on) {
    const cuda::OwnedStream stream = *cuda::CreateStream(on.gpu);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Check ours{Kind::kAllreduce, kOurs}, nccls{Kind::kAllgather, kNccls};
      std::ranges::fill(on.out, -7);
      for (size_t i = 0; i < kNccls; ++i) on.in[i] = Value(on.rank, i);
      int32_t* const sum = on.out.data();
      int32_t* const all = sum + kOurs;
      int32_t* const other = sum + kElements - kOurs;
      ASSERT_EQ(StartGroup(), kSuccess);
      EXPECT_EQ(RunCollective({ours.kind, on.in.data(), sum, kOurs, kInt32, 0, 0, on.stream}, on.comm),
                kSuccess);
      EXPECT_EQ(RunCollective({nccls.kind, on.in.data(), all, kNccls, kInt32, 0, 0, on.stream}, on.comm),
                kSuccess);
      EXPECT_EQ(RunCollective({ours.kind, on.in.data(), other, kOurs, kInt32, 0, 0, stream.get()},
                              second[static_cast<size_t>(on.rank)]),
                kSuccess);
      ASSERT_EQ(EndGroup(), kSuccess);
      on.Settle();
      ASSERT_EQ(cuda::Synchronize(stream), OkStatus());
      for (size_t i = 0; i < kOurs; ++i) {
        ASSERT_EQ(sum[i], ours.Expected(on, i));
        ASSERT_EQ(other[i], ours.Expected(on, i));
      }
      for (size_t i = 0; i < kNccls * 4; ++i) ASSERT_EQ(all[i], nccls.Expected(on, i));
    }
    EXPECT_EQ(DestroyComm(second[static_cast<size_t>(on.rank)]), kSuccess);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllGather", 8 + 8 * kRounds}, {"CommDestroy", 8}}));
}

// A captured first call is NCCL's: nobody can meet in a capture. Later ones may be captured.
TEST(Shim, CapturedCallsAreReplayed) {
  World world(Book(2));
  AsThreads(world, {0, 0}, [&](Worker& on) {
    const cuda::Driver& driver = on.gpu->driver();
    const Check check{Kind::kAllreduce, kOurs};
    const cuda::ScopedContext context(*on.gpu);
    const auto capture = [&] {
      cuda::Graph graph = nullptr;
      EXPECT_EQ(driver.StreamBeginCapture(on.owned.get(), cuda::CaptureMode::kThreadLocal),
                cuda::Result::kSuccess);
      EXPECT_EQ(check.Call(on), kSuccess);
      EXPECT_EQ(driver.StreamEndCapture(on.owned.get(), &graph), cuda::Result::kSuccess);
      return graph;
    };
    driver.GraphDestroy(capture());
    check.Run(on);
    const cuda::Graph graph = capture();
    cuda::GraphExec exec = nullptr;
    ASSERT_EQ(driver.GraphInstantiate(&exec, graph, 0), cuda::Result::kSuccess);
    for (int replay = 0; replay < 3; ++replay) {
      check.Fill(on);
      ASSERT_EQ(driver.GraphLaunch(exec, on.owned.get()), cuda::Result::kSuccess);
      on.Settle();
      EXPECT_EQ(check.Wrong(on), 0U);
    }
    driver.GraphExecDestroy(exec);
    driver.GraphDestroy(graph);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllReduce", 2}, {"AllGather", 2 * kRounds}, {"CommDestroy", 2}}));
}

// Communicators that were split from another have books of their own number of ranks, or none.
TEST(Shim, ASplitCommunicatorIsOneMore) {
  Book(2);
  World world(Book(4));
  AsThreads(world, {0, 0, 0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  AsThreads(world, {0, 0}, [](Worker& on) {  // the book has no plan for two
    Check{Kind::kAllreduce, kOurs}.Run(on);
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  AsThreads(world, {0}, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(),
            (Calls{{"AllReduce", 5}, {"AllGather", 4 * kRounds + 2 * 2}, {"CommDestroy", 7}}));
}

TEST(Shim, CommunicatorsMayBeMadeWithoutBlocking) {
  World world(Book(2));
  AsThreads(world, {0, 0}, MakeStubComms({0, 0}, {.polls = 5}), [](Worker& on) {
    int error = -1;
    EXPECT_EQ(AsyncErrorOf(on.comm, &error), kSuccess);
    EXPECT_EQ(error, kInProgress);
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(AsyncErrorOf(on.comm, &error), kSuccess);
    EXPECT_EQ(error, kSuccess);
    EXPECT_EQ(FinalizeComm(on.comm), kSuccess);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllGather", 2 * kRounds}, {"CommFinalize", 2}, {"CommDestroy", 2}}));
}

// Rank 2 never comes: the others wait in their kernels until the watchdog aborts.
TEST(Shim, AnAbortEndsWhatWaits) {
  World world(Book(3), {.wait_limit = std::chrono::seconds(30)});
  std::barrier all_ran(3);
  AsThreads(world, {0, 0, 0}, [&](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    all_ran.arrive_and_wait();
    // The other one may have been aborted before.
    if (on.rank != 2) static_cast<void>(Check{Kind::kAllreduce, kOurs}.Call(on));
    EXPECT_EQ(AbortComm(on.comm), kSuccess);
    on.Settle();
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllGather", 3 * kRounds}, {"CommAbort", 3}}));
}

// A rank that is revoked fails the others, who see it, and NCCL answers for what comes.
TEST(Shim, ARevokedCommunicatorIsNccls) {
  World world(Book(2));
  std::barrier all_ran(2);
  AsThreads(world, {0, 0}, [&](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    all_ran.arrive_and_wait();
    if (on.rank == 1) {
      EXPECT_EQ(RevokeComm(on.comm, 0), kSuccess);
      EXPECT_NE((Check{Kind::kAllreduce, kOurs}.Call(on)), kSuccess);
      EXPECT_EQ(ShrinkComm(on.comm, nullptr, 0, nullptr, nullptr, 1), kSuccess);
    } else {
      int error = kSuccess;
      while (error == kSuccess) ASSERT_EQ(AsyncErrorOf(on.comm, &error), kSuccess);
      EXPECT_EQ(error, 6);  // ncclRemoteError
    }
    EXPECT_EQ(AbortComm(on.comm), kSuccess);
  });
}

TEST(Shim, WhatNcclRefusesIsNccls) {
  World world(Book(2));
  const std::vector<NcclComm> comms = MakeStubComms({0, 0});
  World* const of = &world;
  Worker on(*of, 0, 2, 0, comms[0]);
  const auto call = [&](Kind kind, size_t count, int type, int op, int root) {
    return RunCollective({kind, on.in.data(), on.out.data(), count, type, op, root, on.stream}, on.comm);
  };
  EXPECT_EQ(call(Kind::kAllreduce, 4, 12, 0, 0), 4);
  EXPECT_EQ(call(Kind::kBroadcast, 4, kFloat, 0, 2), 4);
  EXPECT_EQ(call(Kind::kBroadcast, 4, kFloat, 0, -1), 4);
  EXPECT_EQ(call(Kind::kAllreduce, 0, kFloat, 0, 0), kSuccess);
  EXPECT_EQ(
      RunCollective({Kind::kAllreduce, on.in.data(), on.out.data(), 4, kFloat, 0, 0, on.stream}, nullptr), 4);
  EXPECT_EQ(EndGroup(), kInvalidUsage);
  for (const NcclComm comm : comms) EXPECT_EQ(DestroyComm(comm), kSuccess);
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllReduce", 3}, {"Broadcast", 2}, {"CommDestroy", 2}}));
}

TEST(Shim, OperatorsOfTheProgramAreNccls) {
  World world(Book(2));
  AsThreads(world, {0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(RunCollective({Kind::kAllreduce, on.in.data(), on.out.data(), kOurs, kFloat, 77, 0, on.stream},
                            on.comm),
              kSuccess);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllReduce", 2}, {"AllGather", 2 * kRounds}, {"CommDestroy", 2}}));
}

TEST(Shim, AGroupIsForetoldByNccl) {
  World world(Book(2));
  AsThreads(world, {0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    int calls = 0;
    EXPECT_EQ(StartGroup(), kSuccess);
    EXPECT_EQ((Check{Kind::kAllreduce, kOurs}.Call(on)), kSuccess);
    EXPECT_EQ((Check{Kind::kAllreduce, kNccls}.Call(on)), kSuccess);
    EXPECT_EQ(SimulateGroup(&calls), kSuccess);
    EXPECT_EQ(calls, 2);
    Check{Kind::kAllgather, kOurs}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
}

// NCCL calls itself by names that the shim has.
TEST(Shim, NcclsCallsToItselfAreNccls) {
  World world(Book(2));
  static const Nccl stub = StubNccl();
  Nccl nccl = stub;
  nccl.AllReduce = [](const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                      void* stream) {
    // The book would serve it.
    static_cast<void>(
        RunCollective({Kind::kBroadcast, send, receive, kOurs, type, 0, /*root=*/1, stream}, comm));
    return stub.AllReduce(send, receive, count, type, op, comm, stream);
  };
  SetNccl(nccl);
  AsThreads(world, {0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kNccls}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(),
            (Calls{{"AllReduce", 2}, {"Broadcast", 2}, {"AllGather", 2 * kRounds}, {"CommDestroy", 2}}));
}

TEST(Shim, ABookThatCannotBeReadLeavesAllToNccl) {
  World world("/nonexistent");
  testing::internal::CaptureStderr();
  AsThreads(world, {0, 0}, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("xccl: rank 0 of 2: NCCL runs this communicator: /nonexistent"));
  EXPECT_EQ(TakeStubCalls(), (Calls{{"AllReduce", 2}, {"AllGather", 2}, {"CommDestroy", 2}}));
}

TEST(Shim, IsOffWhereTheEnvironmentSaysSo) {
  setenv("XCCL_NCCL", "0", 1);
  {
    World world(Book(2));
    AsThreads(world, {0, 0}, [](Worker& on) {
      Check{Kind::kAllreduce, kOurs}.Run(on);
      EXPECT_EQ(DestroyComm(on.comm), kSuccess);
    });
    EXPECT_EQ(TakeStubCalls(), (Calls{{"AllReduce", 2}, {"CommDestroy", 2}}));
  }
  unsetenv("XCCL_NCCL");
}

// Groups of calls of all kinds and sizes, on two communicators; each rank decides for itself what is in
// place.
TEST(Shim, RunsRandomPrograms) {
  constexpr int kRanks = 4, kGroups = 60;
  World world(Book(kRanks));
  const std::vector<NcclComm> second = MakeStubComms({0, 0, 0, 0});
  AsThreads(world, {0, 0, 0, 0}, [&](Worker& on) {
    Random random(7);
    Random own(100 + static_cast<uint64_t>(on.rank));
    const auto rank = static_cast<size_t>(on.rank);
    for (int i = 0; i < kGroups; ++i) {
      const size_t calls = 1 + random.Below(4);
      std::vector<Check> checks;
      std::vector<NcclComm> comms;
      for (size_t region = 0; region < calls; ++region) {
        Check check{std::data(kKinds)[random.Below(kKinds.size())], 1 + random.Below(kRegion / kRanks),
                    static_cast<int>(random.Below(kRanks))};
        check.in_place = check.kind != Kind::kAlltoall && check.kind != Kind::kGather &&
                         check.kind != Kind::kScatter && own.Below(2) == 0;
        check.region = region;
        check.Fill(on);
        checks.push_back(check);
        comms.push_back(random.Below(2) == 0 ? on.comm : second[rank]);
      }
      if (calls > 1) {
        ASSERT_EQ(StartGroup(), kSuccess);
      }
      for (size_t c = 0; c < calls; ++c) ASSERT_EQ(checks[c].Call(on, comms[c]), kSuccess);
      if (calls > 1) {
        ASSERT_EQ(EndGroup(), kSuccess);
      }
      on.Settle();
      for (const Check& check : checks)
        ASSERT_EQ(check.Wrong(on), 0U)
            << "group " << i << ": " << ToString(check.kind) << " of " << check.count;
    }
    EXPECT_EQ(DestroyComm(second[rank]), kSuccess);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  const Calls calls = TakeStubCalls();
  EXPECT_GT(calls.at("ReduceScatter"), 0);
  EXPECT_GT(world.fake().launches(), 4 * kGroups / 2) << "plans ran too few calls to show anything";
}

TEST(Shim, SaysWhyCallsGoToNccl) {
  setenv("XCCL_NCCL_DEBUG", "1", 1);
  World world(Book(2));
  testing::internal::CaptureStderr();
  AsThreads(world, {0, 0}, [](Worker& on) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      Check{Kind::kAllreduce, kOurs}.Run(on);
      Check{Kind::kAllreduce, kNccls}.Run(on);
      Check{Kind::kBroadcast, kOurs, 0}.Run(on);
    }
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  const std::string said = testing::internal::GetCapturedStderr();
  unsetenv("XCCL_NCCL_DEBUG");
  for (const std::string rank : {"0", "1"})
    for (const std::string call : {"allreduce of 12000 bytes, int32", "broadcast of 256 bytes, int32"})
      EXPECT_THAT(said, HasSubstr("xccl: rank " + rank + " of 2: " + call +
                                  ": NCCL runs it: the book has no plan for it\n"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 4 + (said.find(" serves ") == std::string::npos ? 0 : 1));
}

// The calls of PyTorch's process groups in a step of training: parameters are broadcast, gathered and reduced
// in coalesced groups, gradients on a stream of their own, some calls from a graph. Then a rank fails and the
// job goes on with another communicator.
TEST(Shim, RunsAStepOfTraining) {
  const std::string book = Book(4);
  PlanBook both = *ReadPlanBook(book);
  const PlanBook pairs = *ReadPlanBook(Book(2));
  for (PlanBookEntry entry : pairs.entries) {
    std::filesystem::copy_file(pairs.PathOf(entry), book + "/pairs-" + entry.file,
                               std::filesystem::copy_options::overwrite_existing);
    entry.file = "pairs-" + entry.file;
    both.entries.push_back(entry);
  }
  ASSERT_EQ(WritePlanBook(both), OkStatus());
  World world(book);
  const std::vector<std::vector<NcclComm>> split = {MakeStubComms({0, 0}), MakeStubComms({0, 0})};
  const std::vector<NcclComm> anew = MakeStubComms({0, 0, 0, 0});
  std::barrier step(4);
  AsThreads(world, {0, 0, 0, 0}, [&](Worker& on) {
    const auto rank = static_cast<size_t>(on.rank);
    Check{Kind::kAllreduce, 1}.Run(on);  // a barrier
    Check{Kind::kBroadcast, kOurs, kRoot}.Run(on);
    Check{Kind::kBroadcast, kNccls, 0}.Run(on);
    // Shards are gathered into one flat buffer, and gradients reduced out of it.
    for (const Kind kind : {Kind::kAllgather, Kind::kReduceScatter}) {
      const Check shard{kind, kOurs, 0, /*in_place=*/true};
      shard.Fill(on);
      ASSERT_EQ(StartGroup(), kSuccess);
      ASSERT_EQ(shard.Call(on), kSuccess);
      const size_t offset = kOurs * 4;  // a second shard behind the first
      for (size_t i = 0; i < shard.Inputs(4); ++i) shard.Send(on)[offset + i] = Value(on.rank, i);
      ASSERT_EQ(RunCollective({kind, shard.Send(on) + offset, shard.Receive(on) + offset, kOurs, kInt32, 0, 0,
                               on.stream},
                              on.comm),
                kSuccess);
      ASSERT_EQ(EndGroup(), kSuccess);
      on.Settle();
      EXPECT_EQ(shard.Wrong(on), 0U);
      for (size_t i = 0; i < shard.Outputs(on); ++i)
        ASSERT_EQ(shard.Receive(on)[offset + i], shard.Expected(on, i));
    }
    {  // tensor parallelism in pairs, while the world's communicator works on another stream
      Worker pair(world, on.rank % 2, 2, 0, split[rank / 2][rank % 2]);
      // One pair after the other, since the driver's modules all have the kernels that were added last.
      for (size_t turn = 0; turn < 2; ++turn) {
        step.arrive_and_wait();
        if (turn == rank / 2) Check{Kind::kAllreduce, 1}.Run(pair);
      }
      step.arrive_and_wait();
      const Check partial{Kind::kAllreduce, kOurs}, gradients{Kind::kAllreduce, 2 * kOurs};
      gradients.Fill(on);
      partial.Fill(pair);
      ASSERT_EQ(gradients.Call(on), kSuccess);
      ASSERT_EQ(partial.Call(pair), kSuccess);
      pair.Settle();
      on.Settle();
      EXPECT_EQ(gradients.Wrong(on) + partial.Wrong(pair), 0U);
      EXPECT_EQ(DestroyComm(pair.comm), kSuccess);
    }
    step.arrive_and_wait();
    // The watchdog finds a failure, and all go on with what they make anew.
    EXPECT_EQ(AbortComm(on.comm), kSuccess);
    on.comm = anew[rank];
    Check{Kind::kAllreduce, kOurs}.Run(on);
    EXPECT_EQ(FinalizeComm(on.comm), kSuccess);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
  EXPECT_EQ(TakeStubCalls(), (Calls{{"Broadcast", 4},
                                    {"AllGather", (4 + 4 + 4) * kRounds},
                                    {"CommAbort", 4},
                                    {"CommFinalize", 4},
                                    {"CommDestroy", 8}}));
}

// Each rank is a process.
void AsProcesses(int ranks, const std::function<void(Worker& on)>& body) {
  const std::string book = Book(ranks);
  const std::vector<NcclComm> comms = MakeStubComms(std::vector<int>(static_cast<size_t>(ranks)));
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      {
        World world(book);
        Worker on(world, r, ranks, 0, comms[static_cast<size_t>(r)]);
        body(on);
      }
      std::quick_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int ending = 0;
    ASSERT_EQ(waitpid(child, &ending, 0), child);
    EXPECT_EQ(ending, 0);
  }
  ForgetStubComms(comms);
}

// Ranks that are processes meet through NCCL, then by themselves.
TEST(ShimProcesses, RunWhatTheBookServes) {
  AsProcesses(3, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    Check{Kind::kAllreduce, kNccls}.Run(on);
    Check{Kind::kAllgather, kOurs}.Run(on);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
    EXPECT_EQ(TakeStubCalls(), (Calls{{"AllReduce", 1}, {"AllGather", kRounds}, {"CommDestroy", 1}}));
  });
}

// A rank may end without destroying anything: those that do not wait for it see no failure.
TEST(ShimProcesses, MayEndWithoutDestroying) {
  AsProcesses(2, [](Worker& on) {
    Check{Kind::kAllreduce, kOurs}.Run(on);
    if (on.rank == 0) std::exit(testing::Test::HasFailure() ? 1 : 0);
    int error = kSuccess;
    for (int i = 0; i < 300 && error == kSuccess; ++i) {
      ASSERT_EQ(AsyncErrorOf(on.comm, &error), kSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(error, kSuccess);
    EXPECT_EQ(DestroyComm(on.comm), kSuccess);
  });
}

}  // namespace
}  // namespace xccl::nccl_shim
