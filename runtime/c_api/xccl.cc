// A thin layer over Communicator: numbers of types and operators, Status and exceptions to result codes.
#include "runtime/xccl.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/c_api/group.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/meeting.h"
#include "runtime/communicator.h"
#include "runtime/cpu/backends.h"
#include "runtime/cuda/backends.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu_hosts.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"
#include "runtime/launched/launched_group.h"

namespace {

using xccl::CollectiveKind;
using xccl::DataType;
using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::Rank;
using xccl::ReduceOp;
using xccl::Status;
using xccl::StatusCode;
using xccl::UsageError;
using xccl::c_api::Comm;

constexpr int kMostRanks = 1 << 16;
static_assert(static_cast<int>(DataType::kUint64) == xcclUint64 &&
              static_cast<int>(DataType::kHalf) == xcclFloat16 &&
              static_cast<int>(DataType::kBfloat16) == xcclBfloat16 &&
              static_cast<int>(DataType::kFp8E5m2) == xcclFloat8e5m2);
constexpr std::array<ReduceOp, xcclNumOps> kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                                                   ReduceOp::kMin, ReduceOp::kAvg};

xcclResult_t Fail(xcclResult_t result, std::string_view text, const void* comm = nullptr) noexcept {
  xccl::c_api::Remember(comm, text);
  xccl::c_api::Refuse(result);
  return result;
}

xcclResult_t ResultOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return xcclSuccess;
    case StatusCode::kUsage:
      return xcclInvalidArgument;
    case StatusCode::kInvalidInput:
    case StatusCode::kInfeasible:
      return xcclInvalidUsage;
    case StatusCode::kBug:
      return xcclInternalError;
    case StatusCode::kLimit:
    case StatusCode::kPeerEnded:
      return xcclRemoteError;
    case StatusCode::kSystem:
      return xcclSystemError;
  }
  return xcclInternalError;
}

// Runs the body of a call, which returns a Status. The text of a failure is kept for xcclGetLastError. No
// exception crosses the C API.
template <typename Body>
xcclResult_t Run(const Body& body, const void* comm = nullptr) noexcept {
  try {
    Status status;
    try {
      status = body();
    } catch (const std::exception& error) {
      status = xccl::StatusOf(error);
    }
    return status.ok() ? xcclSuccess : Fail(ResultOf(status), status.message(), comm);
  } catch (const std::exception&) {
    return Fail(xcclSystemError, "out of memory", comm);
  }
}

// The same for a call that stores something for the caller.
template <typename Body>
xcclResult_t RunFor(const void* result, const char* name, const Body& body) noexcept {
  return Run([&]() -> Status {
    if (result == nullptr) return UsageError(fmt::format("{} is null", name));
    return body();
  });
}

constexpr const char* kComm = "the communicator";

// The same for a call that takes a communicator, which lives until the call returns.
template <typename Body>
xcclResult_t RunOn(xcclComm_t handle, const Body& body) noexcept {
  if (handle == nullptr) return RunFor(nullptr, kComm, OkStatus);
  return Run(
      [&]() -> Status {
        XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Comm> comm, xccl::c_api::Find(handle));
        return body(*comm);
      },
      handle);
}

// One cache a process.
const std::shared_ptr<xccl::cuda::KernelCache>& Cache() {
  static const auto cache =
      std::make_shared<xccl::cuda::KernelCache>(xccl::cuda::DefaultKernelCache(xccl::ProcessEnvironment));
  return cache;
}

xccl::cuda::BackendOptions CudaOptions(const Comm& comm) {
  xccl::cuda::BackendOptions options;
  options.program = comm.settings.cuda;
  options.program.time_limit = comm.communicator.time_limit();
  options.images = xccl::cuda::ImagesOfBook(Cache());
  options.interpreter = [](const xccl::Program& program) {
    return xccl::cuda::ImagesOfInterpreter(program, Cache());
  };
  if (xccl::c_api::TheGpus().adapt) xccl::c_api::TheGpus().adapt(options);
  return options;
}

