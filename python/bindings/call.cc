#include "python/bindings/call.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/threads.h"
#include "python/bindings/pickle.h"

namespace xccl::python {
namespace {

constexpr std::chrono::milliseconds kLook(50);  // between two looks for signals
constexpr double kGraceSeconds = 0.5;           // for stages that look at the clock themselves

std::atomic<int> left_behind = 0;  // calls that were given up and go on

// Lets the thread go on by itself. Whoever waits for the rest is told when it ends.
void LeaveBehind(std::thread thread) {
  ++left_behind;
  std::thread([thread = std::move(thread)]() mutable {
    thread.join();
    --left_behind;
  }).detach();
}

}  // namespace

class Watch {
 public:
  void Say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    said_.push_back(text);
    wake_.notify_all();
  }
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  }
  // Waits a little, or until something happens. Returns whether the work has ended; moves the texts that it
  // has reported into `said`.
  bool Wait(std::vector<std::string>& said) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kLook, [this] { return ended_ || !said_.empty(); });
    said = std::exchange(said_, {});
    return ended_;
  }

  Interrupt stop;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::string> said_;
  bool ended_ = false;
};

bool Caller::Stopped() const { return watch_->stop.IsSet(); }
Deadline Caller::Within(const Deadline& deadline) const { return deadline.With(watch_->stop); }
void Caller::Say(const std::string& text) const { watch_->Say(text); }

void RaiseInterrupt() {
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw py::error_already_set();
}

bool RunWatched(const Watching& watching, std::function<void(const Caller&)> work) {
  const auto watch = std::make_shared<Watch>();
  if (watching.stop && watching.stop->asked) watch->stop.Set();
  std::thread thread = ValueOf(StartThread([watch, work = std::move(work)]() mutable {
    work(Caller(watch));
    work = {};
    watch->End();
  }));
  bool interrupted = false, ended = false;
  std::optional<py::error_already_set> thrown;
  std::vector<std::string> said;
  while (!ended) {
    {
      const py::gil_scoped_release release;
      ended = watch->Wait(said);
      if (ended) thread.join();
    }
    if (watching.stop && watching.stop->asked) watch->stop.Set();
    try {
      if (!thrown && !watching.progress.is_none())
        for (const std::string& text : said) watching.progress(TextOf(text));
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    } catch (py::error_already_set& error) {
      watch->stop.Set();
      if (!error.matches(PyExc_KeyboardInterrupt)) {
        thrown.emplace(error);
      } else if ((std::exchange(interrupted, true) || !watching.keeps_best) && !ended) {
        LeaveBehind(std::move(thread));
        throw;
      }
    }
    if (!ended && !thrown && watching.deadline.SecondsLeft() < -kGraceSeconds) {
      watch->stop.Set();
      LeaveBehind(std::move(thread));
      Raise(LimitReached(watching.deadline.ToString() +
                         " passed; no result until then; hint: a longer time_limit"));
    }
  }
  if (thrown) throw *thrown;
  watching.interrupted = interrupted;
  return interrupted;
}

void BindCalls(py::module_& module) {
  py::class_<Stop, std::shared_ptr<Stop>>(module, "Stop",
                                          "Ends a call of another thread: ``ask`` tells the ``plan`` that "
                                          "was given it to end with the best so far.")
      .def(py::init<>())
      .def(
          "ask", [](Stop& stop) { stop.asked = true; }, "Asks; there is no way back.")
      .def_property_readonly(
          "asked", [](const Stop& stop) { return stop.asked.load(); }, "Whether it has been asked.")
      .def(py::pickle([](const Stop& stop) { return py::make_tuple(stop.asked.load()); },
                      [](const py::tuple& state) {
                        CheckFields(state, 1);
                        auto stop = std::make_shared<Stop>();
                        stop->asked = state[0].cast<bool>();
                        return stop;
                      }));
  py::class_<Watching>(module, "Watching")
      .def(py::init([](const std::shared_ptr<Stop>& stop, const py::object& progress) {
        return Watching{.stop = stop, .progress = progress, .keeps_best = true};
      }))
      .def_readonly("interrupted", &Watching::interrupted);
  // A program must not end below threads that use its libraries.
  module.def("wait_for_the_rest", [] {
    while (left_behind > 0) {
      {
        const py::gil_scoped_release release;
        std::this_thread::sleep_for(kLook);
      }
      if (PyErr_CheckSignals() != 0) _exit(130);
    }
  });
}

}  // namespace xccl::python
