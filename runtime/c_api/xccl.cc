// Communicators in C: a thin layer over Communicator.
#include "runtime/xccl.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/c_api/call_log.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/meeting.h"
#include "runtime/c_api/ranks.h"
#include "runtime/c_api/run.h"
#include "runtime/c_api/settings.h"
#include "runtime/communicator.h"

namespace {

using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::Rank;
using xccl::Status;
using xccl::UsageError;
using xccl::c_api::Comm;
using xccl::c_api::Give;
using xccl::c_api::kComm;
using xccl::c_api::Run;
using xccl::c_api::RunFor;
using xccl::c_api::RunOn;

// Its failure, or that of what it did last while its caller went on.
Status ErrorOf(Comm& comm) {
  Status status = comm.communicator.AsyncError();
  return status.ok() ? comm.background.result() : status;
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
  if (const auto found = xccl::c_api::Find(comm); found.ok()) status = ErrorOf(**found);
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
    XCCL_ASSIGN_OR_RETURN(std::shared_ptr<Comm> made,
                          xccl::c_api::MakeById(nranks, std::bit_cast<xccl::UniqueId>(id), rank));
    made->id = xccl::UseUniqueId(std::bit_cast<xccl::UniqueId>(id));
    *comm = xccl::c_api::Add({std::move(made)})[0];
    return OkStatus();
  });
}

xcclResult_t xcclCommInitRankConfig(xcclComm_t* comm, int nranks, xcclUniqueId id, int rank,
                                    const xcclConfig_t* config) {
  if (comm != nullptr) *comm = nullptr;
  return RunFor(comm, kComm, [&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const xcclConfig_t read, xccl::c_api::ReadConfig(config));
    XCCL_ASSIGN_OR_RETURN(std::shared_ptr<Comm> made,
                          xccl::c_api::MakeById(nranks, std::bit_cast<xccl::UniqueId>(id), rank));
    XCCL_RETURN_IF_ERROR(xccl::c_api::Apply(read, *made));
    made->id = xccl::UseUniqueId(std::bit_cast<xccl::UniqueId>(id));  // a refused one may be tried again
    *comm = xccl::c_api::Add({std::move(made)})[0];
    return OkStatus();
  });
}

xcclResult_t xcclCommInitFromLauncher(xcclComm_t* comm) {
  return RunFor(comm, kComm, [&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const xccl::Placement placement, xccl::FindPlacement(xccl::ProcessEnvironment));
    *comm = xccl::c_api::Add({xccl::c_api::MakeProcess(placement)})[0];
    return OkStatus();
  });
}

xcclResult_t xcclCommInitAll(xcclComm_t* comms, int ndev, const int* devlist) {
  return RunFor(comms, kComm, [&]() -> Status {
    XCCL_RETURN_IF_ERROR(xccl::c_api::CheckSize(ndev, 0));
    for (int r = 0; devlist != nullptr && r < ndev; ++r)
      if (devlist[r] < 0)
        return UsageError(fmt::format("GPU {} of rank {}; expected 0 or more", devlist[r], r));
    std::ranges::copy(xccl::c_api::Add(xccl::c_api::MakeThreads(ndev, devlist)), comms);
    return OkStatus();
  });
}

xcclResult_t xcclCommLoadPlanBook(xcclComm_t comm, const char* directory) {
  const std::string path =
      directory != nullptr ? directory : xccl::ProcessEnvironment("XCCL_BOOK").value_or("");
  if (directory == nullptr && path.empty())
    return RunOn(comm, [](const Comm&) {
      return UsageError("the directory is null, and XCCL_BOOK is not set; hint: xccl-synth exec");
    });
  return xccl::c_api::RunWaiting(comm, [path](Comm& on) { return on.communicator.LoadPlanBook(path); });
}

xcclResult_t xcclCommSetTimeLimit(xcclComm_t comm, double seconds) {
  return RunOn(comm, [&](Comm& of) { return xccl::c_api::SetTimeLimit(of, seconds); });
}

xcclResult_t xcclCommUseCuda(xcclComm_t comm, int device) {
  return RunOn(comm, [&](Comm& on) { return xccl::c_api::UseCuda(on, device); });
}

xcclResult_t xcclCommLimitCuda(xcclComm_t comm, int max_ctas, size_t memory_bytes) {
  return RunOn(comm, [&](Comm& of) { return xccl::c_api::LimitCuda(of, max_ctas, memory_bytes); });
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
  return RunOn(comm, [](Comm& on) {
    on.background.Wait();
    const Status status = on.communicator.Synchronize();
    return status.ok() ? on.background.result() : status;
  });
}

xcclResult_t xcclCommFinalize(xcclComm_t comm) {
  const xcclResult_t result = xcclCommSynchronize(comm);
  if (auto* const log = xccl::c_api::TheCallLog(); log != nullptr) log->Write();
  return result;
}

xcclResult_t xcclCommDestroy(xcclComm_t comm) {
  if (comm == nullptr) return xcclSuccess;
  return Run([&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Comm> dropped, xccl::c_api::Drop(comm));
    dropped->background.Wait();
    Status status = dropped->communicator.Finish();
    xccl::c_api::EndCounting(*dropped);
    return status;
  });
}

xcclResult_t xcclCommAbort(xcclComm_t comm) {
  if (comm == nullptr) return xcclSuccess;
  return Run([&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Comm> dropped, xccl::c_api::Drop(comm));
    dropped->aborted = true;
    if (dropped->shared != nullptr) {
      const std::lock_guard lock(dropped->shared->mutex);
      if (dropped->shared->aborted.ok()) dropped->shared->aborted = dropped->communicator.Aborted();
    }
    if (dropped->meeting != nullptr) dropped->meeting->Abort(dropped->communicator.Aborted());
    dropped->communicator.Abort();
    xccl::c_api::EndCounting(*dropped);
    return OkStatus();
  });
}

xcclResult_t xcclCommGetAsyncError(xcclComm_t comm, xcclResult_t* error) {
  return RunOn(comm, [&](Comm& of) {
    if (error == nullptr) return UsageError("error is null");
    *error = of.background.running() ? xcclInProgress : xccl::c_api::ResultOf(ErrorOf(of));
    return OkStatus();
  });
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
