// The state that FakeDriver's functions share. It is global: a process has one FakeDriver. Functions are
// captureless lambdas in the table. Begin() stands at the head of each: it counts the call, and says whether
// this one is to fail.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::cuda {

// The opaque objects of the table.
struct ContextObject {
  DeviceId device = 0;
  int retained = 0;
  std::set<DeviceId> peers = {};     // devices whose MemAlloc memory it reaches
  int64_t launched = 0;              // launches ever
  std::set<int64_t> unended = {};    // launches that have not ended
  int32_t running = 0;               // kernels, at the moment
  Result failed = Result::kSuccess;  // for good
};
struct FunctionObject {
  FakeDriver::Kernel kernel;
  size_t parameter_bytes = 0;
};
struct ModuleObject {
  std::string image;
};
struct GraphObject {
  std::vector<std::function<void()>> work;
};
struct GraphExecObject {
  std::vector<std::function<void()>> work;
};
struct EventObject {
  Context context = nullptr;
  unsigned flags = 0;
  std::mutex mutex = {};
  std::condition_variable done = {};
  int64_t recorded = 0, reached = 0;
};

// A thread that runs queued work, in order.
struct StreamObject {
  Context context = nullptr;
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::deque<std::function<void()>> queue = {};
  bool busy = false, stopping = false;
  std::optional<GraphObject> capture = {};
  std::thread thread{[this] { Work(); }};

  ~StreamObject() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }
  void Work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      work();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void Add(std::function<void()> work) {
    const std::lock_guard lock(mutex);
    if (capture) {
      capture->work.push_back(std::move(work));
      return;
    }
    queue.push_back(std::move(work));
    changed.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return queue.empty() && !busy; });
  }
};

