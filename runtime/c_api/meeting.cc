#include "runtime/c_api/meeting.h"

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "base/strings.h"
#include "base/threads.h"
#include "base/units.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/communicator.h"

namespace xccl::c_api {

namespace {

// Whose turn it is to meet, of the meetings of one process that a launcher's variables give one address.
class Turns {
 public:
  int Number(const std::string& where) {
    const std::lock_guard lock(mutex_);
    return at_[where].made++;
  }
  // The number is awaited by higher ones, until the last holder of the result is gone.
  std::shared_ptr<void> Announce(const std::string& where, int number) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void> announced(this, [this, where, number](void*) {
      const std::lock_guard dropping(mutex_);
      std::multiset<int>& numbers = at_[where].announced;
      numbers.erase(numbers.find(number));
      changed_.notify_all();
    });
    at_[where].announced.insert(number);
    return announced;
  }
  // Waits for lower numbers, and for who meets already. The turn ends with the last holder of the result;
  // null: stopped.
  std::shared_ptr<void> Take(const std::string& where, int number, const std::atomic<bool>& stop) {
    constexpr auto kLook = std::chrono::milliseconds(100);  // between looks at `stop`
    const std::shared_ptr<void> announced = Announce(where, number);
    std::unique_lock lock(mutex_);
    Address& at = at_[where];
    while (at.busy || *at.announced.begin() != number) {
      if (stop) {
        lock.unlock();
        return nullptr;
      }
      changed_.wait_for(lock, kLook);
    }
    at.busy = true;
    return std::shared_ptr<void>(this, [this, &at, announced](void*) {
      const std::lock_guard ending(mutex_);
      at.busy = false;
      changed_.notify_all();
    });
  }

 private:
  struct Address {
    int made = 0;
    bool busy = false;
    std::multiset<int> announced;
  };
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Address> at_;
};

// It is never freed, since threads use it until the process ends.
Turns& TheTurns() {
  static Turns& turns = *new Turns;
  return turns;
}

// Processes with several ranks, whose program changes the variables, must not let them wait for each other.
std::string WhereOf(const Placement& placement) {
  return fmt::format("{} {} rank {}", placement.rendezvous, placement.job, placement.rank.value);
}

}  // namespace

// Shared with the thread that meets, which may outlive the meeting.
struct Meeting::State {
  std::atomic<bool> stop = false;  // joining ends
  std::mutex mutex;                // guards what follows
  std::condition_variable changed;
  std::optional<StatusOr<std::unique_ptr<Bootstrap>>> met;
  Status aborted;
  LaunchedGroup* group = nullptr;
};

Meeting::Meeting(Placement placement)
    : placement_(std::move(placement)),
      state_(std::make_shared<State>()),
      number_(placement_.served ? 0 : TheTurns().Number(WhereOf(placement_))) {}

Meeting::~Meeting() = default;

std::shared_ptr<void> Meeting::Announce() {
  if (placement_.served || group() != nullptr) return nullptr;
  return TheTurns().Announce(WhereOf(placement_), number_);
}

StatusOr<LaunchedGroup*> Meeting::Join(std::chrono::nanoseconds limit) {
  const std::lock_guard joining(joining_);
  if (group_ != nullptr) return group_.get();
  BootstrapOptions options = WithTimeLimit(limit >= kForEver ? BootstrapOptions::kForever : limit);
  options.stop = &state_->stop;
  std::shared_ptr<void> turn;
  if (!placement_.served) turn = TheTurns().Take(WhereOf(placement_), number_, state_->stop);
  XCCL_ASSIGN_OR_RETURN(std::thread thread,
                        StartThread([state = state_, placement = placement_, options, turn]() mutable {
                          StatusOr<std::unique_ptr<Bootstrap>> met = LimitReached("");
                          try {
                            met = Bootstrap::Join(placement, options);
                          } catch (const std::exception& error) {
                            met = StatusOf(error);
                          }
                          turn.reset();
                          const std::lock_guard lock(state->mutex);
                          state->met = std::move(met);
                          state->changed.notify_all();
                        }));
  thread.detach();
  turn.reset();  // the thread has it
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->met || !state_->aborted.ok(); });
  if (!state_->aborted.ok()) return state_->aborted;
  StatusOr<std::unique_ptr<Bootstrap>> met = *std::exchange(state_->met, std::nullopt);
  if (!met.ok()) return met.status();
  LaunchedGroupOptions group_options;
  group_options.time_limit = limit;
  group_ = std::make_unique<LaunchedGroup>(*std::move(met), std::move(group_options));
  state_->group = group_.get();
  return group_.get();
}

