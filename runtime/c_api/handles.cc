#include "runtime/c_api/handles.h"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <exception>
#include <unordered_map>
#include <utility>

#include "runtime/c_api/call_log.h"

namespace xccl::c_api {
namespace {

struct Registry {
  std::mutex mutex;  // guards what follows
  uintptr_t last = 0;
  std::unordered_map<xcclComm_t, std::shared_ptr<Comm>> comms;
};

// It is never freed: communicators that a program leaves behind would wait for their threads at its end, and
// in a forked child those do not exist. The mutex is held around a fork, so that a child finds it free.
Registry& All() {
  static Registry& registry = *[] {
    pthread_atfork([] { All().mutex.lock(); }, [] { All().mutex.unlock(); }, [] { All().mutex.unlock(); });
    return new Registry;
  }();
  return registry;
}

// Requires: the registry's mutex is held.
StatusOr<std::shared_ptr<Comm>> FindIn(const Registry& all, xcclComm_t handle) {
  const auto found = all.comms.find(handle);
  if (found == all.comms.end())
    return UsageError("no such communicator: it was destroyed or aborted, or never made");
  const Comm& comm = *found->second;
  if (comm.process != getpid())
    return InvalidInput(fmt::format("rank {}: the communicator is of process {}, and process {} is a fork",
                                    comm.communicator.rank().value, comm.process, getpid()));
  return found->second;
}

struct Failed {
  const void* handle = nullptr;
  std::string text;
};
constexpr size_t kMostFailed = 64;
constexpr size_t kShown = 8;

thread_local std::string last_text;
thread_local std::deque<Failed> failed;
thread_local std::array<std::string, kShown> shown;
thread_local size_t next_shown = 0;

}  // namespace

Gpus& TheGpus() {
  static Gpus& gpus = *new Gpus;
  return gpus;
}

std::vector<xcclComm_t> Add(std::vector<std::shared_ptr<Comm>> comms) {
  for (const std::shared_ptr<Comm>& comm : comms) CountCalls(*comm);
  Registry& all = All();
  std::vector<xcclComm_t> handles;
  handles.reserve(comms.size());
  const std::lock_guard lock(all.mutex);
  all.comms.reserve(all.comms.size() + comms.size());
  for (std::shared_ptr<Comm>& comm : comms) {
    const auto handle = std::bit_cast<xcclComm_t>(all.last + 1);
    all.comms.emplace(handle, std::move(comm));
    ++all.last;
    handles.push_back(handle);
  }
  return handles;
}

bool AnyOnGpu() {
  Registry& all = All();
  const std::lock_guard lock(all.mutex);
  return std::ranges::any_of(all.comms, [](const auto& entry) {
    const std::lock_guard comm_lock(entry.second->mutex);
    return entry.second->settings.device.has_value();
  });
}

StatusOr<std::shared_ptr<Comm>> Find(xcclComm_t handle) {
  Registry& all = All();
  const std::lock_guard lock(all.mutex);
  return FindIn(all, handle);
}

StatusOr<std::shared_ptr<Comm>> Drop(xcclComm_t handle) {
  Registry& all = All();
  const std::lock_guard lock(all.mutex);
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<Comm> comm, FindIn(all, handle));
  all.comms.erase(handle);
  return comm;
}

void Remember(const void* handle, std::string_view text) noexcept {
  try {
    last_text = text;
    if (handle == nullptr) return;
    std::erase_if(failed, [&](const Failed& one) { return one.handle == handle; });
    if (failed.size() == kMostFailed) failed.pop_front();
    failed.push_back({handle, std::string(text)});
  } catch (const std::exception&) {
    last_text.clear();
  }
}

const std::string& LastText() { return last_text; }

std::string LastTextOn(const void* handle) {
  const auto found = std::ranges::find(failed, handle, &Failed::handle);
  return found == failed.end() ? std::string() : found->text;
}

const char* Show(std::string text) {
  std::string& place = shown[next_shown++ % kShown];
  place = std::move(text);
  return place.c_str();
}

}  // namespace xccl::c_api
