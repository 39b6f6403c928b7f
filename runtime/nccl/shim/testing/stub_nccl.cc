#include "runtime/nccl/shim/testing/stub_nccl.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "base/check.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "runtime/cuda/gpu.h"
#include "runtime/nccl/shim/coverage.h"

namespace xccl::nccl_shim {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // largest input of a rank
constexpr int kInvalidArgument = 4, kRemoteError = 6;

// One communicator, in memory that forked processes share. A rank copies its input into its place; when all
// have, each makes its own output.
struct Core {
  explicit Core(int ranks_in) : ranks(ranks_in) {}
  const int ranks;
  std::atomic<int64_t> arrived{0}, left{0};
  std::atomic<int> aborted{0}, destroyed{0};
  std::byte* Place(int rank) {
    return reinterpret_cast<std::byte*>(this + 1) + kMostBytes * static_cast<size_t>(rank);
  }
};

const cuda::Driver* the_driver = nullptr;
std::mutex calls_mutex;
std::map<std::string, int> calls;

void Count(const char* name) {
  const std::lock_guard lock(calls_mutex);
  ++calls[name];
}

}  // namespace

struct StubRank {
  Core* core = nullptr;
  int rank = 0, device = 0;
  int64_t calls = 0;
  std::atomic<int> polls = 0;
};