LaunchedGroup* Meeting::group() const {
  const std::lock_guard lock(state_->mutex);
  return state_->group;
}

void Meeting::Abort(const Status& reason) {
  std::unique_lock lock(state_->mutex);
  if (state_->aborted.ok()) state_->aborted = reason;
  state_->stop = true;
  LaunchedGroup* const group = state_->group;
  lock.unlock();
  state_->changed.notify_all();
  if (group != nullptr) group->Fail(reason);
}

Status Meeting::Error() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->group == nullptr) return OkStatus();
  return state_->group->bootstrap().Failure().value_or(OkStatus());
}

namespace {

constexpr char kCpu = 'c', kGpu = 'g';

// A rank's outcome as a text: its device and the hash of what it read, or why it could not.
std::string OutcomeOf(const Status& mine, char device, uint64_t hash) {
  return mine.ok() ? fmt::format("{}{:016x}", device, hash)
                   : fmt::format("{} {}", static_cast<int>(mine.code()), mine.message());
}

Status Compare(const std::vector<std::string>& outcomes) {
  constexpr size_t kDeviceAndHash = 1 + 16, kMostOfAText = 4096;
  std::optional<size_t> first;
  for (size_t r = 0; r < outcomes.size(); ++r) {
    const size_t space = outcomes[r].find(' ');
    const StatusOr<int64_t> code =
        ParseInteger(outcomes[r].substr(0, space), 1, static_cast<int64_t>(StatusCode::kPeerEnded));
    if (space != std::string::npos && code.ok())
      return Status(static_cast<StatusCode>(*code),
                    fmt::format("rank {}: {}", r, Cleaned(outcomes[r].substr(space + 1), kMostOfAText)));
    if (space != std::string::npos || outcomes[r].size() != kDeviceAndHash)
      return InvalidInput(
          fmt::format("rank {}: said '{}' of its plan book; expected its hash, or why it has none", r,
                      Cleaned(outcomes[r])));
    if (!first) first = r;
    const auto place = [&](size_t of) { return outcomes[of][0] == kGpu ? "a GPU" : "the CPU"; };
    if (outcomes[r][0] != outcomes[*first][0])
      return InvalidInput(
          fmt::format("rank {}: is on {}, and rank {} on {}; expected all on GPUs or on the CPU", r, place(r),
                      *first, place(*first)));
    if (outcomes[r] != outcomes[*first])
      return InvalidInput(fmt::format(
          "rank {}: loads another plan book than rank {}; expected the same on all ranks", r, *first));
  }
  return OkStatus();
}

}  // namespace

void AddMeeting(const std::shared_ptr<Meeting>& meeting, const TimeLimit& limit, Backend& backend) {
  const char device = backend.load ? kGpu : kCpu;
  backend.agree = [meeting, limit, device](const Status& mine, uint64_t hash) -> Status {
    XCCL_ASSIGN_OR_RETURN(LaunchedGroup* const group, meeting->Join(limit()));
    XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> outcomes,
                          group->bootstrap().AllGather(OutcomeOf(mine, device, hash), limit()));
    return mine.ok() ? Compare(outcomes) : mine;
  };
  backend.error = [meeting] { return meeting->Error(); };
}

Backend CpuBackend(const std::shared_ptr<Meeting>& meeting, const TimeLimit& limit) {
  Backend backend;
  AddMeeting(meeting, limit, backend);
  backend.connect = [meeting, limit](const Wiring& wiring) -> StatusOr<std::unique_ptr<Endpoint>> {
    XCCL_ASSIGN_OR_RETURN(LaunchedGroup* const group, meeting->Join(limit()));
    return group->Connect(wiring);
  };
  return backend;
}

}  // namespace xccl::c_api
