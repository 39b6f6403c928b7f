#include "runtime/testing/cuda/fake_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/testing/cuda/fake_state.h"

namespace xccl::cuda {
namespace fake {

namespace {

void FillProperties(Driver& d) {
  d.Init = [](unsigned) { return EndOf(Begin(), true); };
  d.DriverGetVersion = [](int* version) {
    *version = 13000;
    return EndOf(Begin(), true);
  };
  d.GetErrorName = [](Result, const char** name) {
    *name = "FAKE_ERROR";
    return Result::kSuccess;
  };
  d.GetErrorString = [](Result error, const char** text) {
    *text = error == Result::kOutOfMemory ? "out of memory" : "fake error";
    return Result::kSuccess;
  };
  d.DeviceGetCount = [](int* count) {
    *count = state->options.devices;
    return EndOf(Begin(), true);
  };
  d.DeviceGet = [](DeviceId* device, int ordinal) {
    *device = ordinal;
    return EndOf(Begin(), ordinal >= 0 && ordinal < state->options.devices);
  };
  d.DeviceGetName = [](char* name, int length, DeviceId device) {
    std::snprintf(name, static_cast<size_t>(length), "Fake GPU %d", device);
    return EndOf(Begin(), true);
  };
  d.DeviceGetUuid = [](Uuid* uuid, DeviceId device) {
    *uuid = {};
    uuid->bytes[0] = static_cast<unsigned char>(device + 1);
    return EndOf(Begin(), true);
  };
  d.DeviceGetP2PAttribute = [](int* value, PeerAttribute attribute, DeviceId from, DeviceId to) {
    *value = state->options.nvlink ? 1 : 0;
    return EndOf(Begin(), attribute == PeerAttribute::kNativeAtomics && from != to);
  };
  d.DeviceGetAttribute = [](int* value, DeviceAttribute attribute, DeviceId) {
    const FakeOptions& o = state->options;
    switch (attribute) {
      case DeviceAttribute::kMultiprocessorCount:
        *value = o.multiprocessors;
        break;
      case DeviceAttribute::kComputeCapabilityMajor:
        *value = o.capability / 10;
        break;
      case DeviceAttribute::kComputeCapabilityMinor:
        *value = o.capability % 10;
        break;
      case DeviceAttribute::kVirtualMemoryManagement:
        *value = o.virtual_memory ? 1 : 0;
        break;
      case DeviceAttribute::kPosixFileDescriptors:
        *value = o.file_descriptors ? 1 : 0;
        break;
      case DeviceAttribute::kHostPageTables:
        *value = 0;
        break;
      case DeviceAttribute::kGpuDirectRdma:
        *value = o.rdma ? 1 : 0;
        break;
      case DeviceAttribute::kRdmaFlushes:
        *value = o.rdma ? kFlushOfHost : 0;
        break;
      case DeviceAttribute::kRdmaOrdering:
        *value = o.rdma_ordered ? kToOwner : 0;
        break;
      case DeviceAttribute::kDmaBuf:
        *value = o.dma_buf ? 1 : 0;
        break;
      case DeviceAttribute::kMulticast:
        *value = o.multicast ? 1 : 0;
        break;
    }
    return EndOf(Begin(), true);
  };
}

}  // namespace

void FillDevices(Driver& d) {
  FillProperties(d);
  d.DevicePrimaryCtxRetain = [](Context* context, DeviceId device) {
    if (const auto error = Begin()) return *error;
    const std::lock_guard lock(state->mutex);
    *context = &state->contexts[static_cast<size_t>(device)];
    ++(*context)->retained;
    return Result::kSuccess;
  };
  d.DevicePrimaryCtxRelease = [](DeviceId device) {
    const auto error = Begin();
    const std::lock_guard lock(state->mutex);
    return EndOf(error, --state->contexts[static_cast<size_t>(device)].retained >= 0);
  };
  d.CtxPushCurrent = [](Context context) {
    if (const auto error = Begin()) return *error;
    current.push_back(context);
    return Result::kSuccess;
  };
  d.CtxPopCurrent = [](Context* context) {
    const auto error = Begin();
    if (current.empty()) return Result::kInvalidContext;
    if (context != nullptr) *context = current.back();
    current.pop_back();
    return EndOf(error, true);
  };
}

// The number of a launch on the current context, which there is room for in its queue.
Result BeginLaunch(int64_t* number) {
  ContextObject& context = *current.back();
  std::unique_lock lock(state->mutex);
  const Result room = WaitUntil(lock, [&] { return context.unended.size() < state->options.most_launches; });
  *number = ++context.launched;
  if (room == Result::kSuccess) context.unended.insert(*number);
  return room;
}
void EndLaunch(Context context, int64_t number) {
  const std::lock_guard lock(state->mutex);
  context->unended.erase(number);
  state->ended.notify_all();
}

namespace {

void RunKernel(Function function, const FakeDriver::Launch& launch, Context context) {
  {
    const std::lock_guard lock(state->mutex);
    if (context->failed != Result::kSuccess) return;
    ++state->launches;
    ++context->running;
  }
  function->kernel(launch);
  const std::lock_guard lock(state->mutex);
  --context->running;
  state->ended.notify_all();
}

// The number of blocks of so many threads that one multiprocessor holds.
int32_t BlocksFor(unsigned threads) {
  const FakeOptions& o = state->options;
  return BlocksOnMultiprocessor(o.kernel, o.capability, static_cast<int32_t>(threads));
}

}  // namespace

void FillModules(Driver& d) {
  d.ModuleLoadData = [](Module* module, const void* image) {
    if (const auto error = BeginUnsafe()) return *error;
    if (!std::string_view(static_cast<const char*>(image)).starts_with(FakeDriver::kAnyImage))
      return Result::kInvalidImage;
    if (const Result idle = AwaitLaunched(current.back()); idle != Result::kSuccess) return idle;
    const std::lock_guard lock(state->mutex);
    *module = new ModuleObject{static_cast<const char*>(image)};
    state->modules.insert(*module);
    return Result::kSuccess;
  };
  d.ModuleUnload = [](Module module) {
    if (!current.empty()) AwaitLaunched(current.back());
    return Destroy(state->modules, module);
  };
  d.ModuleGetFunction = [](Function* function, Module module, const char* name) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    auto at = state->kernels.find({module->image, name});
    if (at == state->kernels.end()) at = state->kernels.find({FakeDriver::kAnyImage, name});
    if (at == state->kernels.end()) return Result::kNotFound;
    *function = at->second;
    return Result::kSuccess;
  };
  d.ModuleGetGlobal = [](DevicePointer* address, size_t* bytes, Module, const char* name) {
    if (const auto error = BeginInContext()) return *error;
    const std::lock_guard lock(state->mutex);
    const auto at = state->globals.find(name);
    if (at == state->globals.end()) return Result::kNotFound;
    *address = Device(at->second.data());
    *bytes = at->second.size();
    return Result::kSuccess;
  };
  d.FuncGetAttribute = [](int* value, FunctionAttribute attribute, Function) {
    if (const auto error = BeginInContext()) return *error;
    if (attribute != FunctionAttribute::kRegisters) return Result::kInvalidValue;
    *value = state->options.kernel.registers;
    return Result::kSuccess;
  };
  d.OccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, Function, int threads, size_t) {
    *blocks = BlocksFor(static_cast<unsigned>(threads));
    return EndOf(BeginInContext(), true);
  };
  d.LaunchKernel = [](Function function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned,
                      unsigned, unsigned, Stream stream, void** parameters, void**) {
    if (const auto error = BeginInContext()) return *error;
    if (x == 0 || y != 1 || z != 1 || threads == 0 || threads > 1024) return Result::kInvalidValue;
    if (BlocksFor(threads) == 0) return Result::kLaunchOutOfResources;
    const auto* bytes = static_cast<const std::byte*>(parameters[0]);
    const std::vector<std::byte> parameter(bytes, bytes + function->parameter_bytes);
    StreamObject& queue = Queue(stream);
    const Context context = current.back();
    if (queue.context != context) return Result::kInvalidHandle;
    const auto run = [=] { RunKernel(function, {parameter.data(), x, threads, context->device}, context); };
    if (queue.capture) {
      queue.Add(run);
      return Result::kSuccess;
    }
    int64_t number = 0;
    if (const Result room = BeginLaunch(&number); room != Result::kSuccess) return room;
    queue.Add([=] {
      run();
      EndLaunch(context, number);
    });
    return Result::kSuccess;
  };
  d.LaunchCooperativeKernel = [](Function function, unsigned x, unsigned y, unsigned z, unsigned threads,
                                 unsigned by, unsigned bz, unsigned shared, Stream stream,
                                 void** parameters) {
    const FakeOptions& o = state->options;
    if (x > static_cast<unsigned>(o.multiprocessors * BlocksFor(threads)))
      return Result::kCooperativeLaunchTooLarge;
    Driver table;
    FillModules(table);
    return table.LaunchKernel(function, x, y, z, threads, by, bz, shared, stream, parameters, nullptr);
  };
}

}  // namespace fake

