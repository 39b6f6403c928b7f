// A thin layer over Communicator: numbers of types and operators, Status and exceptions to result codes,
// texts kept for xcclGetLastError.
#include "runtime/xccl.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
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
#include "runtime/bootstrap/placement.h"
#include "runtime/communicator.h"
#include "runtime/cpu/backends.h"
#include "runtime/cuda/backends.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"

namespace {

// The state that the communicators of one xcclCommInitAll share: GPUs' back ends can be made when all devices
// are known.
struct OneProcess {
  std::mutex mutex;
  std::vector<int32_t> devices;      // by rank
  std::vector<xccl::Backend> ready;  // by rank; moved out one by one
};

}  // namespace

// The communicator is made when its first book is loaded, so that the time limit may be set before.
struct xcclComm {
  xccl::Rank rank;
  int32_t ranks = 1;
  std::string name;                      // processes: where they meet
  std::unique_ptr<xccl::Backend> ready;  // threads: made together
  std::optional<int> device;             // a GPU
  std::shared_ptr<OneProcess> shared;    // threads
  xccl::cuda::DeviceProgramOptions cuda;
  xccl::CommunicatorOptions options;
  std::unique_ptr<xccl::Communicator> communicator;
};

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

constexpr int kVersion = 100;
constexpr int kMostRanks = 1 << 16;
constexpr int kTypes = 12;
static_assert(static_cast<int>(DataType::kUint64) == xcclUint64 &&
              static_cast<int>(DataType::kHalf) == xcclFloat16 &&
              static_cast<int>(DataType::kBfloat16) == xcclBfloat16 &&
              static_cast<int>(DataType::kFp8E5m2) == xcclFloat8e5m2);
constexpr std::array<ReduceOp, 5> kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                                          ReduceOp::kAvg};

// The text of this thread's last failed call, as errno is this thread's.
thread_local std::string last_error;
thread_local std::string shown_text;