// A GPU of one of this process's ranks. Requires: comm.mutex is held.
xccl::StatusOr<xccl::Backend> CudaThread(Comm& comm) {
  XCCL_ASSIGN_OR_RETURN(const xccl::cuda::Driver* driver, xccl::c_api::TheGpus().driver());
  const std::lock_guard lock(comm.shared->mutex);
  if (comm.shared->ready.empty()) {
    for (size_t r = 0; r < comm.shared->devices.size(); ++r)
      if (comm.shared->devices[r] < 0)
        return InvalidInput(fmt::format("rank {} has no GPU; expected xcclCommUseCuda on all ranks", r));
    XCCL_ASSIGN_OR_RETURN(comm.shared->ready,
                          xccl::cuda::ThreadBackends(*driver, comm.shared->devices, CudaOptions(comm)));
  }
  return std::move(comm.shared->ready[comm.communicator.rank().index()]);
}

// A GPU of this process, which is one rank.
xccl::StatusOr<xccl::Backend> CudaProcess(const Comm& comm, xccl::LaunchedGroup& group) {
  const xccl::Bootstrap& ranks = group.bootstrap();
  XCCL_ASSIGN_OR_RETURN(const xccl::cuda::Driver* driver, xccl::c_api::TheGpus().driver());
  xccl::cuda::BackendOptions options = CudaOptions(comm);
  if (ranks.host_names().size() > 1) options.hosts = xccl::OtherHostsOf(group, options.program.time_limit);
  return xccl::cuda::ProcessBackend(*driver, fmt::format("xccl-{}-gpus", ranks.job()), ranks.rank(),
                                    ranks.ranks(), *comm.settings.device, options.program.time_limit,
                                    options);
}

xccl::StatusOr<xccl::Backend> MakeBackend(Comm& comm) {
  const std::lock_guard lock(comm.mutex);
  if (comm.settings.device && comm.meeting == nullptr) return CudaThread(comm);
  if (comm.threads) return *std::move(comm.threads);
  const xccl::c_api::TimeLimit limit = [&comm] { return comm.communicator.time_limit(); };
  if (!comm.settings.device) return xccl::c_api::CpuBackend(comm.meeting, limit);
  XCCL_ASSIGN_OR_RETURN(xccl::LaunchedGroup* const group, comm.meeting->Join(limit()));
  xccl::StatusOr<xccl::Backend> backend = CudaProcess(comm, *group);
  if (backend.ok()) {
    xccl::c_api::AddMeeting(comm.meeting, limit, *backend);
  } else {  // the others wait for this rank
    group->Fail(xccl::Annotate(backend.status(), fmt::format("rank {}", comm.communicator.rank().value)));
  }
  return backend;
}

Status BeforeTheFirstBook(const Comm& comm, const char* what) {
  if (!comm.communicator.connected()) return OkStatus();
  return InvalidInput(fmt::format("{} before a book is loaded", what));
}

// Runs the body now, or in a group when that ends; then the handle alone is looked at now.
template <typename Body>
xcclResult_t RunGrouped(xcclComm_t comm, bool waits, const Body& body) noexcept {
  if (!xccl::c_api::InGroup()) return RunOn(comm, body);
  return RunOn(comm, [&](const Comm&) {
    xccl::c_api::Defer(comm, waits, [comm, body] { return RunOn(comm, body); });
    return OkStatus();
  });
}

xcclResult_t Enqueue(xcclComm_t comm, CollectiveKind kind, const void* send, void* receive, size_t count,
                     xcclDataType_t type, xcclRedOp_t op, std::optional<Rank> root, xcclStream_t stream) {
  return RunGrouped(comm, /*waits=*/false, [=](Comm& on) -> Status {
    if (static_cast<size_t>(type) >= xcclNumTypes)
      return UsageError(fmt::format("data type {}; expected 0 to 11", static_cast<int>(type)));
    if (static_cast<size_t>(op) >= kOps.size())
      return UsageError(fmt::format("reduction {}; expected 0 to 4", static_cast<int>(op)));
    if (count > size_t{1} << 62) return UsageError(fmt::format("count {} is too large", count));
    return on.communicator.Enqueue({kind, static_cast<const std::byte*>(send),
                                    static_cast<std::byte*>(receive), static_cast<int64_t>(count),
                                    static_cast<DataType>(type), kOps[op], root, stream});
  });
}

