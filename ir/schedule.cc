// Columns, path interning by hash, and the normal form. All is linear in the transfers; the sort by step is
// a counting sort.
#include "ir/schedule.h"

#include <algorithm>
#include <numeric>

#include "base/graph/grouped.h"

namespace xccl {

// Returns the slot of the path with these links, or the free slot where the path would be stored.
size_t PathTable::SlotOf(std::span<const LinkId> links) const {
  uint64_t hash = 0xcbf29ce484222325ULL;
  // Every bit of every link moves the low bits of the slot; links of one machine often differ in few bits.
  for (LinkId l : links) {
    hash = (hash ^ static_cast<uint32_t>(l.value)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const std::span<const LinkId> known = (*this)[PathId(slots_[slot])];
    if (std::equal(known.begin(), known.end(), links.begin(), links.end())) break;
  }
  return slot;
}

void PathTable::Grow() {
  slots_.assign(std::max<size_t>(16, 2 * slots_.size()), -1);
  for (int32_t p = 0; p < size(); ++p) slots_[SlotOf((*this)[PathId(p)])] = p;
}

PathId PathTable::Intern(std::span<const LinkId> links) {
  if (2 * static_cast<size_t>(size() + 1) > slots_.size()) Grow();
  int32_t& path = slots_[SlotOf(links)];
  if (path >= 0) return PathId(path);
  path = size();
  links_.insert(links_.end(), links.begin(), links.end());
  first_.push_back(static_cast<int32_t>(links_.size()));
  return PathId(path);
}

void Schedule::Reserve(int64_t transfers) {
  first.reserve(transfers);
  count.reserve(transfers);
  src.reserve(transfers);
  dst.reserve(transfers);
  path.reserve(transfers);
  op.reserve(transfers);
  step.reserve(transfers);
}

void Schedule::Add(const Transfer& transfer) {
  first.push_back(transfer.first);
  count.push_back(transfer.count);
  src.push_back(transfer.src);
  dst.push_back(transfer.dst);
  path.push_back(transfer.path);
  op.push_back(transfer.op);
  step.push_back(transfer.step);
}

void Schedule::Add(ChunkId first_chunk, int32_t chunks, Rank from, Rank to, std::span<const LinkId> links,
                   TransferOp operation, int32_t at_step) {
  Add(Transfer{first_chunk, chunks, from, to, paths.Intern(links), operation, at_step});
}

int64_t Schedule::moved_chunks() const {
  int64_t end = 0;
  for (int64_t t = 0; t < size(); ++t) end = std::max(end, int64_t{first[t].value} + count[t]);
  return end;
}

int32_t Schedule::num_steps() const {
  int32_t last = -1;
  for (int32_t s : step) last = std::max(last, s);
  return last + 1;
}

int64_t Schedule::num_moves() const { return std::accumulate(count.begin(), count.end(), int64_t{0}); }

int64_t MostTransfersOn(const Topology& topology) {
  return topology.num_ranks() < kLargeMachine ? kMostTransfers : kFewTransfers;
}

void Normalize(Schedule& schedule) {
  const int64_t n = schedule.size();
  // Steps are numbered densely, then counting sort orders the transfers: stable and linear.
  std::vector<int32_t> dense(static_cast<size_t>(schedule.num_steps()), 0);
  for (int32_t s : schedule.step) dense[s] = 1;
  int32_t steps = 0;
  for (int32_t& s : dense) s = s != 0 ? steps++ : 0;
  const auto by_step = GroupItems<int64_t, int64_t>(static_cast<size_t>(steps), [&](auto add) {
    for (int64_t t = 0; t < n; ++t) add(dense[schedule.step[t]], t);
  });

  Schedule sorted;
  sorted.num_chunks = schedule.num_chunks;
  sorted.symmetry = std::move(schedule.symmetry);
  sorted.missing = std::move(schedule.missing);
  sorted.detours = std::move(schedule.detours);
  sorted.ways = std::move(schedule.ways);
  sorted.Reserve(n);
  std::vector<int32_t> path_of(static_cast<size_t>(schedule.paths.size()), -1);
  for (int64_t t : by_step.items) {
    Transfer transfer = schedule.at(t);
    transfer.step = dense[transfer.step];
    int32_t& path = path_of[transfer.path.index()];
    if (path < 0) path = sorted.paths.Intern(schedule.paths[transfer.path]).value;
    transfer.path = PathId(path);
    const int64_t last = sorted.size() - 1;
    if (last >= 0 && sorted.src[last] == transfer.src && sorted.dst[last] == transfer.dst &&
        sorted.path[last] == transfer.path && sorted.step[last] == transfer.step &&
        sorted.op[last] == transfer.op &&
        sorted.first[last].value + sorted.count[last] == transfer.first.value) {
      sorted.count[last] += transfer.count;
    } else {
      sorted.Add(transfer);
    }
  }
  schedule = std::move(sorted);
}

bool IsChain(const Topology& topology, std::span<const LinkId> path) {
  for (size_t i = 1; i < path.size(); ++i)
    if (topology.link(path[i]).from != topology.link(path[i - 1]).to) return false;
  return !path.empty();
}

void PathEnds(const Topology& topology, std::span<const LinkId> path, std::vector<Rank>& sources,
              std::vector<Rank>& destinations) {
  sources.clear();
  destinations.clear();
  const auto add = [](std::vector<Rank>& ranks, std::optional<Rank> rank) {
    if (rank && std::find(ranks.begin(), ranks.end(), *rank) == ranks.end()) ranks.push_back(*rank);
  };
  for (LinkId l : path) {
    add(sources, topology.RankOf(topology.link(l).from));
    add(destinations, topology.RankOf(topology.link(l).to));
  }
}

}  // namespace xccl