xcclResult_t Fail(xcclResult_t result, std::string_view text) noexcept {
  try {
    last_error = text;
  } catch (const std::exception&) {
    last_error.clear();
  }
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

// The text of a failure is kept for xcclGetLastError.
xcclResult_t Report(const Status& status) {
  return status.ok() ? xcclSuccess : Fail(ResultOf(status), status.message());
}

// Runs the body of a call, which returns a Status. No exception crosses the C API.
template <typename Body>
xcclResult_t Run(const Body& body) noexcept {
  try {
    try {
      return Report(body());
    } catch (const std::exception& error) {
      return Report(xccl::StatusOf(error));
    }
  } catch (const std::exception&) {
    return Fail(xcclSystemError, "out of memory");
  }
}

// The same for a call that takes a communicator, or a place for one.
template <typename Body>
xcclResult_t RunOn(const void* comm, const Body& body) noexcept {
  if (comm == nullptr) return Fail(xcclInvalidArgument, "the communicator is null");
  return Run(body);
}

// One cache a process.
const std::shared_ptr<xccl::cuda::KernelCache>& Cache() {
  static const auto cache =
      std::make_shared<xccl::cuda::KernelCache>(xccl::cuda::DefaultKernelCache(xccl::ProcessEnvironment));
  return cache;
}

xccl::StatusOr<xccl::Backend> CudaBackend(xcclComm& comm) {
  XCCL_ASSIGN_OR_RETURN(const xccl::cuda::Driver* driver, xccl::cuda::LoadDriver());
  xccl::cuda::BackendOptions options;
  options.program = comm.cuda;
  options.program.time_limit = comm.options.time_limit;
  options.images = xccl::cuda::ImagesOfBook(Cache());
  options.interpreter = [](const xccl::Program& program) {
    return xccl::cuda::ImagesOfInterpreter(program, Cache());
  };
  if (comm.shared == nullptr)
    return xccl::cuda::ProcessBackend(*driver, comm.name, comm.rank, comm.ranks, *comm.device,
                                      comm.options.time_limit, options);
  const std::lock_guard lock(comm.shared->mutex);
  if (comm.shared->ready.empty()) {
    for (size_t r = 0; r < comm.shared->devices.size(); ++r)
      if (comm.shared->devices[r] < 0)
        return InvalidInput(fmt::format("rank {} has no GPU; expected xcclCommUseCuda on all ranks", r));
    XCCL_ASSIGN_OR_RETURN(comm.shared->ready,
                          xccl::cuda::ThreadBackends(*driver, comm.shared->devices, options));
  }
  return std::move(comm.shared->ready[comm.rank.index()]);
}

Status Connect(xcclComm& comm) {
  if (comm.communicator != nullptr) return OkStatus();
  xccl::Backend backend;
  if (comm.device) {
    XCCL_ASSIGN_OR_RETURN(backend, CudaBackend(comm));
  } else {
    backend = comm.ready != nullptr
                  ? std::move(*comm.ready)
                  : xccl::SharedMemoryBackend(comm.name, comm.rank, comm.options.time_limit);
  }
  comm.communicator =
      std::make_unique<xccl::Communicator>(comm.rank, comm.ranks, std::move(backend), comm.options);
  return OkStatus();
}

Status BeforeTheFirstBook(const xcclComm& comm, const char* what) {
  if (comm.communicator == nullptr) return OkStatus();
  return InvalidInput(fmt::format("{} before a book is loaded", what));
}

xcclResult_t Enqueue(xcclComm_t comm, CollectiveKind kind, const void* send, void* receive, size_t count,
                     xcclDataType_t type, xcclRedOp_t op, std::optional<Rank> root, xcclStream_t stream) {
  return RunOn(comm, [&]() -> Status {
    if (static_cast<size_t>(type) >= kTypes)
      return UsageError(fmt::format("data type {}; expected 0 to 11", static_cast<int>(type)));
    if (static_cast<size_t>(op) >= kOps.size())
      return UsageError(fmt::format("reduction {}; expected 0 to 4", static_cast<int>(op)));
    if (count > size_t{1} << 62) return UsageError(fmt::format("count {} is too large", count));
    if (comm->communicator == nullptr) return InvalidInput("no plan book is loaded");
    return comm->communicator->Enqueue({kind, static_cast<const std::byte*>(send),
                                        static_cast<std::byte*>(receive), static_cast<int64_t>(count),
                                        static_cast<DataType>(type), kOps[op], root, stream});
  });
}

// Stores what value() gives for the caller.
template <typename T, typename Value>
xcclResult_t Give(xcclComm_t comm, T* to, const char* name, const Value& value) {
  return RunOn(comm, [&] {
    if (to == nullptr) return UsageError(fmt::format("{} is null", name));
    *to = value();
    return OkStatus();
  });
}

Status CheckSize(int ranks, int rank) {
  if (ranks < 1 || ranks > kMostRanks)
    return UsageError(fmt::format("{} ranks; expected 1 to {}", ranks, kMostRanks));
  if (rank < 0 || rank >= ranks) return UsageError(fmt::format("rank {}; expected 0 to {}", rank, ranks - 1));
  return OkStatus();
}

xcclComm_t MakeComm(Rank rank, int32_t ranks, std::string name) {
  auto made = std::make_unique<xcclComm>();
  made->rank = rank;
  made->ranks = ranks;
  made->name = std::move(name);
  return made.release();
}

}  // namespace

xcclResult_t xcclGetVersion(int* version) {
  if (version == nullptr) return Fail(xcclInvalidArgument, "version is null");
  *version = kVersion;
  return xcclSuccess;
}

