#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <utility>

#include "dispatch/verify.h"
#include "runtime/c_api/experts.h"
#include "runtime/c_api/registry.h"

namespace xccl::c_api {
namespace {

Registry<xcclExperts_t, Experts>& All() { return Registry<xcclExperts_t, Experts>::Get(); }

}  // namespace

StatusOr<std::shared_ptr<LoadedExperts>> ReadExperts(const std::string& path, int32_t ranks) {
  XCCL_ASSIGN_OR_RETURN(dispatch::ExpertPlan plan, dispatch::ReadExpertPlan(path));
  auto loaded = std::make_shared<LoadedExperts>(std::move(plan));
  loaded->file = std::filesystem::path(path).filename().string();
  if (loaded->plan.sizes.ranks != ranks)
    return InvalidInput(
        fmt::format("{}: a plan for {} ranks; expected {}", path, loaded->plan.sizes.ranks, ranks));
  return loaded;
}

Experts::~Experts() {
  if (!on_gpu) return;
  const std::lock_guard lock(loaded->gpus->mutex);
  loaded->gpus->unused[static_cast<size_t>(rank)].push_back(*std::move(on_gpu));
}

xcclExperts_t AddExperts(std::shared_ptr<Experts> experts) { return All().Add({std::move(experts)}).front(); }

StatusOr<std::shared_ptr<Experts>> FindExperts(xcclExperts_t handle) { return All().Find(handle); }

StatusOr<std::shared_ptr<Experts>> DropExperts(xcclExperts_t handle) { return All().Drop(handle); }

}  // namespace xccl::c_api
