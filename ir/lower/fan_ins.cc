// Follows one chunk at a time through the steps. Every rank's value of the chunk is described by its lowest
// contributor and the number of its contributions.
#include "ir/lower/fan_ins.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "ir/analysis/chunk_index.h"

namespace xccl::lowering {
namespace {

// The sum of some ranks' contributions to the chunk that is followed.
struct Value {
  int32_t lowest = std::numeric_limits<int32_t>::max();
  int32_t contributions = 0;

  void Add(const Value& other) {
    lowest = std::min(lowest, other.lowest);
    contributions += other.contributions;
  }
};

// The value that one transfer brings to the end of one branch of its path.
struct Write {
  Rank to;
  Value value;
  int32_t transfer = 0;
  bool over_chain = true;
  bool reduces = false;
};

class Finder {
 public:
  Finder(const Schedule& schedule, const Collective& collective, const Topology& topology, bool everywhere)
      : s_(schedule),
        collective_(collective),
        everywhere_(everywhere),
        values_(topology.num_ranks(), Value()),
        sources_(schedule.paths.size()),
        destinations_(schedule.paths.size()) {
    for (int32_t p = 0; p < schedule.paths.size(); ++p)
      PathEnds(topology, schedule.paths[PathId(p)], sources_[p], destinations_[p]);
    first_unit_.reserve(static_cast<size_t>(schedule.size()) + 1);
    int64_t units = 0;
    for (int64_t t = 0; t < schedule.size(); ++t) {
      first_unit_.push_back(units);
      units += schedule.count[t];
    }
    first_unit_.push_back(units);
  }

  FanIns Find() {
    ForEachMovedChunk(s_,
                      [&](ChunkId chunk, std::span<const int32_t> transfers) { Follow(chunk, transfers); });
    return std::move(found_);
  }

 private:
  void Follow(ChunkId chunk, std::span<const int32_t> transfers) {
    if (transfers.empty()) return;  // the columns of a compressed schedule move few of the chunks
    collective_.Before(chunk, holdings_);
    for (const Holding& holding : holdings_) {
      touched_.push_back(holding.rank);
      Value& value = values_[holding.rank.index()];
      value.contributions = static_cast<int32_t>(holding.contributions.size());
      value.lowest = std::ranges::min(holding.contributions).value;
    }
    sums_ = 0;
    candidates_.clear();
    ForEachStep(s_, transfers, [&](std::span<const int32_t> same_step) { Step(same_step); });
    if (sums_ > 1 || everywhere_)
      for (const auto& [fan_in, writes] : candidates_) Keep(chunk, fan_in, writes);
    for (Rank r : touched_) values_[r.index()] = Value();
    touched_.clear();
  }

  void Step(std::span<const int32_t> transfers) {
    writes_.clear();
    for (int32_t t : transfers) {
      const size_t p = s_.path[t].index();
      Value value;
      for (Rank from : sources_[p]) value.Add(values_[from.index()]);
      const bool chain = sources_[p].size() == 1 && destinations_[p].size() == 1;
      for (Rank to : destinations_[p])
        writes_.push_back({to, value, t, chain, s_.op[t] == TransferOp::kReduce});
    }
    std::ranges::stable_sort(writes_, {}, [](const Write& w) { return std::pair(w.to, w.value.lowest); });
    for (size_t begin = 0; begin < writes_.size();) {
      size_t end = begin;
      while (end < writes_.size() && writes_[end].to == writes_[begin].to) ++end;
      Meet(std::span(writes_).subspan(begin, end - begin));
      begin = end;
    }
  }

  // Applies the writes of one step to the chunk at one rank. `writes` is sorted by the lowest contributors.
  void Meet(std::span<const Write> writes) {
    Value& held = values_[writes.front().to.index()];
    touched_.push_back(writes.front().to);
    const auto fits = [](const Write& write) { return write.reduces && write.over_chain; };
    if (writes.size() > 1 && std::ranges::all_of(writes, fits)) {
      FanIn fan_in{writes.front().to, {}, 0};
      for (const Write& write : writes) {
        fan_in.paths.push_back(s_.path[write.transfer]);
        fan_in.own += write.value.lowest < held.lowest ? 1 : 0;
      }
      candidates_.emplace_back(std::move(fan_in), std::vector<Write>(writes.begin(), writes.end()));
    }
    bool adds = false;
    for (const Write& write : writes) {
      if (!write.reduces) held = Value();
      adds = adds || write.reduces || !write.over_chain;
      held.Add(write.value);
    }
    // A user-defined collective does not say which sum is complete, so every addition may complete one.
    if (adds &&
        (collective_.kind() == CollectiveKind::kCustom || held.contributions == collective_.num_members()))
      ++sums_;
  }

  void Keep(ChunkId chunk, const FanIn& fan_in, std::span<const Write> writes) {
    const auto key = std::tuple(fan_in.root, fan_in.own, fan_in.paths);
    const auto [at, is_new] = numbers_.emplace(key, static_cast<int32_t>(found_.all.size()));
    if (is_new) found_.all.push_back(fan_in);
    if (found_.of_unit.empty()) found_.of_unit.assign(static_cast<size_t>(first_unit_.back()), kNoIndex);
    for (const Write& write : writes)
      found_.of_unit[static_cast<size_t>(first_unit_[write.transfer] + chunk.value -
                                         s_.first[write.transfer].value)] = at->second;
  }

  const Schedule& s_;
  const Collective& collective_;
  const bool everywhere_;
  std::vector<Value> values_;                              // by rank
  std::vector<std::vector<Rank>> sources_, destinations_;  // by path
  std::vector<int64_t> first_unit_;                        // by transfer
  FanIns found_;
  std::map<std::tuple<Rank, int32_t, std::vector<PathId>>, int32_t> numbers_;
  // State of the chunk that is followed:
  std::vector<Holding> holdings_;
  std::vector<Rank> touched_;
  std::vector<Write> writes_;
  std::vector<std::pair<FanIn, std::vector<Write>>> candidates_;
  int32_t sums_ = 0;  // how many ranks complete the chunk's sum
};

}  // namespace

FanIns FindFanIns(const Schedule& schedule, const Collective& collective, const Topology& topology,
                  bool everywhere) {
  const CollectiveKind kind = collective.kind();
  const bool several_sum = kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kBarrier ||
                           (kind == CollectiveKind::kCustom && collective.Reduces());
  if (everywhere ? !collective.Reduces() : !several_sum) return {};
  return Finder(schedule, collective, topology, everywhere).Find();
}

}  // namespace xccl::lowering
