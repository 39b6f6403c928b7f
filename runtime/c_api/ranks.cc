#include "runtime/c_api/ranks.h"

#include <fmt/core.h>

#include <mutex>
#include <string>
#include <utility>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/c_api/meeting.h"
#include "runtime/c_api/settings.h"
#include "runtime/communicator.h"
#include "runtime/cpu/backends.h"
#include "runtime/cuda/backends.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu_hosts.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"
#include "runtime/launched/launched_group.h"

namespace xccl::c_api {
namespace {

constexpr int kMostRanks = 1 << 16;

cuda::BackendOptions CudaOptions(const Comm& comm) {
  cuda::BackendOptions options;
  options.program = comm.settings.cuda;
  options.program.ctas_hint = options.program.arena.memory_hint = kLimitCuda;
  options.program.time_limit = comm.communicator.time_limit();
  options.images = cuda::ImagesOfBook(Kernels());
  options.interpreter = [](const Program& program) { return cuda::ImagesOfInterpreter(program, Kernels()); };
  if (TheGpus().adapt) TheGpus().adapt(options);
  return options;
}

// A GPU of one of this process's ranks. Requires: comm.mutex is held.
StatusOr<Backend> CudaThread(Comm& comm) {
  XCCL_ASSIGN_OR_RETURN(const cuda::Driver* driver, TheGpus().driver());
  const std::lock_guard lock(comm.shared->mutex);
  if (comm.shared->ready.empty()) {
    for (size_t r = 0; r < comm.shared->devices.size(); ++r)
      if (comm.shared->devices[r] < 0)
        return InvalidInput(fmt::format("rank {} has no GPU; expected xcclCommUseCuda on all ranks", r));
    cuda::BackendOptions options = CudaOptions(comm);
    options.share = cuda::ShareOf(options);
    XCCL_ASSIGN_OR_RETURN(comm.shared->ready, cuda::ThreadBackends(*driver, comm.shared->devices, options));
    comm.shared->share = options.share;
  }
  return std::move(comm.shared->ready[comm.communicator.rank().index()]);
}

// A GPU of this process, which is one rank. Requires: comm.mutex is held.
StatusOr<Backend> CudaProcess(Comm& comm, LaunchedGroup& group) {
  const Bootstrap& ranks = group.bootstrap();
  XCCL_ASSIGN_OR_RETURN(const cuda::Driver* driver, TheGpus().driver());
  cuda::BackendOptions options = CudaOptions(comm);
  comm.share = options.share = cuda::ShareOf(options);
  if (ranks.host_names().size() > 1) options.hosts = OtherHostsOf(group, options.program.time_limit);
  return cuda::ProcessBackend(*driver, fmt::format("xccl-{}-gpus", ranks.job()), ranks.rank(), ranks.ranks(),
                              *comm.settings.device, options.program.time_limit, options);
}

StatusOr<Backend> MakeBackend(Comm& comm) {
  const std::lock_guard lock(comm.mutex);
  if (comm.settings.device && comm.meeting == nullptr) return CudaThread(comm);
  if (comm.threads) return *std::move(comm.threads);
  const TimeLimit limit = [&comm] { return comm.communicator.time_limit(); };
  if (!comm.settings.device) return CpuBackend(comm.meeting, limit);
  XCCL_ASSIGN_OR_RETURN(LaunchedGroup* const group, comm.meeting->Join(limit()));
  StatusOr<Backend> backend = CudaProcess(comm, *group);
  if (backend.ok()) {
    AddMeeting(comm.meeting, limit, *backend);
  } else {  // the others wait for this rank
    group->Fail(Annotate(backend.status(), fmt::format("rank {}", comm.communicator.rank().value)));
  }
  return backend;
}

}  // namespace

const std::shared_ptr<cuda::KernelCache>& Kernels() {
  static const auto cache = std::make_shared<cuda::KernelCache>(cuda::DefaultKernelCache(ProcessEnvironment));
  return cache;
}

Status CheckSize(int ranks, int rank) {
  if (ranks < 1 || ranks > kMostRanks)
    return UsageError(fmt::format("{} ranks; expected 1 to {}", ranks, kMostRanks));
  if (rank < 0 || rank >= ranks) return UsageError(fmt::format("rank {}; expected 0 to {}", rank, ranks - 1));
  return OkStatus();
}

std::vector<std::shared_ptr<Comm>> MakeThreads(int ranks, const int* devices) {
  std::vector<Backend> backends = ThreadBackends(ranks);
  auto shared = std::make_shared<OneProcess>();
  shared->devices.assign(static_cast<size_t>(ranks), -1);
  std::vector<std::shared_ptr<Comm>> made;
  for (int r = 0; r < ranks; ++r) {
    made.push_back(std::make_shared<Comm>(Rank(r), ranks, MakeBackend));
    made.back()->threads = std::move(backends[static_cast<size_t>(r)]);
    made.back()->shared = shared;
    if (devices != nullptr) made.back()->settings.device = shared->devices[r] = devices[r];
  }
  return made;
}

std::shared_ptr<Comm> MakeProcess(const Placement& placement) {
  if (placement.ranks == 1) return MakeThreads(1, nullptr)[0];
  auto made = std::make_shared<Comm>(placement.rank, placement.ranks, MakeBackend);
  made->meeting = std::make_shared<Meeting>(placement);
  return made;
}

StatusOr<std::shared_ptr<Comm>> MakeById(int ranks, const UniqueId& id, int rank) {
  XCCL_RETURN_IF_ERROR(CheckSize(ranks, rank));
  XCCL_ASSIGN_OR_RETURN(const Placement placement, FromUniqueId(id, Rank(rank), ranks));
  return MakeProcess(placement);
}

}  // namespace xccl::c_api
