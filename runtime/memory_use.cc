// A sweep over the uses by their first bytes. A use meets an earlier one of another owner exactly where the
// furthest end among such uses is behind its first byte, so the sweep keeps the furthest end, and the
// furthest end of another owner than that one's; once for all uses and once for those that write.
#include "runtime/memory_use.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace xccl {
namespace {

class FurthestEnds {
 public:
  explicit FurthestEnds(std::span<const MemoryUse> uses) : uses_(uses) {}

  void Add(size_t use) {
    if (IsBehind(use, first_)) {
      if (first_ && uses_[*first_].by != uses_[use].by) second_ = first_;
      first_ = use;
    } else if (uses_[*first_].by != uses_[use].by && IsBehind(use, second_)) {
      second_ = use;
    }
  }
  // The use that reaches furthest among the uses of other owners.
  std::optional<size_t> OfOthers(size_t owner) const {
    return first_ && uses_[*first_].by == owner ? second_ : first_;
  }

 private:
  bool IsBehind(size_t use, std::optional<size_t> other) const {
    return !other || std::less<>()(End(*other), End(use));
  }
  const std::byte* End(size_t use) const { return uses_[use].begin + uses_[use].bytes; }

  std::span<const MemoryUse> uses_;
  std::optional<size_t> first_, second_;  // uses of different owners
};

}  // namespace

std::optional<std::pair<size_t, size_t>> FindConflict(std::span<const MemoryUse> uses) {
  std::vector<size_t> order(uses.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t use) { return uses[use].bytes <= 0; });
  std::ranges::stable_sort(order, std::less<>(), [&](size_t use) { return uses[use].begin; });
  FurthestEnds all(uses), writers(uses);
  for (const size_t use : order) {
    // Who only reads minds those alone that write.
    const std::optional<size_t> other = (uses[use].writes ? all : writers).OfOthers(uses[use].by);
    if (other && std::less<>()(uses[use].begin, uses[*other].begin + uses[*other].bytes))
      return std::pair(std::min(use, *other), std::max(use, *other));
    all.Add(use);
    if (uses[use].writes) writers.Add(use);
  }
  return std::nullopt;
}

}  // namespace xccl
