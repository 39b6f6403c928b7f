#include "examples/extending/latest_dependencies.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace xccl {

void KeepLatestDependencies(Program& program) {
  std::vector<Dependency> kept;
  for (int32_t r = 0; r < program.ranks.size(); ++r) {
    for (Threadblock& block : program.ranks[Rank(r)].threadblocks) {
      for (Instruction& instruction : block.instructions) {
        const auto from = program.dependencies.begin() + instruction.dep_first;
        std::vector<Dependency> waits(from, from + instruction.dep_count);
        std::ranges::sort(waits, [](const Dependency& a, const Dependency& b) {
          return a.threadblock != b.threadblock ? a.threadblock < b.threadblock : a.index > b.index;
        });
        const auto repeated = std::unique(
            waits.begin(), waits.end(),
            [](const Dependency& a, const Dependency& b) { return a.threadblock == b.threadblock; });
        waits.erase(repeated, waits.end());
        instruction.dep_first = static_cast<int32_t>(kept.size());
        instruction.dep_count = static_cast<int32_t>(waits.size());
        kept.insert(kept.end(), waits.begin(), waits.end());
      }
    }
  }
  program.dependencies = std::move(kept);
}

}  // namespace xccl