const char* xcclGetErrorString(xcclResult_t result) {
  switch (result) {
    case xcclSuccess:
      return "no error";
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
  shown_text = last_error;
  if (comm != nullptr) {
    const Status status = comm->communicator == nullptr ? OkStatus() : comm->communicator->AsyncError();
    shown_text = status.message();
  }
  return shown_text.c_str();
} catch (const std::exception&) {
  return "out of memory";
}

const char* xcclCommGetNotices(xcclComm_t comm) try {
  shown_text.clear();
  if (comm != nullptr && comm->communicator != nullptr)
    for (const std::string& line : comm->communicator->Notices()) shown_text += line + "\n";
  return shown_text.c_str();
} catch (const std::exception&) {
  return "";
}

xcclResult_t xcclGetUniqueId(xcclUniqueId* id) {
  return Run([&] {
    if (id == nullptr) return UsageError("id is null");
    std::array<unsigned char, 16> random = {};
    if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
      return xccl::SystemError("the system has no random numbers");
    std::string name = "xccl-";
    for (unsigned char byte : random) name += fmt::format("{:02x}", byte);
    std::memset(id->internal, 0, sizeof id->internal);
    std::memcpy(id->internal, name.data(), name.size());
    return OkStatus();
  });
}

xcclResult_t xcclCommInitRank(xcclComm_t* comm, int nranks, xcclUniqueId id, int rank) {
  return RunOn(comm, [&]() -> Status {
    XCCL_RETURN_IF_ERROR(CheckSize(nranks, rank));
    const std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
    if (name.rfind("xccl-", 0) != 0 || name.find('/') != std::string::npos)
      return UsageError("the id was not made by xcclGetUniqueId");
    *comm = MakeComm(Rank(rank), nranks, name);
    return OkStatus();
  });
}

xcclResult_t xcclCommInitFromLauncher(xcclComm_t* comm) {
  return RunOn(comm, [&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const xccl::Placement placement, xccl::FindPlacement(xccl::ProcessEnvironment));
    if (placement.local_ranks.value_or(placement.ranks) != placement.ranks)
      return InvalidInput(
          fmt::format("{}: {} of {} ranks are on this host; shared memory joins ranks of one host",
                      placement.launcher, *placement.local_ranks, placement.ranks));
    *comm = MakeComm(placement.rank, placement.ranks, "xccl-" + placement.job);
    return OkStatus();
  });
}

xcclResult_t xcclCommInitAll(xcclComm_t* comms, int ndev, const int* devlist) {
  return RunOn(comms, [&]() -> Status {
    XCCL_RETURN_IF_ERROR(CheckSize(ndev, 0));
    for (int r = 0; devlist != nullptr && r < ndev; ++r)
      if (devlist[r] < 0)
        return UsageError(fmt::format("GPU {} of rank {}; expected 0 or more", devlist[r], r));
    std::vector<xccl::Backend> backends = xccl::ThreadBackends(ndev);
    auto shared = std::make_shared<OneProcess>();
    shared->devices.assign(static_cast<size_t>(ndev), -1);
    for (int r = 0; r < ndev; ++r) {
      comms[r] = MakeComm(Rank(r), ndev, "");
      comms[r]->ready = std::make_unique<xccl::Backend>(std::move(backends[static_cast<size_t>(r)]));
      comms[r]->shared = shared;
      if (devlist != nullptr) comms[r]->device = shared->devices[static_cast<size_t>(r)] = devlist[r];
    }
    return OkStatus();
  });
}

xcclResult_t xcclCommLoadPlanBook(xcclComm_t comm, const char* directory) {
  return RunOn(comm, [&]() -> Status {
    if (directory == nullptr) return UsageError("the directory is null");
    XCCL_RETURN_IF_ERROR(Connect(*comm));
    return comm->communicator->LoadPlanBook(directory);
  });
}

xcclResult_t xcclCommSetTimeLimit(xcclComm_t comm, double seconds) {
  return RunOn(comm, [&]() -> Status {
    if (!(seconds > 0) || seconds > 1e6)
      return UsageError(fmt::format("time limit {} s; expected more than 0, at most 1e6", seconds));
    XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(*comm, "the time limit is set"));
    comm->options.time_limit = std::chrono::nanoseconds(std::llround(seconds * 1e9));
    return OkStatus();
  });
}

