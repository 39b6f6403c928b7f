// Loads by link, or by orbit of links where the schedule is compressed: all translates of a transfer load an
// orbit's links alike.
#include "synth/bfb/estimate.h"

#include <algorithm>
#include <vector>

#include "ir/sizes.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

class Loads {
 public:
  Loads(const Schedule& schedule, const Topology& topology, const SymmetryGroup* symmetry)
      : schedule_(schedule), topology_(topology), symmetry_(symmetry) {
    const size_t links = static_cast<size_t>(topology.num_links());
    in_all_.assign(links, 0);
    in_step_.assign(links, 0);
    message_step_.assign(static_cast<size_t>(schedule.paths.size()), -1);
  }

  // Adds a step's transfer.
  void Add(int64_t t, double bytes, bool blocking) {
    const PathId path = schedule_.path[t];
    const bool first = message_step_[path.index()] != schedule_.step[t];
    message_step_[path.index()] = schedule_.step[t];
    for (const LinkId l : schedule_.paths[path]) {
      const Link& link = topology_.link(l);
      double ps = bytes * 1e12 / static_cast<double>(link.bandwidth_bytes_per_s);
      if (first) ps += static_cast<double>(link.overhead_ps + (blocking ? link.latency_ps : 0));
      const double share = ps * Translates(l);
      in_all_[Slot(l)] += share;
      in_step_[Slot(l)] += share;
      most_in_all_ = std::max(most_in_all_, in_all_[Slot(l)]);
    }
  }

  // The worst way among the transfers [begin, end) of one step; forgets the step.
  double EndStep(int64_t begin, int64_t end, bool blocking) {
    double worst = 0;
    for (int64_t t = begin; t < end; ++t) {
      double way = 0;
      for (const LinkId l : schedule_.paths[schedule_.path[t]])
        way += blocking ? in_step_[Slot(l)] : static_cast<double>(topology_.link(l).latency_ps);
      worst = std::max(worst, way);
    }
    for (int64_t t = begin; t < end; ++t)
      for (const LinkId l : schedule_.paths[schedule_.path[t]]) in_step_[Slot(l)] = 0;
    return worst;
  }
  double most_in_all() const { return most_in_all_; }

 private:
  size_t Slot(LinkId l) const {
    return symmetry_ == nullptr ? l.index() : static_cast<size_t>(symmetry_->OrbitOf(l));
  }
  // Translates of one transfer that each link of the orbit carries.
  double Translates(LinkId l) const {
    if (symmetry_ == nullptr) return 1;
    return static_cast<double>(symmetry_->order()) /
           static_cast<double>(symmetry_->LinkOrbitSize(symmetry_->OrbitOf(l)));
  }

  const Schedule& schedule_;
  const Topology& topology_;
  const SymmetryGroup* symmetry_;
  std::vector<double> in_all_, in_step_;
  std::vector<int32_t> message_step_;  // by path: the last step with a message over it
  double most_in_all_ = 0;
};

}  // namespace

double EstimateSchedulePs(const Schedule& schedule, const Collective& cut, const Topology& topology,
                          const SymmetryGroup* symmetry, int64_t size_bytes, TimeModel model) {
  const bool blocking = model == TimeModel::kBlocking;
  const CollectiveSizes sizes(cut, size_bytes);
  std::vector<double> before = {0};
  for (int32_t c = 0; c < cut.num_chunks(); ++c)
    before.push_back(before.back() + static_cast<double>(sizes.ChunkBytes(ChunkId(c))));
  Loads loads(schedule, topology, symmetry);
  double total = 0;
  for (int64_t begin = 0, end = 0; begin < schedule.size(); begin = end) {
    for (end = begin; end < schedule.size() && schedule.step[end] == schedule.step[begin]; ++end) {
      const size_t chunk = schedule.first[end].index();
      loads.Add(end, before[chunk + static_cast<size_t>(schedule.count[end])] - before[chunk], blocking);
    }
    total += loads.EndStep(begin, end, blocking);
  }
  return blocking ? total : total + loads.most_in_all();
}

}  // namespace xccl
