// A thin layer over Communicator: numbers of types and operators, Status and exceptions to result codes,
// texts kept for xcclGetLastError.
#include "runtime/xccl.h"

#include <fmt/format.h>
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
#include "runtime/bootstrap.h"
#include "runtime/communicator.h"
#include "runtime/cpu/backends.h"
#include "runtime/cuda/backends.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"

namespace {

// The state that the communicators of one xcclCommInitAll share: GPUs' back ends can be made when all devices
// are known.
struct Everybody {
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
  std::shared_ptr<Everybody> everybody;  // threads
  xccl::cuda::DeviceProgramOptions cuda;
  xccl::CommunicatorOptions options;
  std::unique_ptr<xccl::Communicator> communicator;
};

namespace {

using xccl::CollectiveKind;
using xccl::DataType;
using xccl::Rank;
using xccl::ReduceOp;
using xccl::Status;
using xccl::StatusCode;

constexpr int kVersion = 100;
constexpr int kMostRanks = 1 << 16;
constexpr std::array<DataType, 12> kTypes = {DataType::kInt8,     DataType::kUint8,   DataType::kInt32,
                                             DataType::kUint32,   DataType::kInt64,   DataType::kUint64,
                                             DataType::kHalf,     DataType::kFloat,   DataType::kDouble,
                                             DataType::kBfloat16, DataType::kFp8E4m3, DataType::kFp8E5m2};
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
  if (status.ok()) return xcclSuccess;
  switch (status.code()) {
    case StatusCode::kOk:
      return xcclSuccess;
    case StatusCode::kInvalidInput:
    case StatusCode::kUsage:
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

xcclResult_t Report(const Status& status) {
  return status.ok() ? xcclSuccess : Fail(ResultOf(status), status.message());
}

// No exception crosses the C API.
xcclResult_t Report(const std::exception& error) noexcept {
  try {
    return Report(xccl::StatusOf(error));
  } catch (const std::exception&) {
    return Fail(xcclSystemError, "out of memory");
  }
}

xcclResult_t NullComm() { return Fail(xcclInvalidArgument, "the communicator is null"); }

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
  if (comm.everybody == nullptr)
    return xccl::cuda::ProcessBackend(*driver, comm.name, comm.rank, comm.ranks, *comm.device,
                                      comm.options.time_limit, options);
  const std::lock_guard lock(comm.everybody->mutex);
  if (comm.everybody->ready.empty()) {
    for (size_t r = 0; r < comm.everybody->devices.size(); ++r)
      if (comm.everybody->devices[r] < 0)
        return xccl::InvalidInput(
            fmt::format("rank {} has no GPU; expected xcclCommUseCuda on all ranks", r));
    XCCL_ASSIGN_OR_RETURN(comm.everybody->ready,
                          xccl::cuda::ThreadBackends(*driver, comm.everybody->devices, options));
  }
  return std::move(comm.everybody->ready[comm.rank.index()]);
}

Status Connect(xcclComm& comm) {
  if (comm.communicator != nullptr) return xccl::OkStatus();
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
  return xccl::OkStatus();
}

xcclResult_t BeforeTheFirstBook(const xcclComm& comm, const char* what) {
  if (comm.communicator == nullptr) return xcclSuccess;
  return Fail(xcclInvalidUsage, fmt::format("{} before a book is loaded", what));
}

xcclResult_t Enqueue(xcclComm_t comm, CollectiveKind kind, const void* send, void* receive, size_t count,
                     xcclDataType_t type, xcclRedOp_t op, std::optional<Rank> root, xcclStream_t stream) try {
  if (comm == nullptr) return NullComm();
  if (static_cast<size_t>(type) >= kTypes.size())
    return Fail(xcclInvalidArgument, fmt::format("data type {}; expected 0 to 11", static_cast<int>(type)));
  if (static_cast<size_t>(op) >= kOps.size())
    return Fail(xcclInvalidArgument, fmt::format("reduction {}; expected 0 to 4", static_cast<int>(op)));
  if (count > size_t{1} << 62) return Fail(xcclInvalidArgument, fmt::format("count {} is too large", count));
  if (comm->communicator == nullptr) return Fail(xcclInvalidUsage, "no plan book is loaded");
  xccl::Call call;
  call.collective = kind;
  call.send = static_cast<const std::byte*>(send);
  call.receive = static_cast<std::byte*>(receive);
  call.count = static_cast<int64_t>(count);
  call.type = kTypes[type];
  call.op = kOps[op];
  call.root = root;
  call.stream = stream;
  return Report(comm->communicator->Enqueue(call));
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t CheckSize(int ranks, int rank) {
  if (ranks < 1 || ranks > kMostRanks)
    return Fail(xcclInvalidArgument, fmt::format("{} ranks; expected 1 to {}", ranks, kMostRanks));
  if (rank < 0 || rank >= ranks)
    return Fail(xcclInvalidArgument, fmt::format("rank {}; expected 0 to {}", rank, ranks - 1));
  return xcclSuccess;
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
    const Status status = comm->communicator == nullptr ? xccl::OkStatus() : comm->communicator->AsyncError();
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

xcclResult_t xcclGetUniqueId(xcclUniqueId* id) try {
  if (id == nullptr) return Fail(xcclInvalidArgument, "id is null");
  std::array<unsigned char, 16> random = {};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return Fail(xcclSystemError, "the system has no random numbers");
  std::string name = "xccl-";
  for (unsigned char byte : random) name += fmt::format("{:02x}", byte);
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, name.data(), name.size());
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommInitRank(xcclComm_t* comm, int nranks, xcclUniqueId id, int rank) try {
  if (comm == nullptr) return NullComm();
  if (const xcclResult_t bad = CheckSize(nranks, rank); bad != xcclSuccess) return bad;
  const std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
  if (name.rfind("xccl-", 0) != 0 || name.find('/') != std::string::npos)
    return Fail(xcclInvalidArgument, "the id was not made by xcclGetUniqueId");
  auto made = std::make_unique<xcclComm>();
  made->rank = Rank(rank);
  made->ranks = nranks;
  made->name = name;
  *comm = made.release();
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommInitFromLauncher(xcclComm_t* comm) try {
  if (comm == nullptr) return NullComm();
  const xccl::StatusOr<xccl::Placement> placement = xccl::FindPlacement(xccl::ProcessEnvironment);
  if (!placement.ok()) return Report(placement.status());
  if (placement->local_ranks != placement->ranks)
    return Fail(xcclInvalidUsage,
                fmt::format("{}: {} of {} ranks are on this host; shared memory joins ranks of one host",
                            placement->launcher, placement->local_ranks, placement->ranks));
  auto made = std::make_unique<xcclComm>();
  made->rank = placement->rank;
  made->ranks = placement->ranks;
  made->name = "xccl-" + placement->job;
  *comm = made.release();
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommInitAll(xcclComm_t* comms, int ndev, const int* devlist) try {
  if (comms == nullptr) return NullComm();
  if (const xcclResult_t bad = CheckSize(ndev, 0); bad != xcclSuccess) return bad;
  for (int r = 0; devlist != nullptr && r < ndev; ++r)
    if (devlist[r] < 0)
      return Fail(xcclInvalidArgument, fmt::format("GPU {} of rank {}; expected 0 or more", devlist[r], r));
  std::vector<xccl::Backend> backends = xccl::ThreadBackends(ndev);
  auto everybody = std::make_shared<Everybody>();
  everybody->devices.assign(static_cast<size_t>(ndev), -1);
  for (int r = 0; r < ndev; ++r) {
    auto made = std::make_unique<xcclComm>();
    made->rank = Rank(r);
    made->ranks = ndev;
    made->ready = std::make_unique<xccl::Backend>(std::move(backends[static_cast<size_t>(r)]));
    made->everybody = everybody;
    if (devlist != nullptr) made->device = everybody->devices[static_cast<size_t>(r)] = devlist[r];
    comms[r] = made.release();
  }
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommLoadPlanBook(xcclComm_t comm, const char* directory) try {
  if (comm == nullptr) return NullComm();
  if (directory == nullptr) return Fail(xcclInvalidArgument, "the directory is null");
  if (const Status connected = Connect(*comm); !connected.ok()) return Report(connected);
  return Report(comm->communicator->LoadPlanBook(directory));
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommSetTimeLimit(xcclComm_t comm, double seconds) try {
  if (comm == nullptr) return NullComm();
  if (!(seconds > 0) || seconds > 1e6)
    return Fail(xcclInvalidArgument,
                fmt::format("time limit {} s; expected more than 0, at most 1e6", seconds));
  if (const xcclResult_t late = BeforeTheFirstBook(*comm, "the time limit is set"); late != xcclSuccess)
    return late;
  comm->options.time_limit = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommUseCuda(xcclComm_t comm, int device) try {
  if (comm == nullptr) return NullComm();
  if (device < 0) return Fail(xcclInvalidArgument, fmt::format("GPU {}; expected 0 or more", device));
  if (const xcclResult_t late = BeforeTheFirstBook(*comm, "a GPU is chosen"); late != xcclSuccess)
    return late;
  comm->device = device;
  if (comm->everybody == nullptr) return xcclSuccess;
  const std::lock_guard lock(comm->everybody->mutex);
  comm->everybody->devices[comm->rank.index()] = device;
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommLimitCuda(xcclComm_t comm, int max_ctas, size_t memory_bytes) try {
  if (comm == nullptr) return NullComm();
  if (max_ctas < 0 || memory_bytes > size_t{1} << 50)
    return Fail(xcclInvalidArgument,
                fmt::format("{} CTAs and {} bytes; expected 0 or more of either", max_ctas, memory_bytes));
  if (const xcclResult_t late = BeforeTheFirstBook(*comm, "limits are set"); late != xcclSuccess) return late;
  if (max_ctas != 0) comm->cuda.max_ctas = max_ctas;
  if (memory_bytes != 0) comm->cuda.arena.memory_limit = static_cast<int64_t>(memory_bytes);
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommRegister(xcclComm_t comm, void* buff, size_t size, void** handle) try {
  if (comm == nullptr) return NullComm();
  if (buff == nullptr || handle == nullptr)
    return Fail(xcclInvalidArgument, buff == nullptr ? "the buffer is null" : "handle is null");
  *handle = nullptr;
  if (comm->communicator == nullptr) return Fail(xcclInvalidUsage, "register: no plan book is loaded");
  const xccl::StatusOr<int32_t> made = comm->communicator->Register(static_cast<std::byte*>(buff), size);
  if (!made.ok()) return Report(made.status());
  *handle = std::bit_cast<void*>(static_cast<intptr_t>(*made));
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommDeregister(xcclComm_t comm, void* handle) try {
  if (comm == nullptr) return NullComm();
  if (handle == nullptr) return xcclSuccess;
  if (comm->communicator == nullptr) return Fail(xcclInvalidUsage, "register: no plan book is loaded");
  return Report(comm->communicator->Deregister(static_cast<int32_t>(reinterpret_cast<intptr_t>(handle))));
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommSynchronize(xcclComm_t comm) try {
  if (comm == nullptr) return NullComm();
  return comm->communicator == nullptr ? xcclSuccess : Report(comm->communicator->Synchronize());
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommFinalize(xcclComm_t comm) { return xcclCommSynchronize(comm); }

xcclResult_t xcclCommDestroy(xcclComm_t comm) {
  const std::unique_ptr<xcclComm> owned(comm);
  return xcclSuccess;
}

xcclResult_t xcclCommAbort(xcclComm_t comm) try {
  if (comm != nullptr && comm->communicator != nullptr) comm->communicator->Abort();
  return xcclCommDestroy(comm);
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommGetAsyncError(xcclComm_t comm, xcclResult_t* error) try {
  if (comm == nullptr) return NullComm();
  if (error == nullptr) return Fail(xcclInvalidArgument, "error is null");
  *error = comm->communicator == nullptr ? xcclSuccess : ResultOf(comm->communicator->AsyncError());
  return xcclSuccess;
} catch (const std::exception& thrown) {
  return Report(thrown);
}

xcclResult_t xcclCommCount(xcclComm_t comm, int* count) {
  if (comm == nullptr) return NullComm();
  if (count == nullptr) return Fail(xcclInvalidArgument, "count is null");
  *count = comm->ranks;
  return xcclSuccess;
}

xcclResult_t xcclCommUserRank(xcclComm_t comm, int* rank) {
  if (comm == nullptr) return NullComm();
  if (rank == nullptr) return Fail(xcclInvalidArgument, "rank is null");
  *rank = comm->rank.value;
  return xcclSuccess;
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
