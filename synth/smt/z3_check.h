// What all questions to Z3 share: limits, what a check used up, its end from outside, and what a failure
// means. Only for the files that include Z3.
#pragma once

#include <z3++.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/exceptions.h"
#include "base/status.h"
#include "base/threads.h"
#include "synth/smt/encoding.h"

namespace xccl::smt {

// The code of this thread's last failed call to Z3. Z3 itself forgets it before an exception is caught, since
// the destructors on the way call Z3 again.
inline thread_local Z3_error_code last_failure = Z3_OK;

// A context that keeps `last_failure`.
class Context : public z3::context {
 public:
  Context() {
    Z3_set_error_handler(*this, [](Z3_context, Z3_error_code code) { last_failure = code; });
  }
};

// Interrupts what the context is doing as soon as `stopped` says so; looks twenty times a second. Where the
// machine has no thread left the check runs to its limits.
class Watch {
 public:
  Watch(z3::context& context, const std::function<bool()>& stopped) {
    if (!stopped) return;
    if (auto thread = StartThread([this, &context, &stopped] { Run(context, stopped); }); thread.ok())
      thread_ = *std::move(thread);
  }
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void Run(z3::context& context, const std::function<bool()>& stopped) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(50), [this] { return done_; }))
      if (stopped()) context.interrupt();
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

inline z3::params ParametersOf(z3::context& context, const SolveLimits& limits) {
  z3::params parameters(context);
  parameters.set("rlimit",
                 static_cast<unsigned>(std::clamp<int64_t>(limits.work, 1, (int64_t{1} << 32) - 1)));
  if (limits.time_limit_s)
    parameters.set("timeout", static_cast<unsigned>(std::clamp(*limits.time_limit_s * 1000, 1.0, 4e9)));
  parameters.set("random_seed", 0u);
  parameters.set("ctrl_c", false);  // the program's own handler is asked instead
  return parameters;
}

// Resource units since the solver was made.
inline int64_t Spent(const z3::solver& solver) {
  const z3::stats statistics = solver.statistics();
  int64_t work = 0;
  for (unsigned i = 0; i < statistics.size(); ++i)
    if (statistics.key(i) == "rlimit count")
      work += statistics.is_uint(i) ? static_cast<int64_t>(statistics.uint_value(i))
                                    : static_cast<int64_t>(statistics.double_value(i));
  return work;
}

// Asks; adds what was used up. What Z3 reports after giving up may be less than what it was given: then it
// did use it up.
inline z3::check_result Check(z3::context& context, z3::solver& solver, z3::expr_vector& assumed,
                              const SolveLimits& limits, int64_t& work) {
  const int64_t before = Spent(solver);
  z3::check_result result = z3::unknown;
  {
    const Watch watch(context, limits.stopped);
    result = solver.check(assumed);
  }
  const int64_t used = std::max<int64_t>(1, Spent(solver) - before);
  const bool ended = limits.stopped && limits.stopped();
  work += result == z3::unknown && !limits.time_limit_s && !ended ? std::max(used, limits.work) : used;
  return result;
}

// What the exception means that Z3, or what calls it, has thrown: kSystem without memory or threads, else
// kBug.
inline Status FailureOf(const std::exception& error) {
  if (dynamic_cast<const z3::exception*>(&error) == nullptr) return StatusOf(error);
  if (last_failure == Z3_MEMOUT_FAIL) return SystemError("smt: the solver is out of memory");
  return BugError(std::string("smt: the solver failed: ") + error.what());
}

// Without memory or threads a question is undecided, and has used up what it was given.
template <typename AnswerOf>
StatusOr<AnswerOf> AfterFailure(const Status& failure, const SolveLimits& limits) {
  if (failure.code() != StatusCode::kSystem) return failure;
  AnswerOf undecided;
  undecided.work = limits.work;
  return undecided;
}

// An encoding; absent, with `failure` saying why, where Z3 gave up.
template <typename Encoding, typename... Of>
std::unique_ptr<Encoding> MakeEncoding(Status& failure, const Of&... of) {
  last_failure = Z3_OK;
  try {
    return std::make_unique<Encoding>(of...);
  } catch (const std::exception& error) {
    failure = FailureOf(error);
    return nullptr;
  }
}

// What `ask` says of an encoding, or what its failure means.
template <typename AnswerOf, typename Encoding, typename AskIt>
StatusOr<AnswerOf> AskEncoding(Encoding* encoding, const Status& failure, const SolveLimits& limits,
                               AskIt ask) {
  if (encoding == nullptr) return AfterFailure<AnswerOf>(failure, limits);
  last_failure = Z3_OK;
  try {
    return ask(*encoding);
  } catch (const std::exception& error) {
    return AfterFailure<AnswerOf>(FailureOf(error), limits);
  }
}

}  // namespace xccl::smt
