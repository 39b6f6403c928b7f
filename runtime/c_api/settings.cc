#include "runtime/c_api/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "runtime/communicator.h"

namespace xccl::c_api {
namespace {

Status BeforeTheFirstBook(const Comm& comm, const char* what) {
  if (!comm.communicator.connected()) return OkStatus();
  return InvalidInput(fmt::format("{} before a book is loaded", what));
}

bool IsSet(int value) { return value != XCCL_CONFIG_UNDEF_INT; }

// Where the fields of older headers end: the sizes that a configuration of theirs can have.
constexpr std::array<size_t, 3> kEnds = {offsetof(xcclConfig_t, memoryBytes),
                                         offsetof(xcclConfig_t, timeLimit), sizeof(xcclConfig_t)};
constexpr size_t kLargest = 4096;  // more than any header will ask for: the size is no size

// A newer header may have fields behind this library's. Returns the offset in bytes of the first of them that
// is set; none: all are unset. Fields are unset as 0 or as XCCL_CONFIG_UNDEF_INT, and later headers leave no
// holes between them.
std::optional<size_t> FirstSetBehind(const std::byte* config, size_t size) {
  constexpr int kUndefined = XCCL_CONFIG_UNDEF_INT;
  for (size_t at = sizeof(xcclConfig_t); at < size; at += sizeof(int)) {
    int field = 0;
    std::memcpy(&field, config + at, std::min(sizeof field, size - at));
    if (field != 0 && field != kUndefined) return at;
  }
  return std::nullopt;
}

// Only `magic` and `size` say whether
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
    return UsageError(fmt::format("config: blocking {}; expected 0 or 1", config.blocking));
  return OkStatus();
}

}  // namespace

Status SetTimeLimit(Comm& of, double seconds) {
  if (!(seconds >= 0)) return UsageError(fmt::format("time limit {} s; expected 0 or more", seconds));
  const std::lock_guard lock(of.mutex);
  if (of.settings.device) XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(of, "a GPU's time limit is set"));
  // A shorter one than a nanosecond is no end.
  const bool ends = seconds > 0 && seconds < std::chrono::duration<double>(kForEver).count();
  of.communicator.SetTimeLimit(ends ? std::chrono::nanoseconds(std::llround(std::ceil(seconds * 1e9)))
                                    : kForEver);
  return OkStatus();
}

Status UseCuda(Comm& on, int device) {
  if (device < 0) return UsageError(fmt::format("GPU {}; expected 0 or more", device));
  const std::lock_guard lock(on.mutex);
  XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(on, "a GPU is chosen"));
  on.settings.device = device;
  if (on.shared == nullptr) return OkStatus();
  const std::lock_guard shared_lock(on.shared->mutex);
  on.shared->devices[on.communicator.rank().index()] = device;
  return OkStatus();
}

Status LimitCuda(Comm& of, int max_ctas, size_t memory_bytes) {
  if (max_ctas < 0 || memory_bytes > size_t{1} << 50)
    return UsageError(
        fmt::format("{} CTAs and {} bytes; expected 0 or more of either", max_ctas, memory_bytes));
  const std::lock_guard lock(of.mutex);
  XCCL_RETURN_IF_ERROR(BeforeTheFirstBook(of, "limits are set"));
  if (max_ctas != 0) of.settings.cuda.max_ctas = max_ctas;
  if (memory_bytes != 0) of.settings.cuda.arena.memory_limit = static_cast<int64_t>(memory_bytes);
  return OkStatus();
}

StatusOr<xcclConfig_t> ReadConfig(const xcclConfig_t* from) {
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  if (from == nullptr) return config;
  XCCL_ASSIGN_OR_RETURN(config, Read(from));
  XCCL_RETURN_IF_ERROR(Check(config));
  return config;
}

Status Apply(const xcclConfig_t& config, Comm& comm) {
  if (IsSet(config.blocking)) {
    const std::lock_guard lock(comm.mutex);
    comm.settings.blocking = config.blocking == 1;
  }
  if (IsSet(config.device)) XCCL_RETURN_IF_ERROR(UseCuda(comm, config.device));
  XCCL_RETURN_IF_ERROR(LimitCuda(comm, IsSet(config.maxCTAs) ? config.maxCTAs : 0, config.memoryBytes));
  return config.timeLimit == 0 ? OkStatus() : SetTimeLimit(comm, config.timeLimit);
}

void Inherit(Comm& from, Comm& to) {
  to.communicator.SetTimeLimit(from.communicator.time_limit());
  {
    const std::scoped_lock lock(from.mutex, to.mutex);
    to.settings = from.settings;
  }
  if (to.shared == nullptr || !to.settings.device) return;
  const std::lock_guard lock(to.shared->mutex);
  to.shared->devices[to.communicator.rank().index()] = *to.settings.device;
}

}  // namespace xccl::c_api
