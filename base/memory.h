// Memory that a process may take. The operating system keeps the limits (setrlimit), as it keeps the clock
// that a Deadline asks; a stage looks at them before it starts, and refuses work that does not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl {

// Returns the bytes that processes can still take: MemAvailable of /proc/meminfo, or what the process's
// control groups (versions 1 and 2) leave if that is less, with the cache of files that they would give back.
// nullopt if there is no such file. `root` stands before all paths, for tests.
std::optional<int64_t> FreeMemory(const std::string& root = "");

// The limit of this process, RLIMIT_DATA or RLIMIT_AS, that leaves the least, and what it leaves.
struct MemoryLeft {
  int64_t limit_bytes = 0;
  int64_t left_bytes = 0;
};
// nullopt if the process has no limit.
std::optional<MemoryLeft> LeftOfMemory();

// kLimit if `needed_bytes` are more than is left: "PLACE: needs about 2.1GiB more for WHAT; expected at most
// 300MiB, which is left of 512MiB; hint: --memory-limit=3GiB or fewer ranks".
Status CheckMemory(std::string_view place, std::string_view what, double needed_bytes,
                   const std::optional<MemoryLeft>& memory = LeftOfMemory());

}  // namespace xccl
