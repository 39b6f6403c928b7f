#include <fmt/core.h>
#include <pthread.h>

#include <bit>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "dispatch/verify.h"
#include "runtime/c_api/experts.h"

namespace xccl::c_api {
namespace {

// Never freed, and free in a forked child, as the registry of communicators.
struct Registry {
  std::mutex mutex;  // guards what follows
  uintptr_t last = 0;
  std::unordered_map<xcclExperts_t, std::shared_ptr<Experts>> all;
};
Registry& All() {
  static Registry& registry = *[] {
    pthread_atfork([] { All().mutex.lock(); }, [] { All().mutex.unlock(); }, [] { All().mutex.unlock(); });
    return new Registry;
  }();
  return registry;
}

StatusOr<std::shared_ptr<Experts>> FindIn(const Registry& registry, xcclExperts_t handle) {
  const auto found = registry.all.find(handle);
  if (found == registry.all.end())
    return UsageError("no such handle of experts: it was destroyed, or never made");
  return found->second;
}

}  // namespace

StatusOr<std::shared_ptr<LoadedExperts>> ReadExperts(const std::string& path, int32_t ranks) {
  XCCL_ASSIGN_OR_RETURN(dispatch::ExpertPlan plan, dispatch::ReadExpertPlan(path));
  auto loaded = std::make_shared<LoadedExperts>(std::move(plan));
  if (loaded->plan.sizes.ranks != ranks)
    return InvalidInput(
        fmt::format("{}: a plan for {} ranks; expected {}", path, loaded->plan.sizes.ranks, ranks));
  XCCL_ASSIGN_OR_RETURN(loaded->wires, dispatch::WireExperts(loaded->plan));
  return loaded;
}

xcclExperts_t AddExperts(std::shared_ptr<Experts> experts) {
  Registry& registry = All();
  const std::lock_guard lock(registry.mutex);
  const auto handle = std::bit_cast<xcclExperts_t>(++registry.last);
  registry.all.emplace(handle, std::move(experts));
  return handle;
}

StatusOr<std::shared_ptr<Experts>> FindExperts(xcclExperts_t handle) {
  Registry& registry = All();
  const std::lock_guard lock(registry.mutex);
  return FindIn(registry, handle);
}

StatusOr<std::shared_ptr<Experts>> DropExperts(xcclExperts_t handle) {
  Registry& registry = All();
  const std::lock_guard lock(registry.mutex);
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<Experts> dropped, FindIn(registry, handle));
  registry.all.erase(handle);
  return dropped;
}

}  // namespace xccl::c_api
