// All inputs are small integers, so that sums are exact in every order.
#include "runtime/c_api/testing/gpu_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/xccl.h"

namespace xccl::c_api {
namespace {

constexpr int kRanks = kCheckedRanks;

float Input(int rank, int64_t i) { return static_cast<float>(i % 1000 + rank); }
float Sum(int64_t i) {
  constexpr int64_t kOfRanks = kRanks * (kRanks - 1) / 2;
  return static_cast<float>(kRanks * (i % 1000) + kOfRanks);
}

Status Did(xcclResult_t result, std::string_view what) {
  if (result == xcclSuccess) return OkStatus();
  return InvalidInput(fmt::format("{}: {}: {}", what, xcclGetErrorString(result), xcclGetLastError(nullptr)));
}

// 8 communicators on the devices there are, each with a stream and two buffers.
class Session {
 public:
  static StatusOr<std::unique_ptr<Session>> Create(const cuda::Driver& driver, int64_t elements,
                                                   double limit_s = 30) {
    auto made = std::make_unique<Session>();
    int devices = 0;
    XCCL_RETURN_IF_ERROR(Check(driver, driver.DeviceGetCount(&devices), "cuDeviceGetCount"));
    std::array<int, kRanks> device = {};
    for (int r = 0; r < kRanks; ++r) {
      Member& member = made->members_[static_cast<size_t>(r)];
      device[static_cast<size_t>(r)] = r % devices;
      XCCL_ASSIGN_OR_RETURN(member.gpu, cuda::Gpu::Open(driver, r % devices));
      XCCL_ASSIGN_OR_RETURN(member.stream, cuda::CreateStream(member.gpu));
      const size_t bytes = static_cast<size_t>(elements) * sizeof(float);
      XCCL_ASSIGN_OR_RETURN(
          member.in, cuda::DeviceMemory::Create(member.gpu, bytes, cuda::Sharing::kLegacy, {}, "input"));
      XCCL_ASSIGN_OR_RETURN(
          member.out, cuda::DeviceMemory::Create(member.gpu, bytes, cuda::Sharing::kLegacy, {}, "output"));
    }
    XCCL_RETURN_IF_ERROR(Did(xcclCommInitAll(made->comms_.data(), kRanks, device.data()), "xcclCommInitAll"));
    for (xcclComm_t comm : made->comms_)
      XCCL_RETURN_IF_ERROR(Did(xcclCommSetTimeLimit(comm, limit_s), "xcclCommSetTimeLimit"));
    return made;
  }
  Session() = default;
  ~Session() {
    for (xcclComm_t comm : comms_)
      if (comm != nullptr) xcclCommDestroy(comm);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  xcclComm_t comm(int rank) const { return comms_[static_cast<size_t>(rank)]; }
  const cuda::Gpu& gpu(int rank) const { return *members_[static_cast<size_t>(rank)].gpu; }
  cuda::Stream stream(int rank) const { return members_[static_cast<size_t>(rank)].stream.get(); }
  float* in(int rank) const {
    return cuda::PointerTo<float>(members_[static_cast<size_t>(rank)].in.address());
  }
  float* out(int rank) const {
    return cuda::PointerTo<float>(members_[static_cast<size_t>(rank)].out.address());
  }
  Status Load(const std::string& book) const {
    for (int r = 0; r < kRanks; ++r)
      XCCL_RETURN_IF_ERROR(Did(xcclCommLoadPlanBook(comm(r), book.c_str()), fmt::format("rank {}", r)));
    return OkStatus();
  }
  // Inputs in `buffer` of a rank: input or output.
  Status Fill(int rank, float* buffer, int64_t count) const {
    std::vector<float> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = Input(rank, i);
    return Copy(rank, "cuMemcpyHtoDAsync", [&](const cuda::Driver& driver, cuda::Stream stream) {
      return driver.MemcpyHtoDAsync(Address(buffer), values.data(), values.size() * sizeof(float), stream);
    });
  }
  Status FillInputs(int64_t count) const {
    for (int r = 0; r < kRanks; ++r) XCCL_RETURN_IF_ERROR(Fill(r, in(r), count));
    return OkStatus();
  }
  // No sum is of these bytes.
  Status SpoilOutputs(int64_t count) const {
    for (int r = 0; r < kRanks; ++r)
      XCCL_RETURN_IF_ERROR(Copy(r, "cuMemsetD8Async", [&](const cuda::Driver& driver, cuda::Stream stream) {
        return driver.MemsetD8Async(Address(out(r)), 0xff, static_cast<size_t>(count) * sizeof(float),
                                    stream);
      }));
    return OkStatus();
  }
  template <typename Expected>
  Status Expect(std::string_view what, int rank, const float* buffer, int64_t count,
                const Expected& expected) const {
    std::vector<float> values(static_cast<size_t>(count));
    XCCL_RETURN_IF_ERROR(
        Copy(rank, "cuMemcpyDtoHAsync", [&](const cuda::Driver& driver, cuda::Stream stream) {
          return driver.MemcpyDtoHAsync(values.data(), Address(buffer), values.size() * sizeof(float),
                                        stream);
        }));
    for (int64_t i = 0; i < count; ++i)
      if (const float value = values[static_cast<size_t>(i)]; value != expected(i))
        return InvalidInput(
            fmt::format("{}: rank {}: element {} is {}; expected {}", what, rank, i, value, expected(i)));
    return OkStatus();
  }
  Status ExpectSums(std::string_view what, int64_t count) const {
    for (int r = 0; r < kRanks; ++r) XCCL_RETURN_IF_ERROR(Expect(what, r, out(r), count, Sum));
    return OkStatus();
  }
  Status Allreduce(int rank, const float* from, float* to, int64_t count) const {
    return Did(
        xcclAllReduce(from, to, static_cast<size_t>(count), xcclFloat32, xcclSum, comm(rank), stream(rank)),
        fmt::format("rank {}: allreduce of {}", rank, count));
  }
  Status AllreduceAll(int64_t count) const {
    for (int r = 0; r < kRanks; ++r) XCCL_RETURN_IF_ERROR(Allreduce(r, in(r), out(r), count));
    return OkStatus();
  }
  Status Synchronize() const {
    for (int r = 0; r < kRanks; ++r)
      XCCL_RETURN_IF_ERROR(Did(xcclCommSynchronize(comm(r)), fmt::format("rank {}", r)));
    return OkStatus();
  }
  void Abort(int rank) { xcclCommAbort(std::exchange(comms_[static_cast<size_t>(rank)], nullptr)); }

 private:
  struct Member {
    std::shared_ptr<const cuda::Gpu> gpu;
    cuda::OwnedStream stream;
    cuda::DeviceMemory in, out;
  };
  static cuda::DevicePointer Address(const float* buffer) {
    return reinterpret_cast<cuda::DevicePointer>(buffer);
  }
  template <typename Queue>
  Status Copy(int rank, const char* call, const Queue& queue) const {
    return cuda::RunAlone(members_[static_cast<size_t>(rank)].gpu, call, queue);
  }

  std::array<Member, kRanks> members_;
  std::array<xcclComm_t, kRanks> comms_ = {};
};

std::string Book(const GpuCheckOptions& options, const char* name) { return options.books + "/" + name; }
constexpr const char* kAllreduceBook = "allreduce-ring-simple";

// Several calls of each size under way on 8 streams.
Status CheckStreams(const cuda::Driver& driver, const GpuCheckOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const auto session, Session::Create(driver, options.largest));
  XCCL_RETURN_IF_ERROR(session->Load(Book(options, kAllreduceBook)));
  XCCL_RETURN_IF_ERROR(session->FillInputs(options.largest));
  for (const int64_t count : {int64_t{1}, int64_t{1003}, options.largest / 16 + 3, options.largest}) {
    XCCL_RETURN_IF_ERROR(session->SpoilOutputs(count));
    for (int repeat = 0; repeat < 3; ++repeat) XCCL_RETURN_IF_ERROR(session->AllreduceAll(count));
    XCCL_RETURN_IF_ERROR(session->Synchronize());
    XCCL_RETURN_IF_ERROR(session->ExpectSums(fmt::format("allreduce of {}", count), count));
  }
  return OkStatus();
}

// Books add up, and their plans run after one another.
Status CheckBooks(const cuda::Driver& driver, const GpuCheckOptions& options) {
  const int64_t part = options.largest / kRanks;
  XCCL_ASSIGN_OR_RETURN(const auto session, Session::Create(driver, part * kRanks));
  for (const char* name : {kAllreduceBook, "allgather-ring-simple", "scratch"})
    XCCL_RETURN_IF_ERROR(session->Load(Book(options, name)));
  XCCL_RETURN_IF_ERROR(session->FillInputs(part * kRanks));
  for (int repeat = 0; repeat < 2; ++repeat) {
    XCCL_RETURN_IF_ERROR(session->AllreduceAll(part));
    for (int r = 0; r < kRanks; ++r)
      XCCL_RETURN_IF_ERROR(Did(xcclAllGather(session->in(r), session->out(r), static_cast<size_t>(part),
                                             xcclFloat32, session->comm(r), session->stream(r)),
                               "allgather"));
    XCCL_RETURN_IF_ERROR(session->Synchronize());
    const auto gathered = [&](int64_t i) { return Input(static_cast<int>(i / part), i % part); };
    for (int r = 0; r < kRanks; ++r)
      XCCL_RETURN_IF_ERROR(session->Expect("allgather", r, session->out(r), part * kRanks, gathered));
  }
  return OkStatus();
}

// Calls that need more scratch than those under way.
Status CheckScratch(const cuda::Driver& driver, const GpuCheckOptions& options) {
  const std::vector<int64_t> parts = {options.largest / 1000, options.largest / 100, options.largest / 16};
  XCCL_ASSIGN_OR_RETURN(const auto session, Session::Create(driver, options.largest));
  XCCL_RETURN_IF_ERROR(session->Load(Book(options, "scratch")));
  XCCL_RETURN_IF_ERROR(session->FillInputs(options.largest));
  for (int r = 0; r < kRanks; ++r) {
    int64_t at = 0;
    for (const int64_t part : parts) {
      XCCL_RETURN_IF_ERROR(Did(xcclAlltoAll(session->in(r), session->out(r) + at, static_cast<size_t>(part),
                                            xcclFloat32, session->comm(r), session->stream(r)),
                               "alltoall"));
      at += part * kRanks;
    }
  }
  XCCL_RETURN_IF_ERROR(session->Synchronize());
  for (int r = 0; r < kRanks; ++r) {
    int64_t at = 0;
    for (const int64_t part : parts) {
      const auto expected = [&](int64_t i) { return Input(static_cast<int>(i / part), r * part + i % part); };
      XCCL_RETURN_IF_ERROR(session->Expect(fmt::format("alltoall of {} each", part), r, session->out(r) + at,
                                           part * kRanks, expected));
      at += part * kRanks;
    }
  }
  return OkStatus();
}

// Every second rank in place. Buffers that overlap otherwise are refused before anything runs.
Status CheckInPlace(const cuda::Driver& driver, const GpuCheckOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const auto session, Session::Create(driver, options.largest));
  XCCL_RETURN_IF_ERROR(session->Load(Book(options, kAllreduceBook)));
  XCCL_RETURN_IF_ERROR(session->FillInputs(options.largest));
  const xcclResult_t shifted = xcclAllReduce(session->in(0), session->in(0) + 1, 1003, xcclFloat32, xcclSum,
                                             session->comm(0), session->stream(0));
  if (shifted != xcclInvalidArgument)
    return InvalidInput(fmt::format("buffers that overlap: {}: '{}'; expected an invalid argument",
                                    xcclGetErrorString(shifted), xcclGetLastError(session->comm(0))));
  for (const int64_t count : {int64_t{1003}, options.largest / 16 + 3, options.largest}) {
    XCCL_RETURN_IF_ERROR(session->SpoilOutputs(count));
    for (int r = 0; r < kRanks; r += 2) XCCL_RETURN_IF_ERROR(session->Fill(r, session->out(r), count));
    for (int r = 0; r < kRanks; ++r)
      XCCL_RETURN_IF_ERROR(
          session->Allreduce(r, r % 2 == 0 ? session->out(r) : session->in(r), session->out(r), count));
    XCCL_RETURN_IF_ERROR(session->Synchronize());
    XCCL_RETURN_IF_ERROR(session->ExpectSums(fmt::format("allreduce of {}", count), count));
  }
  return OkStatus();
}

// A captured call of each rank, replayed between calls as they are.
Status CheckGraph(const cuda::Driver& driver, const GpuCheckOptions& options) {
  const int64_t count = options.largest / 16 + 3;
  XCCL_ASSIGN_OR_RETURN(const auto session, Session::Create(driver, count));
  XCCL_RETURN_IF_ERROR(session->Load(Book(options, kAllreduceBook)));
  XCCL_RETURN_IF_ERROR(session->FillInputs(count));
  std::vector<cuda::GraphExec> graphs;
  Status status = OkStatus();
  const auto capture = [&](int r) -> Status {
    const cuda::ScopedContext context(session->gpu(r));
    XCCL_RETURN_IF_ERROR(Check(
        driver, driver.StreamBeginCapture(session->stream(r), cuda::CaptureMode::kThreadLocal), "capture"));
    const Status called = session->Allreduce(r, session->in(r), session->out(r), count);
    cuda::Graph graph = nullptr;
    XCCL_RETURN_IF_ERROR(
        Check(driver, driver.StreamEndCapture(session->stream(r), &graph), "cuStreamEndCapture"));
    cuda::GraphExec exec = nullptr;
    Status made = called.ok() ? Check(driver, driver.GraphInstantiate(&exec, graph, 0), "graph") : called;
    driver.GraphDestroy(graph);
    if (made.ok()) graphs.push_back(exec);
    return made;
  };
  for (int r = 0; r < kRanks && status.ok(); ++r) status = capture(r);
  for (int turn = 0; turn < 4 && status.ok(); ++turn) {
    status = session->SpoilOutputs(count);
    if (status.ok()) status = session->AllreduceAll(count);
    for (int replay = 0; replay < 2; ++replay)
      for (int r = 0; r < kRanks && status.ok(); ++r) {
        const cuda::ScopedContext context(session->gpu(r));
        status =
            Check(driver, driver.GraphLaunch(graphs[static_cast<size_t>(r)], session->stream(r)), "replay");
      }
    for (int r = 0; r < kRanks && status.ok(); ++r) {
      const cuda::ScopedContext context(session->gpu(r));
      status = Check(driver, driver.StreamSynchronize(session->stream(r)), "cuStreamSynchronize");
    }
    if (status.ok()) status = session->Synchronize();
    if (status.ok()) status = session->ExpectSums("allreduce", count);
  }
  for (cuda::GraphExec exec : graphs) driver.GraphExecDestroy(exec);
  return status;
}

// All ranks but the last call; all that do must learn why that ends, with a text that contains `reason`.
Status ExpectEnd(const Session& session, std::string_view reason) {
  for (int r = 0; r + 1 < kRanks; ++r) {
    const xcclResult_t result = xcclCommSynchronize(session.comm(r));
    const std::string text = xcclGetLastError(session.comm(r));
    if (result != xcclRemoteError || text.find(reason) == std::string::npos)
      return InvalidInput(fmt::format("rank {}: {}: '{}'; expected a remote error with '{}'", r,
                                      xcclGetErrorString(result), text, reason));
  }
  return OkStatus();
}

Status CheckAbort(const cuda::Driver& driver, const GpuCheckOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const auto session, Session::Create(driver, 1000));
  XCCL_RETURN_IF_ERROR(session->Load(Book(options, kAllreduceBook)));
  for (int r = 0; r + 1 < kRanks; ++r)
    XCCL_RETURN_IF_ERROR(session->Allreduce(r, session->in(r), session->out(r), 1000));
  session->Abort(kRanks - 1);
  return ExpectEnd(*session, "rank 7: aborted");
}

