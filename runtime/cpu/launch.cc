#include "runtime/cpu/launch.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "base/exceptions.h"
#include "base/threads.h"
#include "runtime/endpoint.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kReapEvery(5);
constexpr std::chrono::seconds kToStop(1);  // after a failure

Status FailureOf(const SharedRegion& region) { return region.Failure().value_or(OkStatus()); }

// No exception leaves a rank's thread or process.
Status Guarded(const RankBody& body, Endpoint& endpoint) {
  try {
    return body(endpoint);
  } catch (const std::exception& error) {
    return Annotate(StatusOf(error), fmt::format("rank {}", endpoint.rank().value));
  }
}

Status RunThreads(const SharedRegion& region, std::span<const Rank> ranks, const RankBody& body) {
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (Rank rank : ranks) {
    StatusOr<std::thread> thread = StartThread([&, rank] {
      Endpoint endpoint(region, rank);
      if (Status status = Guarded(body, endpoint); !status.ok()) endpoint.Fail(status);
    });
    if (!thread.ok()) {
      region.Fail(Annotate(thread.status(), fmt::format("rank {}", rank.value)));
      break;
    }
    threads.push_back(*std::move(thread));
  }
  for (std::thread& thread : threads) thread.join();
  return FailureOf(region);
}

struct Child {
  Rank rank;
  pid_t pid = -1;
  bool running = false, stopped = false;
};

[[noreturn]] void RunChild(const SharedRegion& region, Rank rank, pid_t parent, const RankBody& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  Endpoint endpoint(region, rank);
  const Status status = Guarded(body, endpoint);
  if (!status.ok()) endpoint.Fail(status);
  // Not exit: buffered output and destructors are the parent's.
  _exit(0);
}

// Collects ended children; a violent end fails the operation.
void Reap(const SharedRegion& region, std::vector<Child>& children) {
  for (Child& child : children) {
    int ending = 0;
    if (!child.running || waitpid(child.pid, &ending, WNOHANG | WUNTRACED | WCONTINUED) != child.pid)
      continue;
    child.stopped = WIFSTOPPED(ending);
    if (child.stopped || WIFCONTINUED(ending)) continue;
    child.running = false;
    if (WIFSIGNALED(ending))
      region.Fail(
          LimitReached(fmt::format("rank {}: its process {} was ended by signal {} ({})", child.rank.value,
                                   child.pid, WTERMSIG(ending), strsignal(WTERMSIG(ending)))));
    else if (WEXITSTATUS(ending) != 0)
      region.Fail(LimitReached(fmt::format("rank {}: its process {} exited with status {}", child.rank.value,
                                           child.pid, WEXITSTATUS(ending))));
  }
}

// Names a stopped child in a time-out. Ranks that waited for it can name only the rank that they missed.
Status Blame(const Status& failure, const std::vector<Child>& children) {
  if (failure.code() != StatusCode::kLimit) return failure;
  for (const Child& child : children)
    if (child.stopped)
      return LimitReached(fmt::format("rank {}: its process {} is stopped; {}", child.rank.value, child.pid,
                                      failure.message()));
  return failure;
}

// Waits until all children have ended, and returns the first failure. After a failure the children get at
// most kToStop to end; then they are killed.
Status AwaitChildren(const SharedRegion& region, std::vector<Child>& children,
                     std::chrono::nanoseconds time_limit) {
  const auto patience = std::min<std::chrono::nanoseconds>(time_limit, kToStop);
  std::optional<Clock::time_point> failed_at;
  Status failure;
  for (Reap(region, children); std::ranges::any_of(children, &Child::running); Reap(region, children)) {
    if (!failed_at && region.header().failure.load(std::memory_order_acquire) != 0) {
      failed_at = Clock::now();
      failure = Blame(FailureOf(region), children);
    }
    if (failed_at && Clock::now() - *failed_at > patience)
      for (const Child& child : children)
        if (child.running) kill(child.pid, SIGKILL);
    std::this_thread::sleep_for(kReapEvery);
  }
  return failed_at ? failure : FailureOf(region);
}

Status RunChildren(const SharedRegion& region, std::span<const Rank> ranks,
                   std::chrono::nanoseconds time_limit, const RankBody& body) {
  std::vector<Child> children;
  const pid_t parent = getpid();
  for (Rank rank : ranks) {
    const pid_t pid = fork();
    if (pid == 0) RunChild(region, rank, parent, body);
    if (pid < 0) {
      region.Fail(InvalidInput(fmt::format("rank {}: no process: {}", rank.value, std::strerror(errno))));
      break;
    }
    children.push_back({rank, pid, true});
  }
  return AwaitChildren(region, children, time_limit);
}

}  // namespace

Status RunRanks(const SharedRegion& region, std::span<const Rank> ranks, std::chrono::nanoseconds time_limit,
                const RankBody& body) {
  XCCL_CHECK(region.sharing() != Sharing::kProcesses);
  if (region.sharing() == Sharing::kThreads) return RunThreads(region, ranks, body);
  return RunChildren(region, ranks, time_limit, body);
}

}  // namespace xccl
