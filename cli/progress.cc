#include "cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "base/standard_streams.h"
#include "base/threads.h"
#include "cli/progress_line.h"

namespace xccl {
Progress::Progress(std::string what) : what_(std::move(what)), is_terminal_(isatty(STDERR_FILENO) != 0) {
  if (StatusOr<std::thread> thread = StartThread([this] { Show(); }); thread.ok())
    thread_ = *std::move(thread);
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::Say(std::string detail) {
  const std::lock_guard lock(mutex_);
  detail_ = std::move(detail);
}

void Progress::Done(size_t parts, size_t of_all) {
  const std::lock_guard lock(mutex_);
  part_done_ = static_cast<double>(parts) / static_cast<double>(of_all);
}

Status Progress::Above(const std::function<Status()>& print) {
  const std::lock_guard lock(mutex_);
  if (is_terminal_ && thread_.joinable()) PrintError("\r\033[K");
  return print();
}

void Progress::Show() {
  std::unique_lock lock(mutex_);
  for (int seconds = 1; !wake_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; }); ++seconds)
    if (IsLineDue(is_terminal_, seconds))
      PrintError(ProgressLine({what_, detail_, part_done_}, is_terminal_, seconds));
  if (is_terminal_) PrintError("\r\033[K");
}

}  // namespace xccl
