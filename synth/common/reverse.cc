// Reversing time turns every chunk's out-tree into an in-tree. A rank passes on in step T-1-s what it was
// given in step s, after everything that it had passed on later has come back to it.
#include "synth/common/reverse.h"

#include <algorithm>

namespace xccl {
namespace {

// ranks × chunks bits.
class Bits {
 public:
  Bits(int64_t rows, int64_t columns)
      : columns_(columns), bits_(static_cast<size_t>(rows * columns), false) {}
  bool Get(Rank r, int64_t c) const { return bits_[static_cast<size_t>(r.value * columns_ + c)]; }
  void Set(Rank r, int64_t c) { bits_[static_cast<size_t>(r.value * columns_ + c)] = true; }

 private:
  int64_t columns_;
  std::vector<bool> bits_;
};

void SetAll(const Collective& collective, bool before, Bits& bits) {
  std::vector<Holding> holdings;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    before ? collective.Before(ChunkId(c), holdings) : collective.After(ChunkId(c), holdings);
    for (const Holding& holding : holdings) bits.Set(holding.rank, c);
  }
}

int32_t NumRanks(const Schedule& schedule, std::span<const Rank> members) {
  int32_t last = 0;
  for (Rank r : members) last = std::max(last, r.value);
  for (Rank r : schedule.src) last = std::max(last, r.value);
  for (Rank r : schedule.dst) last = std::max(last, r.value);
  return last + 1;
}

Schedule Keep(const Schedule& schedule, Bits held, Bits needed) {
  // Forwards: finds which single (transfer, chunk) is a first arrival.
  Schedule single;
  single.num_chunks = schedule.num_chunks;
  single.symmetry = schedule.symmetry;
  single.paths = schedule.paths;
  single.Reserve(schedule.size());
  for (int64_t t = 0; t < schedule.size(); ++t) {
    Transfer transfer = schedule.at(t);
    const int32_t end = transfer.first.value + transfer.count;
    transfer.count = 1;
    for (int32_t c = transfer.first.value; c < end; ++c) {
      if (held.Get(transfer.dst, c)) continue;
      held.Set(transfer.dst, c);
      transfer.first = ChunkId(c);
      single.Add(transfer);
    }
  }
  // Backwards: finds which of them any rank needs.
  std::vector<bool> keep(static_cast<size_t>(single.size()), false);
  for (int64_t t = single.size() - 1; t >= 0; --t) {
    const Transfer transfer = single.at(t);
    if (!needed.Get(transfer.dst, transfer.first.value)) continue;
    needed.Set(transfer.src, transfer.first.value);
    keep[static_cast<size_t>(t)] = true;
  }
  Schedule kept;
  kept.num_chunks = schedule.num_chunks;
  kept.symmetry = schedule.symmetry;
  kept.paths = schedule.paths;
  kept.Reserve(single.size());
  for (int64_t t = 0; t < single.size(); ++t)
    if (keep[static_cast<size_t>(t)]) kept.Add(single.at(t));
  Normalize(kept);
  return kept;
}

}  // namespace

Topology ReverseTopology(const Topology& topology) {
  TopologySpec spec = topology.spec();
  for (Link& link : spec.links) std::swap(link.from, link.to);
  StatusOr<Topology> turned = Topology::Create(std::move(spec));
  XCCL_CHECK(turned.ok());
  return std::move(turned).value();
}

Schedule KeepTrees(const Schedule& schedule, const Collective& collective) {
  const int32_t ranks = NumRanks(schedule, collective.ranks());
  Bits held(ranks, collective.num_chunks()), needed(ranks, collective.num_chunks());
  SetAll(collective, true, held);
  SetAll(collective, false, needed);
  return Keep(schedule, std::move(held), std::move(needed));
}

Schedule KeepTrees(const Schedule& schedule, const CopyGoal& goal) {
  const int32_t ranks = NumRanks(schedule, goal.members), chunks = schedule.num_chunks;
  Bits held(ranks, chunks), needed(ranks, chunks);
  for (int32_t c = 0; c < chunks; ++c) {
    held.Set(goal.owner[c], c);
    if (!goal.target.empty()) {
      needed.Set(goal.target[c], c);
    } else {
      for (Rank r : goal.members) needed.Set(r, c);
    }
  }
  return Keep(schedule, std::move(held), std::move(needed));
}

Schedule Reverse(const Schedule& gather, const Topology& topology, const Collective& collective,
                 TransferOp op) {
  const int32_t last_step = gather.num_steps() - 1;
  Schedule backwards;
  backwards.num_chunks = gather.num_chunks;
  backwards.symmetry = gather.symmetry;
  backwards.Reserve(gather.size());
  std::vector<int32_t> path_of(static_cast<size_t>(gather.paths.size()), -1);
  std::vector<LinkId> links;
  for (int64_t t = gather.size() - 1; t >= 0; --t) {
    Transfer transfer = gather.at(t);
    int32_t& path = path_of[transfer.path.index()];
    if (path < 0) {
      const std::span<const LinkId> forwards = gather.paths[transfer.path];
      links.assign(forwards.rbegin(), forwards.rend());
      path = backwards.paths.Intern(links).value;
    }
    transfer.path = PathId(path);
    std::swap(transfer.src, transfer.dst);
    if (!IsChain(topology, backwards.paths[transfer.path])) {
      std::vector<Rank> tails, heads;
      PathEnds(topology, backwards.paths[transfer.path], tails, heads);
      transfer.src = tails[0];
      transfer.dst = heads[0];
    }
    transfer.op = op;
    // Odd steps hold what arrives second at a relay that holds nothing.
    transfer.step = 2 * (last_step - transfer.step);
    const bool empty_relay = op == TransferOp::kReduce && !collective.MemberIndex(transfer.dst);
    if (!empty_relay) {
      backwards.Add(transfer);
      continue;
    }
    const int32_t end = transfer.first.value + transfer.count;
    transfer.count = 1;
    for (int32_t c = transfer.first.value; c < end; ++c) {
      transfer.first = ChunkId(c);
      backwards.Add(transfer);
    }
  }
  // Transfers come in order of step: the first into an empty relay is a copy, the later ones are sums.
  if (op == TransferOp::kReduce) {
    std::vector<int64_t> into_relays;
    for (int64_t t = 0; t < backwards.size(); ++t)
      if (!collective.MemberIndex(backwards.dst[t])) into_relays.push_back(t);
    const auto cell = [&](int64_t t) {
      return int64_t{backwards.dst[t].value} * backwards.num_chunks + backwards.first[t].value;
    };
    std::stable_sort(into_relays.begin(), into_relays.end(),
                     [&](int64_t a, int64_t b) { return cell(a) < cell(b); });
    for (size_t i = 0; i < into_relays.size(); ++i) {
      const int64_t t = into_relays[i];
      if (i == 0 || cell(into_relays[i - 1]) != cell(t)) {
        backwards.op[t] = TransferOp::kCopy;
      } else {
        ++backwards.step[t];
      }
    }
  }
  Normalize(backwards);
  return backwards;
}

}  // namespace xccl
