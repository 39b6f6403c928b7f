// How the functions of the C API run: a Status becomes a result code, its text is kept for xcclGetLastError,
// and no exception crosses.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include "base/exceptions.h"
#include "base/status.h"
#include "runtime/c_api/group.h"
#include "runtime/c_api/handles.h"
#include "runtime/xccl.h"

namespace xccl::c_api {

xcclResult_t ResultOf(const Status& status);
// Remembers the text of a call that failed, which ends the group that it is in.
xcclResult_t Fail(xcclResult_t result, std::string_view text, const void* comm = nullptr) noexcept;

// Runs the body of a call, which returns a Status.
template <typename Body>
xcclResult_t Run(const Body& body, const void* comm = nullptr) noexcept {
  try {
    Status status;
    try {
      status = body();
    } catch (const std::exception& error) {
      status = StatusOf(error);
    }
    return status.ok() ? xcclSuccess : Fail(ResultOf(status), status.message(), comm);
  } catch (const std::exception&) {
    return Fail(xcclSystemError, "out of memory", comm);
  }
}

// As Run, for a call that stores something at `result` for the caller. Errors: kUsage where `result` is null.
template <typename Body>
xcclResult_t RunFor(const void* result, const char* name, const Body& body) noexcept {
  return Run([&]() -> Status {
    if (result == nullptr) return UsageError(fmt::format("{} is null", name));
    return body();
  });
}

inline constexpr const char* kComm = "the communicator";

// As Run, for a call that takes a communicator. The communicator lives until the call returns.
template <typename Body>
xcclResult_t RunOn(xcclComm_t handle, const Body& body) noexcept {
  if (handle == nullptr) return RunFor(nullptr, kComm, OkStatus);
  return Run(
      [&]() -> Status {
        XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Comm> comm, Find(handle));
        return body(*comm);
      },
      handle);
}

// For calls that wait for other ranks. Runs the body when the group ends; outside of a group now, and where
// the communicator does not block, on a thread of its own, with xcclInProgress.
template <typename Body>
xcclResult_t RunWaiting(xcclComm_t comm, const Body& body) noexcept {
  bool started = false;
  const xcclResult_t result = RunOn(comm, [&](Comm& on) -> Status {
    if (InGroup()) {
      Defer(comm, /*waits=*/true, {.run = [comm, body] { return RunOn(comm, body); }});
      return OkStatus();
    }
    if (on.IsBlocking()) return body(on);
    XCCL_ASSIGN_OR_RETURN(std::shared_ptr<Comm> kept, Find(comm));
    started = true;
    return on.background.Start([kept = std::move(kept), body] { return body(*kept); });
  });
  return result == xcclSuccess && started ? xcclInProgress : result;
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

}  // namespace xccl::c_api