xcclResult_t xcclCommUseCuda(xcclComm_t comm, int device) {
  return RunOn(comm, [&]() -> Status {
    if (device < 0) return UsageError(fmt::format("GPU {}; expected 0 or more", device));
    XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(*comm, "a GPU is chosen"));
    comm->device = device;
    if (comm->shared == nullptr) return OkStatus();
    const std::lock_guard lock(comm->shared->mutex);
    comm->shared->devices[comm->rank.index()] = device;
    return OkStatus();
  });
}

xcclResult_t xcclCommLimitCuda(xcclComm_t comm, int max_ctas, size_t memory_bytes) {
  return RunOn(comm, [&]() -> Status {
    if (max_ctas < 0 || memory_bytes > size_t{1} << 50)
      return UsageError(
          fmt::format("{} CTAs and {} bytes; expected 0 or more of either", max_ctas, memory_bytes));
    XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(*comm, "limits are set"));
    if (max_ctas != 0) comm->cuda.max_ctas = max_ctas;
    if (memory_bytes != 0) comm->cuda.arena.memory_limit = static_cast<int64_t>(memory_bytes);
    return OkStatus();
  });
}

xcclResult_t xcclCommRegister(xcclComm_t comm, void* buff, size_t size, void** handle) {
  return RunOn(comm, [&]() -> Status {
    if (buff == nullptr || handle == nullptr)
      return UsageError(buff == nullptr ? "the buffer is null" : "handle is null");
    *handle = nullptr;
    if (comm->communicator == nullptr) return InvalidInput("register: no plan book is loaded");
    XCCL_ASSIGN_OR_RETURN(const int32_t made,
                          comm->communicator->Register(static_cast<std::byte*>(buff), size));
    *handle = std::bit_cast<void*>(static_cast<intptr_t>(made));
    return OkStatus();
  });
}

xcclResult_t xcclCommDeregister(xcclComm_t comm, void* handle) {
  return RunOn(comm, [&]() -> Status {
    if (handle == nullptr) return OkStatus();
    if (comm->communicator == nullptr) return InvalidInput("register: no plan book is loaded");
    return comm->communicator->Deregister(static_cast<int32_t>(reinterpret_cast<intptr_t>(handle)));
  });
}

xcclResult_t xcclCommSynchronize(xcclComm_t comm) {
  return RunOn(
      comm, [&] { return comm->communicator == nullptr ? OkStatus() : comm->communicator->Synchronize(); });
}

xcclResult_t xcclCommFinalize(xcclComm_t comm) { return xcclCommSynchronize(comm); }

xcclResult_t xcclCommDestroy(xcclComm_t comm) {
  const std::unique_ptr<xcclComm> owned(comm);
  return xcclSuccess;
}

xcclResult_t xcclCommAbort(xcclComm_t comm) {
  const xcclResult_t result = Run([&] {
    if (comm != nullptr && comm->communicator != nullptr) comm->communicator->Abort();
    return OkStatus();
  });
  return result == xcclSuccess ? xcclCommDestroy(comm) : result;
}

xcclResult_t xcclCommGetAsyncError(xcclComm_t comm, xcclResult_t* error) {
  return Give(comm, error, "error", [&] {
    return comm->communicator == nullptr ? xcclSuccess : ResultOf(comm->communicator->AsyncError());
  });
}

xcclResult_t xcclCommCount(xcclComm_t comm, int* count) {
  return Give(comm, count, "count", [&] { return comm->ranks; });
}

xcclResult_t xcclCommUserRank(xcclComm_t comm, int* rank) {
  return Give(comm, rank, "rank", [&] { return comm->rank.value; });
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

xcclResult_t xcclGroupStart(void) { return xcclSuccess; }
xcclResult_t xcclGroupEnd(void) { return xcclSuccess; }
