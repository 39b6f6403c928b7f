// --time-limit and --memory-limit, which every command takes and keeps.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "base/deadline.h"
#include "base/status.h"
#include "cli/command_line.h"
#include "cli/commands.h"

namespace xccl {

// For commands that have none of their own.
void AddLimitFlags(Command& command, Session& session);
// Reads both flags: the session gets its deadline, the process its memory. Without a flag, memory is limited
// to three quarters of what is free. Does nothing if the command keeps the limits itself. Errors: kUsage.
Status ApplyLimits(Session& session);
// Says with which flags the command needs less memory: "fewer ranks, --chunks=1". "fewer ranks" until then.
void SetMemoryHint(const char* less);
inline constexpr char kChunksHint[] = "fewer ranks, --chunks=1";
// "out of memory", with a hint; it names the limit that ApplyLimits has set, if there is one.
const char* OutOfMemoryText();

// Ends the program where a stage cannot be cut short: half a second after the deadline it says so and exits
// with code 5, or with 0 where rows were printed. Stages that ask the deadline themselves end before that. A
// result that is there is written to its end.
class Watchdog {
 public:
  explicit Watchdog(const Session& session);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch();

  const Session& session_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace xccl
