// Reversing time turns the tree that copies a chunk down into a tree that sums the chunk up. If a rank
// receives a chunk in step s of T of the gather, it sends its sum on in step T-1-s of the result, not
// counting the odd steps that Reverse adds. By then it has received the sums of all ranks to which it passed
// the chunk in the gather.
#include "synth/common/reverse.h"

#include <unordered_map>
#include <utility>

#include "synth/common/bit_table.h"

namespace xccl {
namespace {

BitTable Contributions(const Topology& topology, const Collective& collective) {
  BitTable own(topology.num_ranks(), collective.num_chunks());
  std::vector<Holding> before;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    collective.Before(ChunkId(c), before);
    for (const Holding& have : before) own.Set(have.rank.value, c);
  }
  return own;
}

}  // namespace

PathTable Backwards(const PathTable& paths) {
  PathTable backwards;
  std::vector<LinkId> links;
  for (int32_t p = 0; p < paths.size(); ++p) {
    const std::span<const LinkId> forwards = paths[PathId(p)];
    links.assign(forwards.rbegin(), forwards.rend());
    backwards.Intern(links);
  }
  return backwards;
}

Topology ReverseTopology(const Topology& topology) {
  TopologySpec spec = topology.spec();
  for (Link& link : spec.links) std::swap(link.from, link.to);
  StatusOr<Topology> turned = Topology::Create(std::move(spec));
  XCCL_CHECK(turned.ok());
  return std::move(turned).value();
}

Schedule KeepTrees(const Schedule& schedule, const CopyGoal& goal, int32_t ranks) {
  const int32_t chunks = schedule.num_chunks;
  BitTable held(ranks, chunks), needed(ranks, chunks);
  for (int32_t c = 0; c < chunks; ++c) {
    held.Set(goal.owner[c].value, c);
    if (!goal.target.empty()) {
      needed.Set(goal.target[c].value, c);
    } else {
      for (Rank r : goal.members) needed.Set(r.value, c);
    }
  }
  // Forwards: splits transfers into single chunks and keeps the first arrivals.
  std::vector<Transfer> arrivals;
  arrivals.reserve(static_cast<size_t>(schedule.size()));
  for (int64_t t = 0; t < schedule.size(); ++t) {
    Transfer transfer = schedule.at(t);
    const int32_t end = transfer.first.value + transfer.count;
    transfer.count = 1;
    for (int32_t c = transfer.first.value; c < end; ++c) {
      if (held.Get(transfer.dst.value, c)) continue;
      held.Set(transfer.dst.value, c);
      transfer.first = ChunkId(c);
      arrivals.push_back(transfer);
    }
  }
  // Backwards: sets the count of transfers that no rank needs to zero.
  for (size_t t = arrivals.size(); t-- > 0;) {
    Transfer& transfer = arrivals[t];
    if (needed.Get(transfer.dst.value, transfer.first.value)) {
      needed.Set(transfer.src.value, transfer.first.value);
    } else {
      transfer.count = 0;
    }
  }
  Schedule kept;
  kept.num_chunks = schedule.num_chunks;
  kept.symmetry = schedule.symmetry;
  kept.paths = schedule.paths;
  kept.Reserve(static_cast<int64_t>(arrivals.size()));
  for (const Transfer& transfer : arrivals)
    if (transfer.count > 0) kept.Add(transfer);
  Normalize(kept);
  return kept;
}

Schedule Reverse(const Schedule& gather, const Topology& topology, const Collective& collective,
                 TransferOp op) {
  const int32_t last_step = gather.num_steps() - 1;
  Schedule backwards;
  backwards.num_chunks = gather.num_chunks;
  backwards.symmetry = gather.symmetry;
  backwards.Reserve(gather.size());
  backwards.paths = Backwards(gather.paths);
  const bool is_custom = collective.kind() == CollectiveKind::kCustom;
  BitTable own;  // for a user-defined collective: the chunks to which each rank contributes
  if (is_custom && op == TransferOp::kReduce) own = Contributions(topology, collective);
  // By rank and chunk, for ranks that contribute nothing: the step of the first arrival, which is a copy.
  // Later arrivals are added.
  std::unordered_map<int64_t, int32_t> copied;
  for (int64_t t = gather.size() - 1; t >= 0; --t) {
    Transfer transfer = gather.at(t);
    std::swap(transfer.src, transfer.dst);
    if (!IsChain(topology, backwards.paths[transfer.path])) {
      std::vector<Rank> tails, heads;
      PathEnds(topology, backwards.paths[transfer.path], tails, heads);
      transfer.src = tails[0];
      transfer.dst = heads[0];
    }
    transfer.op = op;
    // Steps are doubled. If a sum would arrive in the step of the first copy, the sum moves to the odd step
    // after.
    transfer.step = 2 * (last_step - transfer.step);
    if (op == TransferOp::kCopy || (!is_custom && collective.MemberIndex(transfer.dst))) {
      backwards.Add(transfer);
      continue;
    }
    const int32_t end = transfer.first.value + transfer.count, even_step = transfer.step;
    transfer.count = 1;
    for (int32_t c = transfer.first.value; c < end; ++c) {
      transfer.first = ChunkId(c);
      transfer.op = TransferOp::kReduce;
      transfer.step = even_step;
      if (!is_custom || !own.Get(transfer.dst.value, c)) {
        const auto [at, is_first] = copied.try_emplace(int64_t{transfer.dst.value} << 32 | c, even_step);
        if (is_first) transfer.op = TransferOp::kCopy;
        if (!is_first && at->second == even_step) ++transfer.step;
      }
      backwards.Add(transfer);
    }
  }
  Normalize(backwards);
  return backwards;
}

}  // namespace xccl