Status CheckTimeLimit(const cuda::Driver& driver, const GpuCheckOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const auto session, Session::Create(driver, 1000, 0.5));
  XCCL_RETURN_IF_ERROR(session->Load(Book(options, kAllreduceBook)));
  for (int r = 0; r + 1 < kRanks; ++r)
    XCCL_RETURN_IF_ERROR(session->Allreduce(r, session->in(r), session->out(r), 1000));
  return ExpectEnd(*session, "nothing moved for 500 ms");
}

using Function = Status (*)(const cuda::Driver&, const GpuCheckOptions&);
constexpr std::array<std::string_view, 7> kNames = {"streams",  "books", "graph",     "growing-scratch",
                                                    "in-place", "abort", "time-limit"};
constexpr std::array<Function, 7> kFunctions = {CheckStreams, CheckBooks, CheckGraph,    CheckScratch,
                                                CheckInPlace, CheckAbort, CheckTimeLimit};

}  // namespace

std::span<const std::string_view> GpuCheckNames() { return kNames; }

Status RunGpuCheck(std::string_view name, const cuda::Driver& driver, const GpuCheckOptions& options) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return UsageError(fmt::format("no check '{}'", name));
  return Annotate(kFunctions[static_cast<size_t>(found - kNames.begin())](driver, options),
                  std::string(name));
}

}  // namespace xccl::c_api
