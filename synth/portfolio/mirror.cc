#include "synth/portfolio/mirror.h"

#include <utility>
#include <vector>

#include "ir/verify/verify_schedule.h"
#include "synth/common/justify.h"
#include "synth/common/reverse.h"

namespace xccl {
namespace {

std::optional<CollectiveKind> MirrorOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kBroadcast:
      return CollectiveKind::kReduce;
    case CollectiveKind::kReduce:
      return CollectiveKind::kBroadcast;
    case CollectiveKind::kAllgather:
      return CollectiveKind::kReduceScatter;
    case CollectiveKind::kReduceScatter:
      return CollectiveKind::kAllgather;
    case CollectiveKind::kAllgatherv:
      return CollectiveKind::kReduceScatterv;
    case CollectiveKind::kReduceScatterv:
      return CollectiveKind::kAllgatherv;
    case CollectiveKind::kGather:
      return CollectiveKind::kScatter;
    case CollectiveKind::kScatter:
      return CollectiveKind::kGather;
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kCustom:
      return std::nullopt;
  }
  return std::nullopt;
}

// Returns true if every transfer goes from one rank to one other rank.
bool GoesByChains(const Schedule& schedule, const Topology& topology) {
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    if (!IsChain(topology, schedule.paths[PathId(p)])) return false;
  return true;
}

// Returns `collective` cut into the chunks of `other`. Requires: both have equally many parts.
Collective InChunksOf(const Collective& other, const Collective& collective) {
  std::vector<std::vector<int64_t>> weights(static_cast<size_t>(other.num_parts()));
  for (int32_t c = 0; c < other.num_chunks(); ++c)
    weights[other.PartOf(ChunkId(c)).index()].push_back(other.Weight(ChunkId(c)));
  return collective.WithWeights(weights);
}

}  // namespace

std::optional<Collective> MirrorOf(const Collective& collective) {
  const std::optional<CollectiveKind> kind = MirrorOf(collective.kind());
  if (!kind) return std::nullopt;
  CollectiveSpec spec = collective.spec();
  spec.kind = *kind;
  StatusOr<Collective> mirror = Collective::Create(std::move(spec));
  if (!mirror.ok()) return std::nullopt;
  return InChunksOf(collective, *mirror);
}

std::optional<Synthesis> Mirrored(const Synthesis& image, const Topology& reversed, const Topology& topology,
                                  const Collective& collective, int64_t size_bytes) {
  if (!GoesByChains(image.schedule, reversed)) return std::nullopt;
  Synthesis made{.collective = InChunksOf(image.collective, collective),
                 .schedule = {},
                 .exact = false,
                 .engine = image.engine,
                 .note = image.note};
  const std::optional<Schedule> in_order =
      InOrderOfArrival(image.schedule, image.collective, reversed, size_bytes);
  made.schedule = Reverse(in_order ? *in_order : image.schedule, topology, made.collective,
                          made.collective.Reduces() ? TransferOp::kReduce : TransferOp::kCopy);
  if (!VerifySchedule(made.schedule, made.collective, topology).empty()) return std::nullopt;
  return made;
}

}  // namespace xccl
