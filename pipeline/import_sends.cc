// A printed send names a source, a destination and a chunk, but no step.
// 1. Find the sends that each send waits for. One is the send that brings the chunk to the source, unless the
//    chunk begins there. If the file lists the sends of a link in order, the other is the send before it on
//    the same link.
// 2. Give each send the step after the latest step of the sends that it waits for. The first step is 0.
// 3. Copy the sends in the order of their steps to an allgather's schedule, on the machine's links.
// 4. For a reduce_scatter, do step 3 on the machine with all links reversed, and reverse the schedule. An
//    allreduce is this reduce_scatter followed by the allgather.
#include "pipeline/import_sends.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "pipeline/own_schedule.h"
#include "synth/common/compose.h"
#include "synth/common/rank_graph.h"
#include "synth/common/reverse.h"

namespace xccl {
namespace {

// The largest common weight of all ranks. Sums of weights and weight × size then fit into 64 bits.
constexpr int64_t kMaxCommon = int64_t{1} << 30;

// Returns the collective with the chunks of the file. An allreduce has one part, of which every rank has an
// equal share. The weights of each rank's chunks are therefore scaled to the same sum.
StatusOr<Collective> CollectiveOf(const PrintedSends& printed, std::string_view file,
                                  const Topology& topology, CollectiveKind kind) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  XCCL_ASSIGN_OR_RETURN(const Collective whole, Collective::Create(std::move(spec)));
  if (!IsAllreduce(kind)) return whole.WithWeights(printed.weights);
  int64_t common = 1;
  for (const auto& weights : printed.weights) {
    const int64_t sum = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    if (__builtin_mul_overflow(common / std::gcd(common, sum), sum, &common) || common > kMaxCommon)
      return InvalidInput(fmt::format("{}: the ranks' chunks have no common size", file));
  }
  std::vector<int64_t> all;
  for (const auto& weights : printed.weights) {
    const int64_t sum = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    for (const int64_t weight : weights) all.push_back(weight * (common / sum));
  }
  return whole.WithWeights({all});
}

// Finds the step of every send. A send comes after the send that brings its chunk. If links keep the file's
// order, it also comes after all earlier sends of its link.
class Steps {
 public:
  Steps(const PrintedSends& printed, int32_t chunks) : printed_(printed) {
    owner_.reserve(static_cast<size_t>(chunks));
    for (size_t rank = 0; rank < printed.weights.size(); ++rank)
      owner_.insert(owner_.end(), printed.weights[rank].size(), Rank(static_cast<int32_t>(rank)));
    for (size_t i = 0; i < printed.sends.size(); ++i)
      bringing_.try_emplace({printed.sends[i].dst, printed.sends[i].chunk}, i);
  }

  // Errors: kInvalidInput with the line of a send whose chunk never reaches its sender.
  StatusOr<std::vector<int32_t>> Find(std::string_view file) {
    const size_t sends = printed_.sends.size();
    std::vector<std::vector<size_t>> after(sends);
    std::vector<int32_t> waits(sends, 0), step(sends, 0);
    const auto follow = [&](size_t first, size_t next) {
      after[first].push_back(next);
      ++waits[next];
    };
    std::map<std::pair<Rank, Rank>, size_t> last_of_link;
    for (size_t i = 0; i < sends; ++i) {
      const PrintedSend& send = printed_.sends[i];
      if (send.src != owner_[send.chunk.index()]) {
        const auto brings = bringing_.find({send.src, send.chunk});
        if (brings == bringing_.end()) return NeverThere(file, send);
        follow(brings->second, i);
      }
      if (!printed_.links_in_order) continue;
      const auto [last, first_of_link] = last_of_link.try_emplace({send.src, send.dst}, i);
      if (!first_of_link) follow(std::exchange(last->second, i), i);
    }
    std::vector<size_t> ready;
    for (size_t i = 0; i < sends; ++i)
      if (waits[i] == 0) ready.push_back(i);
    for (size_t at = 0; at < ready.size(); ++at)
      for (const size_t next : after[ready[at]]) {
        step[next] = std::max(step[next], step[ready[at]] + 1);
        if (--waits[next] == 0) ready.push_back(next);
      }
    if (ready.size() == sends) return step;
    const auto stuck = std::ranges::find_if(waits, [](int32_t count) { return count > 0; });
    return NeverThere(file, printed_.sends[static_cast<size_t>(stuck - waits.begin())]);
  }