// Stores what value() gives for the caller.
template <typename T, typename Value>
xcclResult_t Give(xcclComm_t comm, T* to, const char* name, const Value& value) {
  return RunOn(comm, [&](Comm& of) {
    if (to == nullptr) return UsageError(fmt::format("{} is null", name));
    *to = value(of.communicator);
    return OkStatus();
  });
}

Status CheckSize(int ranks, int rank) {
  if (ranks < 1 || ranks > kMostRanks)
    return UsageError(fmt::format("{} ranks; expected 1 to {}", ranks, kMostRanks));
  if (rank < 0 || rank >= ranks) return UsageError(fmt::format("rank {}; expected 0 to {}", rank, ranks - 1));
  return OkStatus();
}

// Ranks of this process.
std::vector<xcclComm_t> MakeThreads(int ranks, const int* devices) {
  std::vector<xccl::Backend> backends = xccl::ThreadBackends(ranks);
  auto shared = std::make_shared<xccl::c_api::OneProcess>();
  shared->devices.assign(static_cast<size_t>(ranks), -1);
  std::vector<std::shared_ptr<Comm>> made;
  for (int r = 0; r < ranks; ++r) {
    made.push_back(std::make_shared<Comm>(Rank(r), ranks, MakeBackend));
    made.back()->threads = std::move(backends[static_cast<size_t>(r)]);
    made.back()->shared = shared;
    if (devices != nullptr) made.back()->settings.device = shared->devices[r] = devices[r];
  }
  return xccl::c_api::Add(std::move(made));
}

// One rank among processes.
xcclComm_t MakeProcess(const xccl::Placement& placement) {
  if (placement.ranks == 1) return MakeThreads(1, nullptr)[0];
  auto made = std::make_shared<Comm>(placement.rank, placement.ranks, MakeBackend);
  made->meeting = std::make_shared<xccl::c_api::Meeting>(placement);
  return xccl::c_api::Add({std::move(made)})[0];
}

}  // namespace

xcclResult_t xcclGetVersion(int* version) {
  return RunFor(version, "version", [&] {
    *version = XCCL_VERSION_CODE;
    return OkStatus();
  });
}

const char* xcclGetErrorString(xcclResult_t result) {
  switch (result) {
    case xcclSuccess:
      return "no error";
    case xcclUnhandledCudaError:
      return "CUDA error";
    case xcclInProgress:
      return "in progress";
    case xcclSystemError:
      return "system error";
    case xcclInternalError:
      return "internal error";
    case xcclInvalidArgument:
      return "invalid argument";
    case xcclInvalidUsage:
      return "invalid usage";
    case xcclRemoteError:
      return "remote rank ended or stopped";
  }
  return "unknown result code";
}

const char* xcclGetLastError(xcclComm_t comm) try {
  if (comm == nullptr) return xccl::c_api::Show(xccl::c_api::LastText());
  Status status;
  if (const auto found = xccl::c_api::Find(comm); found.ok()) status = (*found)->communicator.AsyncError();
  return xccl::c_api::Show(status.ok() ? xccl::c_api::LastTextOn(comm) : status.message());
} catch (const std::exception&) {
  return "out of memory";
}

const char* xcclCommGetNotices(xcclComm_t comm) try {
  std::string all;
  if (const auto found = xccl::c_api::Find(comm); found.ok())
    for (const std::string& line : (*found)->communicator.Notices()) all += line + "\n";
  return xccl::c_api::Show(std::move(all));
} catch (const std::exception&) {
  return "";
}

xcclResult_t xcclGetUniqueId(xcclUniqueId* id) {
  return RunFor(id, "id", [&]() -> Status {
    xccl::BootstrapOptions options;
    options.time_limit = xccl::BootstrapOptions::kForever;  // the ranks say how long they wait
    XCCL_ASSIGN_OR_RETURN(const xccl::UniqueId made, xccl::MakeUniqueId(options));
    *id = std::bit_cast<xcclUniqueId>(made);
    return OkStatus();
  });
}

xcclResult_t xcclCommInitRank(xcclComm_t* comm, int nranks, xcclUniqueId id, int rank) {
  return RunFor(comm, kComm, [&]() -> Status {
    XCCL_RETURN_IF_ERROR(CheckSize(nranks, rank));
    XCCL_ASSIGN_OR_RETURN(const xccl::Placement placement,
                          xccl::FromUniqueId(std::bit_cast<xccl::UniqueId>(id), Rank(rank), nranks));
    *comm = MakeProcess(placement);
    return OkStatus();
  });
}

