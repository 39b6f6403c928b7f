// Reports the units of one run by transfer and chunk.
#include <numeric>

#include "ir/simulate/event_loop.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulation_model.h"
#include "ir/sizes.h"

namespace xccl {

MoveTimes SimulateMoves(const Schedule& schedule, const Collective& collective, const Topology& topology,
                        int64_t size_bytes) {
  const CollectiveSizes sizes(collective, size_bytes);
  const SimulationModel model =
      BuildSimulationModel(schedule, collective, sizes, topology, TimeModel::kPipelined);
  const size_t units = static_cast<size_t>(model.num_units());
  MoveTimes by_unit{std::vector<int64_t>(units, 0), std::vector<int64_t>(units, 0)};
  RunEvents(model, topology, TimeModel::kPipelined, Durations(model, topology, 1), 1, &by_unit);

  // Units are in message order.
  const MessageTable messages = GroupMessages(schedule);
  std::vector<size_t> next(static_cast<size_t>(messages.num_messages) + 1, 0);
  for (int64_t t = 0; t < schedule.size(); ++t)
    next[static_cast<size_t>(messages.of_transfer[t]) + 1] += static_cast<size_t>(schedule.count[t]);
  std::partial_sum(next.begin(), next.end(), next.begin());
  MoveTimes times;
  times.start_ps.reserve(units);
  times.arrival_ps.reserve(units);
  for (int64_t t = 0; t < schedule.size(); ++t) {
    for (int32_t i = 0; i < schedule.count[t]; ++i) {
      const size_t unit = next[static_cast<size_t>(messages.of_transfer[t])]++;
      times.start_ps.push_back(by_unit.start_ps[unit]);
      times.arrival_ps.push_back(by_unit.arrival_ps[unit]);
    }
  }
  return times;
}

}  // namespace xccl