namespace fake {

// A multicast object, in a file of its own that the processes of its team map.
struct Multicast {
  struct Bound {
    std::atomic<int32_t> process = 0;  // the process that owns the memory; 0: none
    int32_t file = -1;
    DeviceId device = 0;
    uint64_t offset = 0;  // in the memory
  };
  uint64_t bytes = 0;
  uint32_t team = 0;
  std::atomic<uint64_t> joined = 0;  // a bit for each device
  std::atomic<uint32_t> binds = 0;   // ever
  Bound bound[64];
};
inline constexpr size_t kMulticastFileBytes = 4096;  // no memory is so small
static_assert(sizeof(Multicast) <= kMulticastFileBytes);

struct Physical {
  int file = -1;
  size_t bytes = 0;
  bool imported = false;
  DeviceId device = 0;
  int references = 1;  // the handle's own and the mappings'
  int handles = 1;     // not given back
  Multicast* multicast = nullptr;
  std::vector<std::pair<char*, size_t>> copies = {};  // for a multicast object: what CopiesAt has mapped
};

struct Allocation {  // MemAlloc, IpcOpenMemHandle, FakeDriver::Allocate
  int file = -1;
  size_t bytes = 0;
  DeviceId device = 0;  // the device that allocated it, or opened it
  bool imported = false, of_test = false;
  uint64_t id = 0;
};
struct Mapping {
  size_t bytes = 0;
  MemoryHandle handle = 0;
  std::set<DeviceId> access = {};
  uint64_t id = 0;
};

struct State {
  FakeOptions options;
  mutable std::mutex mutex;
  std::condition_variable ended;  // a kernel
  int64_t endless = 0;            // waits that ended without what they waited for
  int64_t calls = 0, fail_at = -1, launches = 0, host_waits = 0;
  std::function<void()> flushed;
  Result fail_with = Result::kOutOfMemory;
  Result stream_error = Result::kSuccess;
  size_t in_use = 0;
  std::deque<ContextObject> contexts;
  std::map<MemoryHandle, Physical> physical;
  MemoryHandle next_handle = 1;
  uint64_t next_id = 1;  // for allocations and mappings
  std::map<DevicePointer, size_t> reservations;
  std::map<DevicePointer, Mapping> mappings;
  std::map<DevicePointer, Allocation> allocations;
  std::map<void*, size_t> host;
  // By image and name, the last one; earlier ones may still run.
  std::map<std::pair<std::string, std::string>, FunctionObject*> kernels;
  std::list<FunctionObject> functions;
  std::map<std::string, std::vector<std::byte>> globals;
  std::set<Stream> streams;
  std::set<Event> events;
  std::set<Module> modules;
  std::set<Graph> graphs;
  std::set<GraphExec> execs;
  std::map<Stream, std::pair<CaptureMode, std::thread::id>>
      captures;  // captures under way, with the threads that began them
  std::map<Context, std::unique_ptr<StreamObject>> default_streams;
};

inline State* state = nullptr;
inline thread_local std::vector<Context> current;  // contexts
inline thread_local CaptureMode capture_mode = CaptureMode::kGlobal;

// The error that this call is to fail with, if any.
inline std::optional<Result> Begin() {
  const std::lock_guard lock(state->mutex);
  if (state->calls++ != state->fail_at) return std::nullopt;
  return state->fail_with;
}

// As Begin, for calls that need a context. In a context that has failed the calls fail, too, once its kernels
// have ended.
inline std::optional<Result> BeginInContext() {
  if (const auto error = Begin()) return error;
  if (current.empty()) return Result::kInvalidContext;
  std::unique_lock lock(state->mutex);
  const ContextObject& context = *current.back();
  if (context.failed == Result::kSuccess) return std::nullopt;
  state->ended.wait(lock, [&] { return context.running == 0; });
  return context.failed;
}

// Waits with the options' limit. Requires: `lock` holds the state's mutex.
template <typename Predicate>
Result WaitUntil(std::unique_lock<std::mutex>& lock, const Predicate& holds) {
  if (state->ended.wait_for(lock, state->options.wait_limit, holds)) return Result::kSuccess;
  ++state->endless;
  return Result::kLaunchTimeout;
}
// Waits for the kernels that were launched on a device so far.
inline Result AwaitLaunched(Context context) {
  std::unique_lock lock(state->mutex);
  const int64_t last = context->launched;
  return WaitUntil(lock, [&] { return context->unended.empty() || *context->unended.begin() > last; });
}

// As BeginInContext, for calls that are not allowed during a capture unless the thread declares that they
// are. In mode global no thread may make them; in mode thread-local the thread that began the capture may
// not.
inline std::optional<Result> BeginUnsafe() {
  if (const auto error = BeginInContext()) return error;
  if (capture_mode == CaptureMode::kRelaxed) return std::nullopt;
  const std::lock_guard lock(state->mutex);
  for (const auto& [stream, capture] : state->captures)
    if ((capture.first == CaptureMode::kGlobal && capture_mode == CaptureMode::kGlobal) ||
        (capture.first != CaptureMode::kRelaxed && capture.second == std::this_thread::get_id()))
      return Result::kStreamCaptureUnsupported;
  return std::nullopt;
}

inline Result EndOf(std::optional<Result> error, bool known) {
  if (error) return *error;
  return known ? Result::kSuccess : Result::kInvalidValue;
}

// Objects that the caller makes and gives back; `all` holds those that exist.
template <typename T, typename... Args>
Result Make(std::set<T*>& all, T** made, Args&&... args) {
  if (const auto error = BeginInContext()) return *error;
  const std::lock_guard lock(state->mutex);
  *made = new T{std::forward<Args>(args)...};
  all.insert(*made);
  return Result::kSuccess;
}
template <typename T>
Result Destroy(std::set<T*>& all, T* object) {
  const auto error = BeginInContext();
  {
    const std::lock_guard lock(state->mutex);
    if (all.erase(object) == 0) return Result::kInvalidHandle;
  }
  delete object;
  return EndOf(error, true);
}

// Requires: a context is current, whose stream null stands for.
inline StreamObject& Queue(Stream stream) {
  if (stream != nullptr) return *stream;
  const std::lock_guard lock(state->mutex);
  std::unique_ptr<StreamObject>& of_context = state->default_streams[current.back()];
  if (of_context == nullptr) of_context.reset(new StreamObject{current.back()});
  return *of_context;
}

// Called with the state's mutex held wherever what a device reaches changes.
void ReachChanged();
// FakeDriver::Allows.
bool Allows(DeviceId device, DevicePointer at, size_t bytes);
// FakeDriver::Allocate, and its end.
void* Allocate(size_t bytes, DeviceId device);
void FreeAllocated();

// Launches that a context's queue has room for, and their ends.
Result BeginLaunch(int64_t* number);
void EndLaunch(Context context, int64_t number);

inline void* Host(DevicePointer address) { return PointerTo<void>(address); }
inline DevicePointer Device(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }

// All memory that a multicast address stands for; none for other addresses. Requires: every member has bound.
std::vector<char*> CopiesAt(DevicePointer address);

// Each fills its share of the table.
void FillDevices(Driver& d);
void FillAccess(Driver& d);
void FillMemory(Driver& d);
void FillVirtualMemory(Driver& d);
void FillModules(Driver& d);
void FillStreams(Driver& d);

}  // namespace fake
}  // namespace xccl::cuda
