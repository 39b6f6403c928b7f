#include "base/threads.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/exceptions.h"
#include "base/units.h"

namespace xccl {
namespace {

bool Fits(size_t bytes, int protection) {
  void* const room = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) munmap(room, bytes);
  return room != MAP_FAILED;
}

// The limit of the process that leaves no room for a thread's stack, if one does: the system's own reason is
// "Resource temporarily unavailable" then, too.
std::optional<std::string> LimitOfStacks() {
  pthread_attr_t attributes;
  size_t stack = 0;
  if (pthread_getattr_default_np(&attributes) != 0) return std::nullopt;
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_destroy(&attributes);
  // Memory that nothing may write counts as address space, and not as data.
  const bool is_data = Fits(stack, PROT_NONE);
  if (is_data && Fits(stack, PROT_READ | PROT_WRITE)) return std::nullopt;
  rlimit limit = {};
  if (getrlimit(is_data ? RLIMIT_DATA : RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return (is_data ? "data (ulimit -d) is limited to " : "address space (ulimit -v) is limited to ") +
         FormatSize(static_cast<int64_t>(limit.rlim_cur >> 20 << 20));
}

}  // namespace

StatusOr<std::thread> StartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::exception& error) {
    const Status status = Annotate(StatusOf(error), "cannot start a thread");
    const std::optional<std::string> limit = LimitOfStacks();
    if (!limit) return status;
    return LimitReached(status.message() + "; " + *limit + "; hint: a larger limit or fewer ranks");
  }
}

}  // namespace xccl