xcclResult_t xcclCommInitFromLauncher(xcclComm_t* comm) {
  return RunFor(comm, kComm, [&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const xccl::Placement placement, xccl::FindPlacement(xccl::ProcessEnvironment));
    *comm = MakeProcess(placement);
    return OkStatus();
  });
}

xcclResult_t xcclCommInitAll(xcclComm_t* comms, int ndev, const int* devlist) {
  return RunFor(comms, kComm, [&]() -> Status {
    XCCL_RETURN_IF_ERROR(CheckSize(ndev, 0));
    for (int r = 0; devlist != nullptr && r < ndev; ++r)
      if (devlist[r] < 0)
        return UsageError(fmt::format("GPU {} of rank {}; expected 0 or more", devlist[r], r));
    std::ranges::copy(MakeThreads(ndev, devlist), comms);
    return OkStatus();
  });
}

xcclResult_t xcclCommLoadPlanBook(xcclComm_t comm, const char* directory) {
  if (directory == nullptr)
    return RunOn(comm, [](const Comm&) { return UsageError("the directory is null"); });
  return RunGrouped(comm, /*waits=*/true,
                    [path = std::string(directory)](Comm& on) { return on.communicator.LoadPlanBook(path); });
}

xcclResult_t xcclCommSetTimeLimit(xcclComm_t comm, double seconds) {
  return RunOn(comm, [&](Comm& of) -> Status {
    if (!(seconds >= 0)) return UsageError(fmt::format("time limit {} s; expected 0 or more", seconds));
    const std::lock_guard lock(of.mutex);
    if (of.settings.device) XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(of, "a GPU's time limit is set"));
    // A shorter one than a nanosecond is no end.
    const bool ends = seconds > 0 && seconds < std::chrono::duration<double>(xccl::kForEver).count();
    of.communicator.SetTimeLimit(ends ? std::chrono::nanoseconds(std::llround(std::ceil(seconds * 1e9)))
                                      : xccl::kForEver);
    return OkStatus();
  });
}

xcclResult_t xcclCommUseCuda(xcclComm_t comm, int device) {
  return RunOn(comm, [&](Comm& on) -> Status {
    if (device < 0) return UsageError(fmt::format("GPU {}; expected 0 or more", device));
    const std::lock_guard lock(on.mutex);
    XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(on, "a GPU is chosen"));
    on.settings.device = device;
    if (on.shared == nullptr) return OkStatus();
    const std::lock_guard shared_lock(on.shared->mutex);
    on.shared->devices[on.communicator.rank().index()] = device;
    return OkStatus();
  });
}

xcclResult_t xcclCommLimitCuda(xcclComm_t comm, int max_ctas, size_t memory_bytes) {
  return RunOn(comm, [&](Comm& of) -> Status {
    if (max_ctas < 0 || memory_bytes > size_t{1} << 50)
      return UsageError(
          fmt::format("{} CTAs and {} bytes; expected 0 or more of either", max_ctas, memory_bytes));
    const std::lock_guard lock(of.mutex);
    XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(of, "limits are set"));
    if (max_ctas != 0) of.settings.cuda.max_ctas = max_ctas;
    if (memory_bytes != 0) of.settings.cuda.arena.memory_limit = static_cast<int64_t>(memory_bytes);
    return OkStatus();
  });
}

xcclResult_t xcclCommRegister(xcclComm_t comm, void* buff, size_t size, void** handle) {
  return RunOn(comm, [&](Comm& on) -> Status {
    if (buff == nullptr || handle == nullptr)
      return UsageError(buff == nullptr ? "the buffer is null" : "handle is null");
    *handle = nullptr;
    XCCL_ASSIGN_OR_RETURN(const int32_t made, on.communicator.Register(static_cast<std::byte*>(buff), size));
    *handle = std::bit_cast<void*>(static_cast<intptr_t>(made));
    return OkStatus();
  });
}

xcclResult_t xcclCommDeregister(xcclComm_t comm, void* handle) {
  return RunOn(comm, [&](Comm& on) {
    return on.communicator.Deregister(static_cast<int32_t>(reinterpret_cast<intptr_t>(handle)));
  });
}