namespace {

Driver MakeTable() {
  Driver table;
  fake::FillDevices(table);
  fake::FillAccess(table);
  fake::FillMemory(table);
  fake::FillVirtualMemory(table);
  fake::FillModules(table);
  fake::FillStreams(table);
  return table;
}

void Count(std::string& text, size_t number, const char* one, const char* many) {
  if (number == 0) return;
  if (!text.empty()) text += ", ";
  text += std::to_string(number) + " " + (number == 1 ? one : many);
}

}  // namespace

FakeDriver::FakeDriver(const FakeOptions& options) {
  XCCL_CHECK(fake::state == nullptr);
  fake::state = new fake::State;
  fake::state->options = options;
  fake::state->contexts.resize(static_cast<size_t>(options.devices));
  for (int32_t i = 0; i < options.devices; ++i) fake::state->contexts[static_cast<size_t>(i)].device = i;
  const std::lock_guard lock(fake::state->mutex);
  fake::ReachChanged();
}

FakeDriver::~FakeDriver() {
  for (StreamObject* stream : fake::state->streams) delete stream;
  fake::state->default_streams.clear();
  fake::FreeAllocated();
  delete fake::state;
  fake::state = nullptr;
}

const Driver& FakeDriver::table() const {
  static const Driver table = MakeTable();
  return table;
}

