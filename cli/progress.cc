#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/threads.h"

namespace xccl {
namespace {

std::atomic<bool> interrupted = false;  // asked by several threads
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void OnInterrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO) == 0) return;
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
  if (thread_.joinable()) std::fputs("\r\033[K", stderr);
  return print();
}

void Progress::Show() {
  std::unique_lock lock(mutex_);
  for (int seconds = 1; !wake_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; }); ++seconds) {
    const std::string left =
        part_done_ > 0 ? fmt::format(", about {:.0f} s left", seconds * (1 / part_done_ - 1)) : "";
    std::fprintf(stderr, "\r%s, %d s%s%s%s\033[K", what_.c_str(), seconds, left.c_str(),
                 detail_.empty() ? "" : ": ", detail_.c_str());
  }
  std::fputs("\r\033[K", stderr);
}

std::function<bool()> CatchInterrupt() {
  std::signal(SIGINT, OnInterrupt);
  return [] { return interrupted.load(); };
}

}  // namespace xccl
