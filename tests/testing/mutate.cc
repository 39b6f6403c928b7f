#include "tests/testing/mutate.h"

#include <algorithm>
#include <vector>

namespace xccl::testing {
namespace {

int64_t Pick(const Schedule& s, Random& random) {
  return static_cast<int64_t>(random.Below(static_cast<uint64_t>(s.size())));
}

// Replaces transfer t by `with` (none, one or more), in order of step.
void Replace(Schedule& s, int64_t t, const std::vector<Transfer>& with) {
  std::vector<Transfer> transfers;
  for (int64_t i = 0; i < s.size(); ++i) {
    if (i == t)
      transfers.insert(transfers.end(), with.begin(), with.end());
    else
      transfers.push_back(s.at(i));
  }
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Transfer& a, const Transfer& b) { return a.step < b.step; });
  Schedule changed;
  changed.num_chunks = s.num_chunks;
  changed.paths = s.paths;
  for (const Transfer& transfer : transfers) changed.Add(transfer);
  s = std::move(changed);
}

void Delete(Schedule& s, const Topology&, Random& random) { Replace(s, Pick(s, random), {}); }

void Duplicate(Schedule& s, const Topology&, Random& random) {
  const int64_t t = Pick(s, random);
  Replace(s, t, {s.at(t), s.at(t)});
}

void SwapChunks(Schedule& s, const Topology&, Random& random) {
  const int64_t a = Pick(s, random), b = Pick(s, random);
  std::swap(s.first[a], s.first[b]);
  std::swap(s.count[a], s.count[b]);
}

void SwapPlaces(Schedule& s, const Topology&, Random& random) {
  const int64_t a = Pick(s, random), b = Pick(s, random);
  std::swap(s.src[a], s.src[b]);
  std::swap(s.dst[a], s.dst[b]);
  std::swap(s.path[a], s.path[b]);
}

// Sends along the path of another transfer.
void Redirect(Schedule& s, const Topology&, Random& random) {
  const int64_t a = Pick(s, random), b = Pick(s, random);
  s.src[a] = s.src[b];
  s.dst[a] = s.dst[b];
  s.path[a] = s.path[b];
}

// Sends to another rank without changing the path.
void Retarget(Schedule& s, const Topology& topology, Random& random) {
  const int64_t t = Pick(s, random);
  s.dst[t] = Rank(static_cast<int64_t>(random.Below(static_cast<uint64_t>(topology.num_ranks()))));
}

void ChangeChunk(Schedule& s, const Topology&, Random& random) {
  const int64_t t = Pick(s, random);
  s.count[t] = 1;
  s.first[t] = ChunkId(static_cast<int64_t>(random.Below(static_cast<uint64_t>(s.num_chunks))));
}

void FlipOperation(Schedule& s, const Topology&, Random& random) {
  TransferOp& op = s.op[Pick(s, random)];
  op = op == TransferOp::kCopy ? TransferOp::kReduce : TransferOp::kCopy;
}

void ChangeStep(Schedule& s, const Topology&, Random& random) {
  const int64_t t = Pick(s, random);
  Transfer moved = s.at(t);
  moved.step = static_cast<int32_t>(random.Below(static_cast<uint64_t>(s.num_steps()) + 1));
  Replace(s, t, {moved});
}

// Replaces one link of the path by another link of the topology.
void ChangeLink(Schedule& s, const Topology& topology, Random& random) {
  const int64_t t = Pick(s, random);
  const std::span<const LinkId> path = s.paths[s.path[t]];
  std::vector<LinkId> links(path.begin(), path.end());
  links[random.Below(links.size())] =
      LinkId(static_cast<int64_t>(random.Below(static_cast<uint64_t>(topology.num_links()))));
  s.path[t] = s.paths.Intern(links);
}

constexpr Mutation kMutations[] = {
    {"delete", Delete},
    {"duplicate", Duplicate},
    {"swap chunks", SwapChunks},
    {"swap places", SwapPlaces},
    {"redirect", Redirect},
    {"retarget", Retarget},
    {"change chunk", ChangeChunk},
    {"flip operation", FlipOperation},
    {"change step", ChangeStep},
    {"change link", ChangeLink},
};

}  // namespace

std::span<const Mutation> AllMutations() { return kMutations; }

}  // namespace xccl::testing
