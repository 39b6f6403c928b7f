#include "runtime/c_api/meeting.h"

#include <fmt/core.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <optional>
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

// Shared with the thread that meets, which may outlive the meeting.
struct Meeting::State {
  std::atomic<bool> stop = false;  // joining ends
  std::mutex mutex;                // guards what follows
  std::condition_variable changed;
  std::optional<StatusOr<std::unique_ptr<Bootstrap>>> met;
  Status aborted;
  LaunchedGroup* group = nullptr;
};

Meeting::Meeting(Placement placement) : placement_(std::move(placement)), state_(std::make_shared<State>()) {}

Meeting::~Meeting() = default;

StatusOr<LaunchedGroup*> Meeting::Join(std::chrono::nanoseconds limit) {
  const std::lock_guard joining(joining_);
  if (group_ != nullptr) return group_.get();
  BootstrapOptions options = WithTimeLimit(limit >= kForEver ? BootstrapOptions::kForever : limit);
  options.stop = &state_->stop;
  XCCL_ASSIGN_OR_RETURN(std::thread thread, StartThread([state = state_, placement = placement_, options] {
                          StatusOr<std::unique_ptr<Bootstrap>> met = LimitReached("");
                          try {
                            met = Bootstrap::Join(placement, options);
                          } catch (const std::exception& error) {
                            met = StatusOf(error);
                          }
                          const std::lock_guard lock(state->mutex);
                          state->met = std::move(met);
                          state->changed.notify_all();
                        }));
  thread.detach();
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

// A rank's outcome as a text: the hash of what it read, or why it could not.
std::string OutcomeOf(const Status& mine, uint64_t hash) {
  return mine.ok() ? fmt::format("{:016x}", hash)
                   : fmt::format("{} {}", static_cast<int>(mine.code()), mine.message());
}

Status Compare(const std::vector<std::string>& outcomes) {
  constexpr size_t kHashDigits = 16, kMostOfAText = 4096;
  std::optional<size_t> first;
  for (size_t r = 0; r < outcomes.size(); ++r) {
    const size_t space = outcomes[r].find(' ');
    const StatusOr<int64_t> code =
        ParseInteger(outcomes[r].substr(0, space), 1, static_cast<int64_t>(StatusCode::kPeerEnded));
    if (space != std::string::npos && code.ok())
      return Status(static_cast<StatusCode>(*code),
                    fmt::format("rank {}: {}", r, Cleaned(outcomes[r].substr(space + 1), kMostOfAText)));
    if (space != std::string::npos || outcomes[r].size() != kHashDigits)
      return InvalidInput(
          fmt::format("rank {}: said '{}' of its plan book; expected its hash, or why it has none", r,
                      Cleaned(outcomes[r])));
    if (!first) first = r;
    if (outcomes[r] != outcomes[*first])
      return InvalidInput(fmt::format(
          "rank {}: loads another plan book than rank {}; expected the same on all ranks", r, *first));
  }
  return OkStatus();
}

}  // namespace

void AddMeeting(const std::shared_ptr<Meeting>& meeting, const TimeLimit& limit, Backend& backend) {
  backend.agree = [meeting, limit](const Status& mine, uint64_t hash) -> Status {
    XCCL_ASSIGN_OR_RETURN(LaunchedGroup* const group, meeting->Join(limit()));
    XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> outcomes,
                          group->bootstrap().AllGather(OutcomeOf(mine, hash), limit()));
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