 private:
  Status NeverThere(std::string_view file, const PrintedSend& send) const {
    const Rank owner = owner_[send.chunk.index()];
    return InvalidInput(fmt::format("{}:{}: rank {} sends rank {} a chunk of rank {}, which never reaches it",
                                    file, send.line, send.src.value, send.dst.value, owner.value));
  }

  const PrintedSends& printed_;
  std::vector<Rank> owner_;  // by chunk
  std::map<std::pair<Rank, ChunkId>, size_t> bringing_;
};

// Returns a schedule that copies each chunk of the sends over the paths of `graph`. Errors: kInvalidInput
// with the send's line if no path joins its two ranks.
StatusOr<Schedule> CopiesOf(const PrintedSends& printed, std::string_view file, const RankGraph& graph,
                            const Collective& collective, const std::vector<int32_t>& steps, bool backwards) {
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  schedule.Reserve(static_cast<int64_t>(printed.sends.size()));
  HopLoads loads(graph);
  std::vector<size_t> order(printed.sends.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return steps[a] < steps[b]; });
  for (const size_t i : order) {
    const PrintedSend& send = printed.sends[i];
    const std::optional<HopId> best = graph.Find(send.src, send.dst);
    if (!best)
      return InvalidInput(fmt::format("{}:{}: rank {} sends to rank {}; no link of topology {} leads {}",
                                      file, send.line, send.src.value, send.dst.value,
                                      graph.topology().name(), backwards ? "back, for the sums" : "there"));
    const double weight = static_cast<double>(collective.Weight(send.chunk)) /
                          static_cast<double>(collective.PartWeight(collective.PartOf(send.chunk)));
    const HopId taken = loads.Take(graph, *best, weight);
    schedule.Add(send.chunk, 1, send.src, send.dst, graph.Links(taken), TransferOp::kCopy, steps[i]);
  }
  Normalize(schedule);
  return schedule;
}

StatusOr<Schedule> ScheduleOf(const PrintedSends& printed, std::string_view file, const Topology& topology,
                              const Collective& collective) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> steps, Steps(printed, collective.num_chunks()).Find(file));
  Schedule sums;
  if (collective.Reduces()) {
    const Topology reversed = ReverseTopology(topology);
    XCCL_ASSIGN_OR_RETURN(const Schedule gather,
                          CopiesOf(printed, file, RankGraph(reversed), collective, steps, true));
    sums = Reverse(gather, topology, collective, TransferOp::kReduce);
    if (!EndsAlike(collective.kind())) return sums;
  }
  XCCL_ASSIGN_OR_RETURN(Schedule spread,
                        CopiesOf(printed, file, RankGraph(topology), collective, steps, false));
  return collective.Reduces() ? Compose(sums, spread) : std::move(spread);
}

}  // namespace

StatusOr<PlanResult> ImportSends(const PrintedSends& printed, std::string_view file, const Topology& topology,
                                 CollectiveKind kind, const PlanOptions& options) {
  if (kind != CollectiveKind::kAllgather && kind != CollectiveKind::kReduceScatter &&
      kind != CollectiveKind::kAllreduce)
    return InvalidInput(
        fmt::format("{}: no {} can be made of an allgather's sends; expected allgather, "
                    "reduce_scatter or allreduce",
                    file, ToString(kind)));
  if (printed.ranks != topology.num_ranks())
    return InvalidInput(fmt::format("{}: {} ranks; topology {} has {}", file, printed.ranks, topology.name(),
                                    topology.num_ranks()));
  XCCL_ASSIGN_OR_RETURN(Collective collective, CollectiveOf(printed, file, topology, kind));
  XCCL_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOf(printed, file, topology, collective));
  StatusOr<PlanResult> result =
      PlanOfSchedule(topology, std::move(collective), std::move(schedule), printed.tool, options);
  if (!result.ok()) return Annotate(result.status(), file);
  return result;
}

}  // namespace xccl
