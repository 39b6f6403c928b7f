// A clock is stored only for instructions at which a dependency changes it. The instructions that follow in
// the threadblock share the clock.
#include "ir/analysis/rank_clocks.h"

#include <algorithm>

namespace xccl {

Grouped<int32_t> ByRank(const ProgramIndex& index, const std::vector<int32_t>& order) {
  return GroupItems<int32_t>(static_cast<size_t>(index.num_ranks()), [&](auto add) {
    for (int32_t node : order) add(index.BlockRank(index.BlockOf(node)).value, node);
  });
}

RankClocks::RankClocks(const ProgramIndex& index, Rank rank, std::span<const int32_t> nodes)
    : index_(index), first_block_(index.RankFirstBlock(rank)), first_node_(index.BlockFirst(first_block_)) {
  const size_t blocks = static_cast<size_t>(index.RankFirstBlock(Rank(rank.value + 1)) - first_block_);
  std::vector<int32_t> current(blocks * blocks, -1);  // the clock of every threadblock
  std::vector<int64_t> latest(blocks, -1);            // by threadblock: where its last clock begins in pool_
  stored_.assign(nodes.size(), -1);
  for (const int32_t node : nodes) {
    const size_t own = static_cast<size_t>(index.BlockOf(node) - first_block_);
    int32_t* const clock = &current[own * blocks];
    bool changed = false;
    for (const Dependency& dependency : index.Dependencies(node)) {
      const size_t other = static_cast<size_t>(dependency.threadblock);
      if (other == own || clock[other] >= dependency.index) continue;
      changed = true;
      clock[other] = dependency.index;
      const int32_t on = index.NodeOf(rank, dependency);
      if (const int64_t stored = stored_[static_cast<size_t>(on - first_node_)]; stored >= 0)
        for (size_t i = 0; i < blocks; ++i)
          clock[i] = std::max(clock[i], pool_[static_cast<size_t>(stored) + i]);
    }
    if (changed) {
      latest[own] = static_cast<int64_t>(pool_.size());
      pool_.insert(pool_.end(), clock, clock + blocks);
    }
    stored_[static_cast<size_t>(node - first_node_)] = latest[own];
  }
}

bool RankClocks::Before(int32_t a, int32_t b) const {
  const int32_t block_a = index_.BlockOf(a);
  if (block_a == index_.BlockOf(b)) return a < b;
  const int64_t stored = stored_[static_cast<size_t>(b - first_node_)];
  return stored >= 0 && pool_[static_cast<size_t>(stored) + static_cast<size_t>(block_a - first_block_)] >=
                            a - index_.BlockFirst(block_a);
}

}  // namespace xccl