xcclResult_t xcclCommSynchronize(xcclComm_t comm) {
  return RunOn(comm, [](Comm& on) { return on.communicator.Synchronize(); });
}

xcclResult_t xcclCommFinalize(xcclComm_t comm) { return xcclCommSynchronize(comm); }

xcclResult_t xcclCommDestroy(xcclComm_t comm) {
  if (comm == nullptr) return xcclSuccess;
  return Run([&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Comm> dropped, xccl::c_api::Drop(comm));
    // Its failure has been told to those who asked.
    static_cast<void>(dropped->communicator.Synchronize());
    return OkStatus();
  });
}

xcclResult_t xcclCommAbort(xcclComm_t comm) {
  if (comm == nullptr) return xcclSuccess;
  return Run([&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Comm> dropped, xccl::c_api::Drop(comm));
    if (dropped->meeting != nullptr) dropped->meeting->Abort(dropped->communicator.Aborted());
    dropped->communicator.Abort();
    return OkStatus();
  });
}

xcclResult_t xcclCommGetAsyncError(xcclComm_t comm, xcclResult_t* error) {
  return Give(comm, error, "error", [](xccl::Communicator& of) { return ResultOf(of.AsyncError()); });
}

xcclResult_t xcclCommCount(xcclComm_t comm, int* count) {
  return Give(comm, count, "count", [](const xccl::Communicator& of) { return of.ranks(); });
}

xcclResult_t xcclCommCuDevice(xcclComm_t comm, int* device) {
  return RunOn(comm, [&](Comm& of) -> Status {
    if (device == nullptr) return UsageError("device is null");
    const std::lock_guard lock(of.mutex);
    if (!of.settings.device) return InvalidInput("the communicator is on the CPU; it has no GPU");
    *device = *of.settings.device;
    return OkStatus();
  });
}

xcclResult_t xcclCommUserRank(xcclComm_t comm, int* rank) {
  return Give(comm, rank, "rank", [](const xccl::Communicator& of) { return of.rank().value; });
}

xcclResult_t xcclAllReduce(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                           xcclRedOp_t op, xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kAllreduce, sendbuff, recvbuff, count, type, op, std::nullopt, stream);
}

xcclResult_t xcclBroadcast(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                           xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kBroadcast, sendbuff, recvbuff, count, type, xcclSum, Rank(root),
                 stream);
}

xcclResult_t xcclReduce(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                        xcclRedOp_t op, int root, xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kReduce, sendbuff, recvbuff, count, type, op, Rank(root), stream);
}

xcclResult_t xcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, xcclDataType_t type,
                           xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kAllgather, sendbuff, recvbuff, sendcount, type, xcclSum, std::nullopt,
                 stream);
}

xcclResult_t xcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, xcclDataType_t type,
                               xcclRedOp_t op, xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kReduceScatter, sendbuff, recvbuff, recvcount, type, op, std::nullopt,
                 stream);
}

xcclResult_t xcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type,
                          xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kAlltoall, sendbuff, recvbuff, count, type, xcclSum, std::nullopt,
                 stream);
}

xcclResult_t xcclGather(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                        xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kGather, sendbuff, recvbuff, count, type, xcclSum, Rank(root), stream);
}

xcclResult_t xcclScatter(const void* sendbuff, void* recvbuff, size_t count, xcclDataType_t type, int root,
                         xcclComm_t comm, xcclStream_t stream) {
  return Enqueue(comm, CollectiveKind::kScatter, sendbuff, recvbuff, count, type, xcclSum, Rank(root),
                 stream);
}

xcclResult_t xcclBcast(void* buff, size_t count, xcclDataType_t type, int root, xcclComm_t comm,
                       xcclStream_t stream) {
  return xcclBroadcast(buff, buff, count, type, root, comm, stream);
}

xcclResult_t xcclGroupStart(void) {
  xccl::c_api::StartGroup();
  return xcclSuccess;
}

xcclResult_t xcclGroupEnd(void) {
  try {
    return xccl::c_api::EndGroup();
  } catch (const std::exception& error) {
    return Fail(xcclSystemError, error.what());
  }
}
