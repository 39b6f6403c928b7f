// One run of the event simulation with a given number of segments per unit. Takes the model of a schedule;
// returns the time of the last arrival and, on request, when each unit starts and arrives. Cost: one heap
// operation and two or three events per job and segment. ir/simulate/simulate.h defines what is simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "ir/simulate/simulate.h"
#include "ir/simulate/simulation_model.h"
#include "topologies/topology.h"

namespace xccl {

inline constexpr int64_t kForever = std::numeric_limits<int64_t>::max() / 4;  // times are capped here

// Computes ceil(bytes / (bytes_per_s * parts)) in picoseconds.
int64_t PartPs(int64_t bytes, int64_t bytes_per_s, int64_t parts);

// The time that a unit's segment occupies a link, without overhead: a table over distinct sizes and
// bandwidths.
class Durations {
 public:
  Durations(const SimulationModel& model, const Topology& topology, int64_t segments);
  int64_t operator()(int32_t size_class, int32_t link) const {
    if (!table_.empty())
      return table_[static_cast<size_t>(size_class) * bandwidths_.size() +
                    static_cast<size_t>(class_of_link_[link])];
    return PartPs(model_.size_classes[size_class], topology_.link(LinkId(link)).bandwidth_bytes_per_s,
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