namespace {

StubRank& Of(NcclComm comm) { return *reinterpret_cast<StubRank*>(comm); }

struct Posted {
  NcclComm comm = nullptr;
  NcclCall call;
};
struct StubGroup {
  int depth = 0;
  std::vector<Posted> posted;
};
thread_local StubGroup group;

template <typename T>
void Combine(std::byte* into, const std::byte* from, size_t count, int op) {
  for (size_t i = 0; i < count; ++i) {
    T a = {}, b = {};
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = op == 2 ? std::max(a, b) : op == 3 ? std::min(a, b) : static_cast<T>(op == 1 ? a * b : a + b);
    std::memcpy(into + i * sizeof(T), &a, sizeof(T));
  }
}

// Combines values of the types that the tests use.
void Combine(std::byte* into, const std::byte* from, size_t count, const NcclCall& call) {
  switch (static_cast<DataType>(call.type)) {
    case DataType::kFloat:
      return Combine<float>(into, from, count, call.op);
    case DataType::kInt32:
      return Combine<int32_t>(into, from, count, call.op);
    case DataType::kUint8:
      return Combine<uint8_t>(into, from, count, call.op);
    default:
      XCCL_CHECK(false);
  }
}

bool Sends(const NcclCall& call, int rank) {
  return (call.kind != CollectiveKind::kBroadcast && call.kind != CollectiveKind::kScatter) ||
         rank == call.root;
}

size_t ShareBytes(const NcclCall& call) {
  return call.count * static_cast<size_t>(SizeOf(static_cast<DataType>(call.type)));
}

size_t InputBytes(const NcclCall& call, const StubRank& of) {
  const bool for_all = call.kind == CollectiveKind::kReduceScatter ||
                       call.kind == CollectiveKind::kAlltoall || call.kind == CollectiveKind::kScatter;
  return Sends(call, of.rank) ? ShareBytes(call) * static_cast<size_t>(for_all ? of.core->ranks : 1) : 0;
}

template <typename Ready>
bool Await(const Core& core, const Ready& ready) {
  while (!ready()) {
    if (core.aborted != 0) return false;
    sched_yield();
  }
  return true;
}

// Waits for what the stream has before the call.
bool Settle(const StubRank& of, void* stream) {
  const std::shared_ptr<const cuda::Gpu> gpu = *cuda::Gpu::Open(*the_driver, of.device);
  const cuda::ScopedContext context(*gpu);
  return the_driver->StreamSynchronize(static_cast<cuda::Stream>(stream)) == cuda::Result::kSuccess;
}

bool IsCaptured(const StubRank& of, void* stream) {
  const std::shared_ptr<const cuda::Gpu> gpu = *cuda::Gpu::Open(*the_driver, of.device);
  const cuda::ScopedContext context(*gpu);
  cuda::CaptureStatus status = cuda::CaptureStatus::kNone;
  the_driver->StreamIsCapturing(static_cast<cuda::Stream>(stream), &status);
  return status != cuda::CaptureStatus::kNone;
}

bool Post(StubRank& of, const NcclCall& call) {
  Core& core = *of.core;
  const size_t bytes = InputBytes(call, of);
  XCCL_CHECK(bytes <= kMostBytes);
  if (!Settle(of, call.stream)) return false;
  // The places are free when all have made their outputs of the call before.
  if (!Await(core, [&] { return core.left == of.calls * core.ranks; })) return false;
  if (bytes > 0) std::memcpy(core.Place(of.rank), call.send, bytes);
  ++core.arrived;
  return true;
}

void Output(StubRank& of, const NcclCall& call) {
  Core& core = *of.core;
  auto* const out = static_cast<std::byte*>(call.receive);
  const size_t bytes = ShareBytes(call);
  const auto own = static_cast<size_t>(of.rank);
  const auto reduce = [&](size_t offset) {
    std::memcpy(out, core.Place(0) + offset, bytes);
    for (int r = 1; r < core.ranks; ++r) Combine(out, core.Place(r) + offset, call.count, call);
  };
  const auto collect = [&](size_t offset) {
    for (int r = 0; r < core.ranks; ++r)
      std::memcpy(out + static_cast<size_t>(r) * bytes, core.Place(r) + offset, bytes);
  };
  switch (call.kind) {
    case CollectiveKind::kAllreduce:
      return reduce(0);
    case CollectiveKind::kReduce:
      return of.rank == call.root ? reduce(0) : void();
    case CollectiveKind::kReduceScatter:
      return reduce(own * bytes);
    case CollectiveKind::kAllgather:
      return collect(0);
    case CollectiveKind::kGather:
      return of.rank == call.root ? collect(0) : void();
    case CollectiveKind::kAlltoall:
      return collect(own * bytes);
    case CollectiveKind::kBroadcast:
      std::memcpy(out, core.Place(call.root), bytes);
      return;
    case CollectiveKind::kScatter:
      std::memcpy(out, core.Place(call.root) + own * bytes, bytes);
      return;
    default:
      XCCL_CHECK(false);
  }
}

bool Finish(StubRank& of, const NcclCall& call) {
  Core& core = *of.core;
  if (!Await(core, [&] { return core.arrived == (of.calls + 1) * core.ranks; })) return false;
  Output(of, call);
  ++of.calls;
  ++core.left;
  return true;
}

// One call of each communicator at a time.
int RunAll(std::vector<Posted> posted) {
  while (!posted.empty()) {
    std::vector<Posted> now, later;
    for (const Posted& each : posted) {
      const bool has = std::ranges::find(now, each.comm, &Posted::comm) != now.end();
      (has ? later : now).push_back(each);
    }
    for (const Posted& each : now)
      if (!Post(Of(each.comm), each.call)) return kRemoteError;
    for (const Posted& each : now)
      if (!Finish(Of(each.comm), each.call)) return kRemoteError;
    posted = std::move(later);
  }
  return kSuccess;
}

int Collective(const char* name, const NcclCall& call, NcclComm comm) {
  Count(name);
  if (comm == nullptr || call.type >= kNumTypes || call.root < 0 || call.root >= Of(comm).core->ranks)
    return kInvalidArgument;
  // No test looks at the results of such calls.
  if (call.op >= kNumOperators || call.count == 0 || IsCaptured(Of(comm), call.stream)) return kSuccess;
  if (group.depth == 0) return RunAll({{comm, call}});
  group.posted.push_back({comm, call});
  return kSuccess;
}

void Unmap(Core* core, int ranks) { munmap(core, sizeof(Core) + kMostBytes * static_cast<size_t>(ranks)); }

int End(NcclComm comm) {
  StubRank* const rank = &Of(comm);
  Core* const core = rank->core;
  const int ranks = core->ranks;
  if (++core->destroyed == ranks) Unmap(core, ranks);
  delete rank;
  return kSuccess;
}

}  // namespace

void SetStubDriver(const cuda::Driver* driver) { the_driver = driver; }

