#include "runtime/c_api/background.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/exceptions.h"
#include "base/threads.h"

namespace xccl::c_api {

struct Background::State {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool running = false;
  Status result;
};

Background::Background() : state_(std::make_shared<State>()) {}

Status Background::Start(std::function<Status()> body) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->running)
      return InvalidInput(
          "a call is in progress; expected this one when xcclCommGetAsyncError says no longer "
          "xcclInProgress");
    state_->running = true;
    state_->result = OkStatus();
  }
  StatusOr<std::thread> thread = StartThread([state = state_, body = std::move(body)]() mutable {
    Status status;
    try {
      status = body();
    } catch (const std::exception& error) {
      status = StatusOf(error);
    }
    body = nullptr;  // frees what the body holds before anyone is told that it is over
    const std::lock_guard lock(state->mutex);
    state->running = false;
    state->result = std::move(status);
    state->changed.notify_all();
  });
  if (thread.ok()) {
    thread->detach();
    return OkStatus();
  }
  const std::lock_guard lock(state_->mutex);
  state_->running = false;
  state_->changed.notify_all();
  return thread.status();
}

bool Background::running() const {
  const std::lock_guard lock(state_->mutex);
  return state_->running;
}

Status Background::result() const {
  const std::lock_guard lock(state_->mutex);
  return state_->result;
}

void Background::Wait() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->running; });
}

}  // namespace xccl::c_api
