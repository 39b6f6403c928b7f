// A configuration is checked before anything is made; then it stands for the calls that set the same things.
#include <fmt/core.h>

#include <exception>

#include "base/status.h"
#include "runtime/c_api/run.h"
#include "runtime/xccl.h"

namespace {

using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::Status;
using xccl::UsageError;

bool IsSet(int value) { return value != XCCL_CONFIG_UNDEF_INT; }

// Only `magic` and `size` say whether the rest is there at all, so they come first.
Status Check(const xcclConfig_t& config) {
  if (config.magic != XCCL_CONFIG_MAGIC)
    return UsageError(
        fmt::format("config: magic {:#x}; expected {:#x}; hint: initialize it with XCCL_CONFIG_INITIALIZER",
                    config.magic, XCCL_CONFIG_MAGIC));
  if (config.size != sizeof(xcclConfig_t))
    return UsageError(fmt::format(
        "config: {} bytes, of version {}; expected {} bytes; hint: compile with the xccl.h of version {}",
        config.size, config.version, sizeof(xcclConfig_t), XCCL_VERSION_CODE));
  if (IsSet(config.blocking) && config.blocking != 0 && config.blocking != 1)
    return UsageError(fmt::format("config: blocking {}; expected 1", config.blocking));
  if (config.blocking == 0)
    return InvalidInput("config: blocking 0; expected 1: xcclCommLoadPlanBook waits for the other ranks");
  return OkStatus();
}

// Requires: nobody else has the handle.
xcclResult_t Apply(const xcclConfig_t& config, xcclComm_t comm) {
  if (IsSet(config.device))
    if (const xcclResult_t result = xcclCommUseCuda(comm, config.device); result != xcclSuccess)
      return result;
  const int max_ctas = IsSet(config.maxCTAs) ? config.maxCTAs : 0;
  if (const xcclResult_t result = xcclCommLimitCuda(comm, max_ctas, config.memoryBytes);
      result != xcclSuccess)
    return result;
  return xcclCommSetTimeLimit(comm, config.timeLimit);
}

}  // namespace

xcclResult_t xcclCommInitRankConfig(xcclComm_t* comm, int nranks, xcclUniqueId id, int rank,
                                    const xcclConfig_t* config) {
  if (comm != nullptr) *comm = nullptr;
  if (comm == nullptr || config == nullptr) return xcclCommInitRank(comm, nranks, id, rank);
  try {
    if (const Status checked = Check(*config); !checked.ok())
      return xccl::c_api::Fail(
          checked.code() == xccl::StatusCode::kUsage ? xcclInvalidArgument : xcclInvalidUsage,
          checked.message());
  } catch (const std::exception&) {
    return xccl::c_api::Fail(xcclSystemError, "out of memory");
  }
  xcclComm_t made = nullptr;
  if (const xcclResult_t result = xcclCommInitRank(&made, nranks, id, rank); result != xcclSuccess)
    return result;
  if (const xcclResult_t result = Apply(*config, made); result != xcclSuccess) {
    // The text of the failure stays the thread's last one.
    static_cast<void>(xcclCommDestroy(made));
    return result;
  }
  *comm = made;
  return xcclSuccess;
}
