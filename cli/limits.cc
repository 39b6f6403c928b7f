#include "cli/limits.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <optional>

#include "base/memory.h"
#include "base/standard_streams.h"
#include "base/threads.h"
#include "base/units.h"
#include "cli/flags.h"
#include "cli/say.h"

namespace xccl {
namespace {

constexpr double kGraceSeconds = 0.5;  // for stages that look at the clock themselves
constexpr double kShareOfFree = 0.75;  // the rest is for other processes and the cache of files

// Without memory no text can be made, so it is made before.
char limit_of_memory[128] = "";
char out_of_memory[256] = "out of memory; hint: fewer ranks";

// An allocation failed where nothing catches it, on another thread or in a library.
[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      for (const char* const part : {"xccl-synth: ", static_cast<const char*>(out_of_memory), "\n"})
        PrintError(part);
      _exit(ExitCode(StatusCode::kLimit));
    } catch (...) {
    }
  }
  std::abort();
}

// RLIMIT_DATA limits private writable memory: not code, and not buffers that ranks share. `within` names the
// limit in messages.
Status LimitMemory(int64_t bytes, const std::string& within) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_DATA, &limit) == 0) {
    limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(bytes));
    if (setrlimit(RLIMIT_DATA, &limit) != 0) return SystemError(within + ": " + std::strerror(errno));
  }
  std::snprintf(limit_of_memory, sizeof limit_of_memory, "%s", within.c_str());
  SetMemoryHint("fewer ranks");
  return OkStatus();
}

Status LimitMemoryByFlag(const std::string& text) {
  XCCL_ASSIGN_OR_RETURN(const int64_t bytes, ParseSizeFlag("--memory-limit", text));
  if (bytes == 0) return UsageError("--memory-limit: 0; expected more than 0");
  return LimitMemory(bytes, "--memory-limit=" + FormatSize(bytes));
}

// The limit without a flag: kShareOfFree of what is free, so that the system does not have to end this
// process or another. A sanitizer's tables are larger than memory; a process that has more already gets no
// limit.
Status LimitMemoryToShareOfFree() {
  const std::optional<int64_t> free = FreeMemory();
  rlimit before = {};
  if (!free || getrlimit(RLIMIT_DATA, &before) != 0) return OkStatus();
  const auto bytes = static_cast<int64_t>(kShareOfFree * static_cast<double>(*free));
  if (before.rlim_cur <= static_cast<rlim_t>(bytes)) return OkStatus();
  XCCL_RETURN_IF_ERROR(LimitMemory(bytes, fmt::format("{:.1f}GiB, three quarters of what is free",
                                                      static_cast<double>(bytes) / (1 << 30))));
  if (const std::optional<MemoryLeft> left = LeftOfMemory(); left && left->left_bytes == 0)
    setrlimit(RLIMIT_DATA, &before);
  return OkStatus();
}

}  // namespace

void AddLimitFlags(Command& command, Session& session) {
  if (command.Has("--time-limit")) return;
  command.Heading("Limits");
  command.AddOption(
      "--time-limit", session.time_limit,
      "end the whole command after this wall time (10s) with the best found so far; without it\n"
      "limits are counted in work, so that the same flags give the same plan");
  command.AddOption("--memory-limit", session.memory_limit,
                    "need no more memory than this (4GiB), or end with exit code 5; without it the limit is\n"
                    "three quarters of what is free");
}

Status ApplyLimits(Session& session) {
  std::set_terminate(OnTerminate);
  if (session.limits_are_of_planning) return OkStatus();
  XCCL_RETURN_IF_ERROR(session.memory_limit.empty() ? LimitMemoryToShareOfFree()
                                                    : LimitMemoryByFlag(session.memory_limit));
  if (session.time_limit.empty()) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(const int64_t limit_ps, FlagValue("--time-limit", ParseDuration(session.time_limit)));
  session.deadline = Deadline(static_cast<double>(limit_ps) / static_cast<double>(kPsPerSecond));
  return OkStatus();
}

void SetMemoryHint(const char* less) {
  const bool limited = *limit_of_memory != '\0';
  std::snprintf(out_of_memory, sizeof out_of_memory, "out of memory%s%s; hint: %s%s",
                limited ? " within " : "", static_cast<const char*>(limit_of_memory), less,
                limited ? " or a larger limit" : "");
}

const char* OutOfMemoryText() { return out_of_memory; }

Watchdog::Watchdog(const Session& session) : session_(session) {
  if (!session.deadline.has_limit()) return;
  if (StatusOr<std::thread> thread = StartThread([this] { Watch(); }); thread.ok())
    thread_ = *std::move(thread);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Watch() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> left(session_.deadline.SecondsLeft() + kGraceSeconds);
  if (wake_.wait_for(lock, left, [this] { return done_; })) return;
  while (session_.is_writing)
    if (wake_.wait_for(lock, std::chrono::milliseconds(100), [this] { return done_; })) return;
  const bool has_rows = session_.has_rows;
  const std::string text =
      fmt::format("{}; {}; hint: a longer --time-limit", session_.deadline.Passed(),
                  has_rows ? "rows that are missing were not reached" : "no result until then");
  has_rows ? SayNote(text) : SayError(text);
  _exit(has_rows ? 0 : ExitCode(StatusCode::kLimit));
}

}  // namespace xccl