std::vector<NcclComm> MakeStubComms(const std::vector<int>& devices, const StubOptions& options) {
  void* const memory = mmap(nullptr, sizeof(Core) + kMostBytes * devices.size(), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  XCCL_CHECK(memory != MAP_FAILED);
  Core* const core = new (memory) Core(static_cast<int>(devices.size()));
  std::vector<NcclComm> comms;
  for (size_t r = 0; r < devices.size(); ++r) {
    auto rank = std::make_unique<StubRank>();
    rank->core = core;
    rank->rank = static_cast<int>(r);
    rank->device = devices[r];
    rank->polls = options.polls;
    comms.push_back(reinterpret_cast<NcclComm>(rank.release()));
  }
  return comms;
}

void ForgetStubComms(const std::vector<NcclComm>& comms) {
  Unmap(Of(comms[0]).core, static_cast<int>(comms.size()));
  for (const NcclComm comm : comms) delete &Of(comm);
}

std::map<std::string, int> TakeStubCalls() {
  const std::lock_guard lock(calls_mutex);
  return std::exchange(calls, {});
}

Nccl StubNccl() {
  using Kind = CollectiveKind;
  Nccl nccl;
  nccl.AllReduce = [](const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                      void* stream) {
    return Collective("AllReduce", {Kind::kAllreduce, send, receive, count, type, op, 0, stream}, comm);
  };
  nccl.Broadcast = [](const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                      void* stream) {
    return Collective("Broadcast", {Kind::kBroadcast, send, receive, count, type, 0, root, stream}, comm);
  };
  nccl.Bcast = [](void* buffer, size_t count, int type, int root, NcclComm comm, void* stream) {
    return Collective("Bcast", {Kind::kBroadcast, buffer, buffer, count, type, 0, root, stream}, comm);
  };
  nccl.Reduce = [](const void* send, void* receive, size_t count, int type, int op, int root, NcclComm comm,
                   void* stream) {
    return Collective("Reduce", {Kind::kReduce, send, receive, count, type, op, root, stream}, comm);
  };
  nccl.AllGather = [](const void* send, void* receive, size_t count, int type, NcclComm comm, void* stream) {
    return Collective("AllGather", {Kind::kAllgather, send, receive, count, type, 0, 0, stream}, comm);
  };
  nccl.ReduceScatter = [](const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                          void* stream) {
    return Collective("ReduceScatter", {Kind::kReduceScatter, send, receive, count, type, op, 0, stream},
                      comm);
  };
  nccl.AlltoAll = [](const void* send, void* receive, size_t count, int type, NcclComm comm, void* stream) {
    return Collective("AlltoAll", {Kind::kAlltoall, send, receive, count, type, 0, 0, stream}, comm);
  };
  nccl.Gather = [](const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                   void* stream) {
    return Collective("Gather", {Kind::kGather, send, receive, count, type, 0, root, stream}, comm);
  };
  nccl.Scatter = [](const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                    void* stream) {
    return Collective("Scatter", {Kind::kScatter, send, receive, count, type, 0, root, stream}, comm);
  };
  nccl.GroupStart = [] {
    ++group.depth;
    return kSuccess;
  };
  nccl.GroupEnd = [] {
    if (group.depth == 0) return kInvalidUsage;
    if (--group.depth > 0) return kSuccess;
    return RunAll(std::exchange(group.posted, {}));
  };
  nccl.GroupSimulateEnd = [](void* info) {
    if (group.depth == 0) return kInvalidUsage;
    --group.depth;
    *static_cast<int*>(info) = static_cast<int>(std::exchange(group.posted, {}).size());
    return kSuccess;
  };
  nccl.CommCount = [](NcclComm comm, int* count) {
    *count = Of(comm).core->ranks;
    return kSuccess;
  };
  nccl.CommUserRank = [](NcclComm comm, int* rank) {
    *rank = Of(comm).rank;
    return kSuccess;
  };
  nccl.CommCuDevice = [](NcclComm comm, int* device) {
    *device = Of(comm).device;
    return kSuccess;
  };
  nccl.CommGetAsyncError = [](NcclComm comm, int* error) {
    *error = kSuccess;
    if (Of(comm).polls > 0) {
      --Of(comm).polls;
      *error = kInProgress;
    }
    return kSuccess;
  };
  nccl.CommFinalize = [](NcclComm) {
    Count("CommFinalize");
    return kSuccess;
  };
  nccl.CommDestroy = [](NcclComm comm) {
    Count("CommDestroy");
    return End(comm);
  };
  nccl.CommAbort = [](NcclComm comm) {
    Count("CommAbort");
    Of(comm).core->aborted = 1;
    return End(comm);
  };
  nccl.CommRevoke = [](NcclComm comm, int) {
    Count("CommRevoke");
    Of(comm).core->aborted = 1;
    return kSuccess;
  };
  nccl.CommShrink = [](NcclComm comm, int*, int, NcclComm*, void*, int flags) {
    Count("CommShrink");
    if ((static_cast<unsigned>(flags) & kShrinkAbort) != 0) Of(comm).core->aborted = 1;
    return kSuccess;
  };
  return nccl;
}

}  // namespace xccl::nccl_shim
