#include "runtime/experts/wires.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/rails.h"
#include "runtime/transport/call_signature.h"

namespace xccl::dispatch {
namespace {

ConnectionKey KeyOf(const Hop& hop, int32_t stages, int32_t lanes, Call call) {
  const int32_t channel = hop.lane * stages + hop.stage;
  if (call == Call::kDispatch) return {hop.from, hop.to, channel};
  return {hop.to, hop.from, lanes * stages + channel};
}

constexpr int64_t kLine = 64;
constexpr int64_t kLeastOfRow = 16;  // rows are cut at multiples of it

// A connection's large messages: one is written, one is on its way, one is read, one's slot is given back.
constexpr int64_t kSlots = 4;

// Bytes of a slot for so many bytes of rows with their headers.
int64_t SlotOf(int64_t rows) { return kMessageHead + (rows + kLine - 1) / kLine * kLine; }

}  // namespace

StatusOr<ExpertWires> WireExperts(const ExpertPlan& plan, const WireOptions& options) {
  for (size_t depth = 1; depth < plan.stage_of_depth.size(); ++depth)
    if (plan.stage_of_depth[depth] <= plan.stage_of_depth[depth - 1])
      return InvalidInput("stages: expected them to rise with the depth of the sender");
  ExpertWires wires{
      .plan = &plan, .index = HopIndex(plan), .wiring = {}, .there = {}, .back = {}, .lend = options.lend};
  Wiring& wiring = wires.wiring;
  wiring.ranks = plan.sizes.ranks;
  const int32_t stages = plan.stage_of_depth.empty() ? 1 : plan.stage_of_depth.back() + 1;
  int64_t slots = 1;
  const RailFinder rails(plan.topology);
  std::vector<std::pair<ConnectionKey, Rails>> made;
  for (const Hop& hop : plan.hops) {
    slots = std::max<int64_t>(slots, hop.slots);
    for (const Call call : {Call::kDispatch, Call::kCombine}) {
      const ConnectionKey key = KeyOf(hop, stages, plan.lanes, call);
      const std::vector<LinkId>& path = call == Call::kDispatch ? hop.links : hop.back;
      made.emplace_back(key, rails.Of(key.src, key.dst, path));
    }
  }
  std::ranges::sort(made, {}, [](const auto& one) { return one.first; });
  for (const auto& [key, of_key] : made) {
    wiring.connections.push_back(key);
    wiring.rails.push_back(of_key);
  }
  for (const Hop& hop : plan.hops) {
    wires.there.push_back(*wiring.Find(KeyOf(hop, stages, plan.lanes, Call::kDispatch)));
    wires.back.push_back(*wiring.Find(KeyOf(hop, stages, plan.lanes, Call::kCombine)));
  }
  const int64_t connections = std::max<int64_t>(1, std::ssize(wiring.connections));
  const int64_t header = HeaderBytes(plan.sizes, Call::kDispatch), row = header + plan.sizes.row_bytes;
  const int64_t least = SlotOf(header + kLeastOfRow);
  // At most all rows of all ranks pass a connection, or without partial sums all their ranks' rows come back.
  const int64_t all = int64_t{plan.sizes.ranks} * plan.sizes.max_tokens *
                      (plan.sums == Sums::kHome ? std::min(plan.sizes.top_k, plan.sizes.ranks) : 1);
  int64_t rows = plan.rows_per_message;
  const int64_t more = std::min(all, (options.connection_bytes / kSlots - kMessageHead) / row);
  if (plan.aim == Aim::kThroughput && connections * kSlots * SlotOf(more * row) <= options.memory_limit)
    rows = std::max(rows, more);
  wiring.slot_bytes =
      std::min(SlotOf(rows * row), std::max(least, options.memory_limit / connections / kLine * kLine));
  const int64_t one_slot = connections * wiring.slot_bytes;
  if (one_slot > options.memory_limit)
    return InvalidInput(
        fmt::format("{} connections with a slot of {} bytes each need {} bytes; expected at most {}; "
                    "hint: plan for fewer ranks",
                    wiring.connections.size(), wiring.slot_bytes, one_slot, options.memory_limit));
  // As many bytes as the plan's slots have.
  int64_t wanted = (slots * plan.rows_per_message + rows - 1) / rows;
  if (plan.aim == Aim::kThroughput)
    wanted =
        std::max(wanted, std::min(options.connection_bytes / wiring.slot_bytes, (all + rows - 1) / rows));
  wiring.slots =
      static_cast<int32_t>(std::min<int64_t>({wanted, kMaxSlots, options.memory_limit / one_slot}));
  return wires;
}

}  // namespace xccl::dispatch
