#include "runtime/nccl/shim/coverage.h"

#include <utility>

#include "base/ids.h"
#include "ir/numbers.h"
#include "runtime/nccl/shim/nccl.h"

namespace xccl::nccl_shim {

StatusOr<Coverage> Coverage::Read(const std::string& book) {
  XCCL_ASSIGN_OR_RETURN(PlanBook read, ReadPlanBook(book));
  return Coverage(std::move(read));
}

std::set<std::string> Coverage::Collectives(int ranks) const {
  std::set<std::string> names;
  for (const PlanBookEntry& entry : book_.entries)
    if (entry.ranks == ranks) names.emplace(ToString(entry.collective));
  return names;
}

const char* Coverage::WhyNot(const NcclCall& call, int ranks) const {
  if (IsReduction(call.kind) && call.op >= kNumOperators) return "its operator was made by the program";
  const std::optional<Rank> root = IsRooted(call.kind) ? std::optional(Rank(call.root)) : std::nullopt;
  const std::optional<size_t> plan =
      FindPlan(book_, {call.kind, ranks, root, SizeBytes(call, ranks), static_cast<DataType>(call.type), {}});
  if (!plan) return "the book has no plan for it";
  // Ranks may differ in it, so nobody may ask whether this one does. NCCL's own alltoall is never in place.
  if (book_.entries[*plan].in_place != InPlaceMode::kBoth && call.kind != CollectiveKind::kAlltoall)
    return "the book's plan for it does not run in place";
  return nullptr;
}

int64_t SizeBytes(const NcclCall& call, int ranks) {
  const int64_t shares = TraitsOf(call.kind).parts == KindTraits::Parts::kOne ? 1 : ranks;
  return static_cast<int64_t>(call.count) * SizeOf(static_cast<DataType>(call.type)) * shares;
}

bool IsWellFormed(const NcclCall& call, int ranks) {
  constexpr size_t kMostElements = size_t{1} << 40;
  return call.count > 0 && call.count <= kMostElements && call.type >= 0 && call.type < kNumTypes &&
         call.op >= 0 && call.root >= 0 && call.root < ranks;
}

}  // namespace xccl::nccl_shim
