#include "base/graph/flow_over_time.h"

#include <limits>

namespace xccl {

std::optional<int64_t> LeastTime(MinCostFlow& network, const TimeQuery& query, int64_t above) {
  // The steps so far take over ÷ under: a step that costs as much or more brings nothing by then.
  __int128 over = static_cast<__int128>(query.amount) * query.times, under = 0;
  int64_t below = std::numeric_limits<int64_t>::max();
  network.Start(query.sources, query.sinks);
  while (const std::optional<FlowStep> step = network.Next(below)) {
    over += static_cast<__int128>(step->amount) * step->cost;
    under += step->amount;
    if (over / under <= above) return std::nullopt;
    const __int128 rounded_up = (over + under - 1) / under;
    if (rounded_up < below) below = static_cast<int64_t>(rounded_up);
  }
  if (under == 0) return std::nullopt;
  const __int128 time = over / under;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return time > kMost ? kMost : static_cast<int64_t>(time);
}

__int128 SurplusBy(MinCostFlow& network, const TimeQuery& query, int64_t time) {
  __int128 surplus = -static_cast<__int128>(query.amount) * query.times;
  network.Start(query.sources, query.sinks);
  while (const std::optional<FlowStep> step = network.Next(time))
    surplus += static_cast<__int128>(step->amount) * (time - step->cost);
  return surplus;
}

}  // namespace xccl
