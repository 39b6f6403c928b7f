#include "runtime/c_api/handles.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <utility>

#include "runtime/c_api/call_log.h"
#include "runtime/c_api/registry.h"

namespace xccl::c_api {
namespace {

Registry<xcclComm_t, Comm>& All() { return Registry<xcclComm_t, Comm>::Get(); }

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

Status Comm::CheckUsable() const {
  if (process == getpid()) return OkStatus();
  return InvalidInput(fmt::format("rank {}: the communicator is of process {}, and process {} is a fork",
                                  communicator.rank().value, process, getpid()));
}

std::vector<xcclComm_t> Add(std::vector<std::shared_ptr<Comm>> comms) {
  for (const std::shared_ptr<Comm>& comm : comms) CountCalls(*comm);
  return All().Add(std::move(comms));
}

bool AnyOnGpu() {
  return All().Any([](Comm& comm) {
    const std::lock_guard lock(comm.mutex);
    return comm.settings.device.has_value();
  });
}

StatusOr<std::shared_ptr<Comm>> Find(xcclComm_t handle) { return All().Find(handle); }

StatusOr<std::shared_ptr<Comm>> Drop(xcclComm_t handle) { return All().Drop(handle); }

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
