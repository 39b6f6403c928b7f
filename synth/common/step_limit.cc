#include "synth/common/step_limit.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "ir/bounds/needs.h"

namespace xccl {
namespace {

// Returns, by node, the fewest transfers from a holder; -1 if there is no path. A transfer begins with a link
// that leaves a rank.
std::vector<int32_t> TransfersFrom(const Topology& topology, std::span<const Rank> holders) {
  std::vector<int32_t> transfers(static_cast<size_t>(topology.num_nodes()), -1);
  std::vector<bool> done(transfers.size(), false);
  std::deque<NodeId> queue;
  for (const Rank holder : holders) {
    queue.push_back(topology.NodeOf(holder));
    transfers[queue.back().index()] = 0;
  }
  while (!queue.empty()) {
    const NodeId node = queue.front();
    queue.pop_front();
    if (done[node.index()]) continue;
    done[node.index()] = true;
    const bool begins = topology.RankOf(node).has_value();
    const int32_t reached = transfers[node.index()] + (begins ? 1 : 0);
    for (const LinkId l : topology.Out(node)) {
      const NodeId to = topology.link(l).to;
      int32_t& known = transfers[to.index()];
      if (known >= 0 && known <= reached) continue;
      known = reached;
      begins ? queue.push_back(to) : queue.push_front(to);
    }
  }
  return transfers;
}

// Returns a text such as "rank 3 is 2 links from rank 0" if some rank is more than `steps` transfers from its
// data, or else nullopt.
std::optional<std::string> TooFar(const Topology& topology, const Collective& collective, int32_t steps) {
  const auto farther = [&](std::span<const Rank> holders,
                           std::span<const Rank> destinations) -> std::optional<std::string> {
    const std::vector<int32_t> transfers = TransfersFrom(topology, holders);
    const auto distance = [&](Rank r) { return transfers[topology.NodeOf(r).index()]; };
    const auto farthest = std::ranges::max_element(destinations, {}, distance);
    if (farthest == destinations.end() || distance(*farthest) <= steps) return std::nullopt;
    return fmt::format("rank {} is {} links from rank {}", farthest->value, distance(*farthest),
                       holders.front().value);
  };
  for (const Need& need : NeedsOf(collective)) {
    if (!need.each) {
      if (auto text = farther(need.holders, need.destinations)) return text;
      continue;
    }
    for (const Rank& r : need.holders)
      if (auto text = farther(std::span(&r, 1), need.destinations)) return text;
  }
  return std::nullopt;
}

}  // namespace

Status CheckSteps(std::string_view engine, const SynthesisRequest& request, int32_t steps) {
  const std::optional<int32_t> most = request.limits.steps;
  if (!most || steps <= *most) return OkStatus();
  return LimitReached(
      fmt::format("{}: takes {} steps; expected at most {}; hint: --steps={}", engine, steps, *most, steps),
      steps);
}

Status StepBudget::Refusal() const {
  return LimitReached(
      fmt::format("{}: {} on {}: {} steps at least were used; at most {} are allowed; hint: --steps={}",
                  engine_, request_->collective->name(), request_->topology->name(), *fewest_, Most(),
                  *fewest_),
      *fewest_);
}

int32_t StepBudget::Most() const {
  return request_->limits.steps.value_or(std::numeric_limits<int32_t>::max());
}

bool StepBudget::Allows(int32_t steps) {
  if (steps <= Most()) return true;
  fewest_ = std::min(fewest_.value_or(steps), steps);
  return false;
}

Status RefusalForSteps(const Engine& engine, const SynthesisRequest& request, Status refusal) {
  const int64_t fewest = refusal.needed().value();
  const int32_t steps = *request.limits.steps;
  const std::string wanted = fmt::format("{} on {} ranks in {} step{}", request.collective->name(),
                                         request.collective->num_members(), steps, steps == 1 ? "" : "s");
  if (const auto reason = TooFar(*request.topology, *request.collective, steps))
    return Infeasible(fmt::format("{}: no {}: {}; hint: --steps={}", engine.name, wanted, *reason, fewest));
  if (!engine.asks_others) return refusal;
  return LimitReached(
      fmt::format("{}: no engine has a plan for {}; hint: --steps={}", engine.name, wanted, fewest));
}

}  // namespace xccl
