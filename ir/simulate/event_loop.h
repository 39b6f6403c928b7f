// One run of the event simulation with a given number of segments per unit. Takes the model of a schedule;
// returns the time of the last arrival and, on request, when each unit starts and arrives. Cost: one heap
// operation and two or three events per job and segment. ir/simulate/simulate.h defines what is simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulation_model.h"
#include "topologies/topology.h"

namespace xccl {

// How long a unit's segment occupies a link, overhead excluded: a table over distinct sizes and bandwidths.
class Durations {
 public:
  Durations(const SimulationModel& model, const Topology& topology, int64_t segments);
  int64_t operator()(int32_t size_class, int32_t link) const {
    if (!table_.empty())
      return table_[static_cast<size_t>(size_class) * bandwidths_.size() +
                    static_cast<size_t>(class_of_link_[link])];
    return TransferPs(model_.size_classes[size_class], topology_.link(LinkId(link)).bandwidth_bytes_per_s,
                      segments_);
  }

 private:
  static constexpr size_t kTableLimit = 1 << 16;
  const SimulationModel& model_;
  const Topology& topology_;
  int64_t segments_;
  std::vector<int64_t> bandwidths_, table_;
  std::vector<int32_t> class_of_link_;
};

// Returns the last arrival. `record`, unless null, gets one entry per unit. Requires: a schedule that
// verifies.
int64_t RunEvents(const SimulationModel& model, const Topology& topology, TimeModel time_model,
                  const Durations& durations, int64_t segments, MoveTimes* record = nullptr);

}  // namespace xccl
