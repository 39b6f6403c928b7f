// A configuration is checked before anything is made; then it stands for the calls that set the same things.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/status.h"
#include "runtime/c_api/run.h"
#include "runtime/xccl.h"

namespace {

using xccl::InvalidInput;
using xccl::OkStatus;
using xccl::Status;
using xccl::StatusOr;
using xccl::UsageError;

bool IsSet(int value) { return value != XCCL_CONFIG_UNDEF_INT; }

// Where the fields of older headers end: the sizes that a configuration of theirs can have.
constexpr std::array<size_t, 3> kEnds = {offsetof(xcclConfig_t, memoryBytes),
                                         offsetof(xcclConfig_t, timeLimit), sizeof(xcclConfig_t)};
constexpr size_t kLargest = 4096;  // more than any header will ask for: the size is no size

// Of what a newer header has behind this library's fields, the first byte of a field that is set. Fields are
// unset as 0 or as XCCL_CONFIG_UNDEF_INT, and later headers leave no holes between them.
std::optional<size_t> FirstSetBehind(const std::byte* config, size_t size) {
  constexpr int kUndefined = XCCL_CONFIG_UNDEF_INT;
  for (size_t at = sizeof(xcclConfig_t); at < size; at += sizeof(int)) {
    int field = 0;
    std::memcpy(&field, config + at, std::min(sizeof field, size - at));
    if (field != 0 && field != kUndefined) return at;
  }
  return std::nullopt;
}

// The fields that a program's header has; the others have their defaults. Only `magic` and `size` say whether
// the rest is there at all, so they come first.
StatusOr<xcclConfig_t> Read(const xcclConfig_t* from) {
  if (from->magic != XCCL_CONFIG_MAGIC)
    return UsageError(
        fmt::format("config: magic {:#x}; expected {:#x}; hint: initialize it with XCCL_CONFIG_INITIALIZER",
                    from->magic, XCCL_CONFIG_MAGIC));
  const size_t size = from->size;
  const bool known = std::ranges::find(kEnds, size) != kEnds.end();
  if (!known && (size < sizeof(xcclConfig_t) || size > kLargest))
    return UsageError(
        fmt::format("config: {} bytes; expected {}, or more of a newer xccl.h; hint: initialize it with "
                    "XCCL_CONFIG_INITIALIZER",
                    size, fmt::join(kEnds, ", ")));
  const auto* const bytes = reinterpret_cast<const std::byte*>(from);
  if (const std::optional<size_t> set = FirstSetBehind(bytes, size))
    return UsageError(fmt::format(
        "config: the field at byte {}, of xccl.h {}, is set; expected only those of version {}; hint: leave "
        "it as XCCL_CONFIG_INITIALIZER does, or install the newer library",
        *set, from->version, XCCL_VERSION_CODE));
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  std::memcpy(&config, bytes, std::min(size, sizeof config));
  return config;
}

Status Check(const xcclConfig_t& config) {
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
  xcclConfig_t mine = XCCL_CONFIG_INITIALIZER;
  const xcclResult_t read = xccl::c_api::Run([&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(mine, Read(config));
    return Check(mine);
  });
  if (read != xcclSuccess) return read;
  xcclComm_t made = nullptr;
  if (const xcclResult_t result = xcclCommInitRank(&made, nranks, id, rank); result != xcclSuccess)
    return result;
  if (const xcclResult_t result = Apply(mine, made); result != xcclSuccess) {
    // The text of the failure stays the thread's last one.
    static_cast<void>(xcclCommDestroy(made));
    return result;
  }
  *comm = made;
  return xcclSuccess;
}
