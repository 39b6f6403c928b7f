#include "runtime/read_book.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "base/files.h"
#include "ir/plan.h"
#include "ir/verify/read_plan.h"
#include "runtime/plan_book.h"
#include "runtime/rails.h"

namespace xccl {
namespace {

// FNV-1a.
constexpr uint64_t kNoHash = 0xcbf29ce484222325;
uint64_t Hash(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

StatusOr<std::vector<ServedPlan>> ReadServedPlans(const std::string& directory, int32_t ranks, bool kernels,
                                                  uint64_t& hash) {
  hash = kNoHash;
  XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(directory));
  std::vector<ServedPlan> plans;
  XCCL_ASSIGN_OR_RETURN(const std::string index, ReadFile(directory + "/index.json", kMostIndexBytes));
  hash = Hash(hash, index);
  for (const PlanBookEntry& entry : book.entries) {
    if (entry.ranks != ranks) continue;
    XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(book.PathOf(entry)));
    XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(book.PathOf(entry)));
    hash = Hash(hash, text);
    const std::string path = book.PathOf(entry);
    if (!plan.program) return InvalidInput(path + ": has no program; expected one lowered with -o");
    if (plan.program->program.ranks.size() != ranks || plan.collective.num_members() != ranks ||
        plan.collective.kind() != entry.collective || plan.collective.spec().root != entry.root)
      return InvalidInput(fmt::format("{}: {} on {} of {} ranks; the index says {} on {} ranks", path,
                                      plan.collective.name(), plan.collective.num_members(),
                                      plan.program->program.ranks.size(), ToString(entry.collective),
                                      entry.ranks));
    std::string kernel;
    if (kernels && !entry.kernel.empty()) {
      XCCL_ASSIGN_OR_RETURN(kernel, ReadKernel(book, entry));
    }
    std::vector<Rails> rails = RailsOf(plan.program->program, plan.topology);
    plans.push_back({entry, std::move(plan.program->collective), std::move(plan.program->program),
                     std::move(rails), std::move(kernel), book.CubinPathsOf(entry)});
  }
  if (plans.empty()) return InvalidInput(fmt::format("{}: no plan for {} ranks", directory, ranks));
  return plans;
}

}  // namespace xccl