void FakeDriver::AddKernel(const std::string& name, size_t parameter_bytes, Kernel kernel,
                           const std::string& image) {
  const std::lock_guard lock(fake::state->mutex);
  fake::state->kernels[{image, name}] =
      &fake::state->functions.emplace_back(FunctionObject{std::move(kernel), parameter_bytes});
}

void FakeDriver::AddGlobal(const std::string& name, const void* data, size_t bytes) {
  const std::lock_guard lock(fake::state->mutex);
  const auto* begin = static_cast<const std::byte*>(data);
  fake::state->globals[name].assign(begin, begin + bytes);
}

int64_t FakeDriver::calls() const {
  const std::lock_guard lock(fake::state->mutex);
  return fake::state->calls;
}

void FakeDriver::FailCall(int64_t number, Result error) {
  const std::lock_guard lock(fake::state->mutex);
  fake::state->fail_at = number;
  fake::state->fail_with = error;
}

void FakeDriver::BreakStreams(Result error) {
  const std::lock_guard lock(fake::state->mutex);
  fake::state->stream_error = error;
}

std::string FakeDriver::Leaks() const {
  const std::lock_guard lock(fake::state->mutex);
  std::string text;
  size_t retained = 0;
  for (const ContextObject& context : fake::state->contexts)
    retained += static_cast<size_t>(context.retained);
  Count(text, retained, "context", "contexts");
  Count(text, fake::current.size(), "pushed context", "pushed contexts");
  Count(text, fake::state->physical.size(), "handle", "handles");
  Count(text, fake::state->reservations.size(), "reservation", "reservations");
  Count(text, fake::state->mappings.size(), "mapping", "mappings");
  const auto of_test = [](const auto& each) { return each.second.of_test; };
  const auto of_tests = std::ranges::count_if(fake::state->allocations, of_test);
  Count(text, fake::state->allocations.size() - static_cast<size_t>(of_tests), "allocation", "allocations");
  Count(text, fake::state->host.size(), "host allocation", "host allocations");
  Count(text, fake::state->modules.size(), "module", "modules");
  Count(text, fake::state->streams.size(), "stream", "streams");
  Count(text, fake::state->events.size(), "event", "events");
  Count(text, fake::state->graphs.size() + fake::state->execs.size(), "graph", "graphs");
  Count(text, static_cast<size_t>(fake::state->endless), "endless wait", "endless waits");
  return text;
}

size_t FakeDriver::memory_in_use() const {
  const std::lock_guard lock(fake::state->mutex);
  return fake::state->in_use;
}

void* FakeDriver::AllocateBytes(size_t bytes, DeviceId device) { return fake::Allocate(bytes, device); }

bool FakeDriver::Allows(DeviceId device, const void* at, int64_t bytes) {
  return fake::Allows(device, fake::Device(at), static_cast<size_t>(bytes));
}

std::vector<char*> FakeDriver::CopiesAt(DevicePointer address) { return fake::CopiesAt(address); }

int64_t FakeDriver::launches() const {
  const std::lock_guard lock(fake::state->mutex);
  return fake::state->launches;
}

void FakeDriver::OnFlush(std::function<void()> flushed) {
  const std::lock_guard lock(fake::state->mutex);
  fake::state->flushed = std::move(flushed);
}
int64_t FakeDriver::host_waits() const {
  const std::lock_guard lock(fake::state->mutex);
  return fake::state->host_waits;
}

}  // namespace xccl::cuda
