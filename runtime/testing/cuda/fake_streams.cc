// FakeDriver's streams, graphs and events.
#include <algorithm>

#include "runtime/testing/cuda/fake_state.h"

namespace xccl::cuda::fake {
namespace {

void FillQueues(Driver& d) {
  d.StreamCreate = [](Stream* stream, unsigned) {
    return Make(state->streams, stream, current.empty() ? nullptr : current.back());
  };
  d.StreamDestroy = [](Stream stream) { return Destroy(state->streams, stream); };
  d.StreamSynchronize = [](Stream stream) {
    if (const auto error = BeginUnsafe()) return *error;
    if (Queue(stream).capture) return Result::kStreamCaptureUnsupported;
    Queue(stream).Wait();
    const std::lock_guard lock(state->mutex);
    ++state->host_waits;
    return current.back()->failed != Result::kSuccess ? current.back()->failed : state->stream_error;
  };
  d.StreamWaitEvent = [](Stream stream, Event event, unsigned) {
    if (const auto error = BeginInContext()) return *error;
    const int64_t wanted = event->recorded;
    Queue(stream).Add([=] {
      std::unique_lock lock(event->mutex);
      event->done.wait(lock, [&] { return event->reached >= wanted; });
    });
    return Result::kSuccess;
  };
  d.StreamIsCapturing = [](Stream stream, CaptureStatus* status) {
    if (const auto error = BeginInContext()) return *error;
    *status = Queue(stream).capture ? CaptureStatus::kActive : CaptureStatus::kNone;
    return Result::kSuccess;
  };
  d.StreamBeginCapture = [](Stream stream, CaptureMode mode) {
    if (const auto error = BeginInContext()) return *error;
    Queue(stream).capture.emplace();
    const std::lock_guard lock(state->mutex);
    state->captures[stream] = {mode, std::this_thread::get_id()};
    return Result::kSuccess;
  };
  d.StreamEndCapture = [](Stream stream, Graph* graph) {
    if (const auto error = BeginInContext()) return *error;
    if (!Queue(stream).capture) return Result::kInvalidValue;
    *graph = new GraphObject(*std::move(Queue(stream).capture));
    Queue(stream).capture.reset();
    const std::lock_guard lock(state->mutex);
    state->captures.erase(stream);
    state->graphs.insert(*graph);
    return Result::kSuccess;
  };
  d.ThreadExchangeStreamCaptureMode = [](CaptureMode* mode) {
    std::swap(capture_mode, *mode);
    return EndOf(Begin(), true);
  };
}

void FillGraphsAndEvents(Driver& d) {
  d.GraphInstantiate = [](GraphExec* exec, Graph graph, Driver::U64) {
    return Make(state->execs, exec, graph->work);
  };
  d.GraphLaunch = [](GraphExec exec, Stream stream) {
    if (const auto error = BeginInContext()) return *error;
    int64_t number = 0;
    if (const Result room = BeginLaunch(&number); room != Result::kSuccess) return room;
    for (const std::function<void()>& work : exec->work) Queue(stream).Add(work);
    Queue(stream).Add([context = current.back(), number] { EndLaunch(context, number); });
    return Result::kSuccess;
  };
  d.GraphExecDestroy = [](GraphExec exec) { return Destroy(state->execs, exec); };
  d.GraphDestroy = [](Graph graph) { return Destroy(state->graphs, graph); };
  d.EventCreate = [](Event* event, unsigned flags) {
    return Make(state->events, event, current.empty() ? nullptr : current.back(), flags);
  };
  d.EventDestroy = [](Event event) { return Destroy(state->events, event); };
  d.EventRecord = [](Event event, Stream stream) {
    if (const auto error = BeginInContext()) return *error;
    if (event->context != Queue(stream).context) return Result::kInvalidHandle;
    const int64_t number = ++event->recorded;
    Queue(stream).Add([=] {
      const std::lock_guard lock(event->mutex);
      event->reached = std::max(event->reached, number);
      event->done.notify_all();
    });
    return Result::kSuccess;
  };
  d.EventQuery = [](Event event) {
    if (const auto error = BeginUnsafe()) return *error;
    if (state->stream_error != Result::kSuccess) return state->stream_error;
    {
      const std::lock_guard lock(event->mutex);
      if (event->reached < event->recorded) return Result::kNotReady;
    }
    const std::lock_guard lock(state->mutex);  // work before the event may have failed
    return event->context->failed;
  };
  d.EventElapsedTime = [](float* milliseconds, Event begin, Event end) {
    *milliseconds = 1;
    if (const auto error = BeginInContext()) return *error;
    return ((begin->flags | end->flags) & kEventDisableTiming) != 0 ? Result::kInvalidHandle
                                                                    : Result::kSuccess;
  };
}

}  // namespace

void FillStreams(Driver& d) {
  FillQueues(d);
  FillGraphsAndEvents(d);
}

}  // namespace xccl::cuda::fake
