// Plays every chunk with hashes in place of numbers. A contribution is the hash of its rank. A sum is a hash
// of the set of its operands, so that (a + b) + c and a + (b + c) have different hashes. The set suffices,
// because everything that one step adds to one value is one sum, whose order depends on its operands alone.
// Two ranks with equal hashes hold the same expression, up to a 64-bit collision. Linear in transfers ×
// chunks each moves.
#include "ir/analysis/bitwise_same.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "ir/analysis/chunk_index.h"
#include "ir/damaged.h"

namespace xccl {
namespace {

uint64_t Sum(uint64_t a, uint64_t b) { return Mix(Mix(a) + Mix(b)); }

struct Ends {
  std::vector<Rank> sources, destinations;
};

class Expressions {
 public:
  Expressions(const Schedule& schedule, const Collective& collective, const Topology& topology)
      : s_(schedule),
        collective_(collective),
        ends_(schedule.paths.size()),
        hash_(topology.num_ranks(), 0),
        operands_(topology.num_ranks(), 0) {
    for (int32_t p = 0; p < schedule.paths.size(); ++p)
      PathEnds(topology, schedule.paths[PathId(p)], ends_[p].sources, ends_[p].destinations);
  }

  // Returns whether all ranks that end with a sum of this chunk have the same hash.
  bool Same(ChunkId chunk, std::span<const int32_t> transfers) {
    collective_.Before(chunk, conditions_);
    for (const Holding& holding : conditions_) {
      uint64_t hash = Mix(static_cast<uint64_t>(holding.contributions[0].value));
      for (Rank r : holding.contributions.subspan(1)) hash = Sum(hash, Mix(static_cast<uint64_t>(r.value)));
      hash_[holding.rank.index()] = hash;
    }
    ForEachStep(s_, transfers, [&](std::span<const int32_t> same_step) { Step(same_step); });
    collective_.After(chunk, conditions_);
    sums_.clear();
    for (const Holding& holding : conditions_) {
      if (holding.contributions.size() < 2) continue;
      const uint64_t hash = hash_[holding.rank.index()];
      if (HashOfSum(holding.contributions, hash) != hash) return false;
    }
    return true;
  }

 private:
  // Returns the hash of the first rank that ends with the sum of these contributions, which is `hash` if none
  // did before. Ranks of a user-defined collective may end with different sums of a chunk.
  uint64_t HashOfSum(std::span<const Rank> contributions, uint64_t hash) {
    for (const auto& [known, first] : sums_)
      if ((known.data() == contributions.data() && known.size() == contributions.size()) ||
          std::ranges::equal(known, contributions))
        return first;
    sums_.emplace_back(contributions, hash);
    return hash;
  }

  void Step(std::span<const int32_t> transfers) {
    values_.clear();
    for (int32_t t : transfers) values_.push_back(Carried(t));
    added_.clear();
    for (size_t i = 0; i < transfers.size(); ++i) {
      const int32_t t = transfers[i];
      for (Rank to : ends_[s_.path[t].index()].destinations) {
        uint64_t& held = hash_[to.index()];
        if (s_.op[t] == TransferOp::kCopy) {
          held = values_[i];
          continue;
        }
        uint64_t& operands = operands_[to.index()];
        if (operands == 0) {
          operands = Mix(held);
          added_.push_back(to);
        }
        operands += Mix(values_[i]);
      }
    }
    for (Rank to : added_) hash_[to.index()] = Mix(std::exchange(operands_[to.index()], 0));
  }
  uint64_t Carried(int32_t t) const {
    const std::vector<Rank>& sources = ends_[s_.path[t].index()].sources;
    if (sources.size() == 1) return hash_[sources[0].index()];
    uint64_t sum = 0;
    for (Rank from : sources) sum += Mix(hash_[from.index()]);
    return Mix(sum ^ Mix(static_cast<uint64_t>(t)));
  }

  const Schedule& s_;
  const Collective& collective_;
  std::vector<Ends> ends_;      // by path
  std::vector<uint64_t> hash_;  // by rank; never read where a rank holds nothing
  std::vector<uint64_t> values_;
  std::vector<uint64_t> operands_;  // by rank: the sum of the hashes of all that this step adds there
  std::vector<Rank> added_;         // the ranks where this step adds
  std::vector<Holding> conditions_;
  std::vector<std::pair<std::span<const Rank>, uint64_t>> sums_;  // of the chunk: its contributions, its hash
};

}  // namespace

bool IsBitwiseSame(const Schedule& schedule, const Collective& collective, const Topology& topology) {
  const bool one_gets_each_sum = IsReduction(collective.kind()) && !EndsAlike(collective.kind());
  if (!collective.Reduces() || one_gets_each_sum) return true;
  const SymmetricMachine whole(schedule, collective, topology);
  Expressions expressions(schedule, whole.collective(), *whole);
  bool same = true;
  // All translates of a chunk give the same answer, so only chunks that the columns move are played.
  const bool compressed = !schedule.symmetry.empty();
  ForEachMovedChunk(schedule, [&](ChunkId chunk, std::span<const int32_t> transfers) {
    same = same && ((compressed && transfers.empty()) || expressions.Same(chunk, transfers));
  });
  return same;
}

}  // namespace xccl
