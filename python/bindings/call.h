// Long calls run on a thread of their own without the GIL, while the calling thread waits, looks for signals,
// and hands progress texts to Python. Ctrl-C asks the call to end with the best result so far.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/deadline.h"
#include "base/exceptions.h"
#include "base/guarded.h"
#include "base/status.h"
#include "python/bindings/bindings.h"
#include "python/bindings/errors.h"

namespace xccl::python {

// The state that the calling thread and the working thread share. Thread-safe.
class Watch;

// Says from another thread of Python that calls are to end.
struct Stop {
  std::atomic<bool> asked = false;
};

// How a call is watched, as Python gives it.
struct Watching {
  std::shared_ptr<Stop> stop = nullptr;  // null: none
  py::object progress = py::none();      // or called with a text
  // True: Ctrl-C asks the call to end with its best result so far. False: Ctrl-C gives the call up at once.
  bool keeps_best = false;
  // The call is given up half a second after the deadline; stages that check the deadline end before that.
  Deadline deadline = Deadline();
  mutable bool interrupted = false;  // set by a call that Ctrl-C has asked to end
};

// The caller, as the work sees it: whether it has asked the work to stop, and where progress texts go.
class Caller {
 public:
  explicit Caller(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}
  bool Stopped() const;
  void Say(const std::string& text) const;
  // A copy of the deadline that also passes when the call is asked to end. Valid only while the work runs.
  Deadline Within(const Deadline& deadline) const;
  std::function<void(const std::string&)> progress() const {
    return [caller = *this](const std::string& text) { caller.Say(text); };
  }

 private:
  std::shared_ptr<Watch> watch_;
};

// Runs the work to its end. Returns whether Ctrl-C asked it to end. Ctrl-C throws KeyboardInterrupt and
// leaves the work to end in the background, unless it keeps the best; there the second one does so. A
// deadline that the work overruns throws LimitReached likewise. Throws what `progress` throws, once the work
// has ended. Requires: the GIL; `work` throws nothing and owns all that it uses, and nothing of Python.
bool RunWatched(const Watching& watching, std::function<void(const Caller&)> work);

// Throws KeyboardInterrupt.
[[noreturn]] void RaiseInterrupt();

// The value of work(caller), a StatusOr. A call that Ctrl-C ended before it had one throws KeyboardInterrupt.
// Requires: as RunWatched, except that exceptions are taken as errors.
template <typename Work>
auto Watched(const Watching& watching, Work work) {
  using Result = std::invoke_result_t<Work, const Caller&>;
  const auto result = std::make_shared<std::optional<Result>>();
  const bool interrupted = RunWatched(watching, [result, work = std::move(work)](const Caller& caller) {
    try {
      *result = RunGuarded([&] { return work(caller); });
    } catch (const std::exception& error) {
      *result = Result(StatusOf(error));
    }
  });
  if (interrupted && !(watching.keeps_best && (*result)->ok())) RaiseInterrupt();
  return ValueOf(std::move(**result));
}

}  // namespace xccl::python
