#include "pipeline/compare_failures.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "base/units.h"
#include "pipeline/compare.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/failures.h"

namespace xccl {
namespace {

constexpr const char* kReplan = "replan";

class Comparer {
 public:
  Comparer(const Topology& topology, const Collective& collective, const PlanOptions& options,
           std::vector<Failure> failures)
      : topology_(topology), collective_(collective), options_(options), failures_(std::move(failures)) {}

  StatusOr<FailureComparison> Run(const std::vector<std::string>& engines,
                                  const std::vector<int64_t>& sizes) {
    for (int64_t size : sizes) {
      std::vector<FailureTimes> times;
      XCCL_RETURN_IF_ERROR(FindBounds(size));
      std::optional<Plan> whole;
      for (const std::string& name : engines) {
        XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(name));
        const auto make = [&](const SynthesisRequest& request) { return engine->Synthesize(request); };
        XCCL_ASSIGN_OR_RETURN(const FailureTimes row,
                              TimesOf(name, size, make, engine->asks_others ? &whole : nullptr));
        if (row.planned > 0) times.push_back(row);
      }
      XCCL_RETURN_IF_ERROR(AddReplan(size, std::move(whole), times));
      std::stable_sort(times.begin(), times.end(), [](const FailureTimes& a, const FailureTimes& b) {
        return std::pair(-a.planned, a.mean_us) < std::pair(-b.planned, b.mean_us);
      });
      out_.times.insert(out_.times.end(), times.begin(), times.end());
    }
    out_.draws = static_cast<int32_t>(failures_.size());
    for (const Failure& failure : failures_) out_.failed.push_back(Join(failure.cables, ", "));
    return std::move(out_);
  }

 private:
  SynthesisRequest Request(const Topology& topology, int64_t size) const {
    PlanOptions at_size = options_;
    at_size.size_bytes = size;
    return RequestOf(topology, collective_, at_size);
  }

  Status FindBounds(int64_t size) {
    bounds_us_.clear();
    for (const Failure& failure : failures_) {
      XCCL_ASSIGN_OR_RETURN(const Bound bound,
                            LowerBound(failure.topology, collective_, size, options_.model));
      bounds_us_.push_back(PsToUs(bound.bound_ps));
    }
    return OkStatus();
  }

  double TimeUs(const Synthesis& made, const SynthesisRequest& request, int64_t& size_bytes) const {
    const Simulation simulation = Simulate(made.schedule, made.collective, *request.topology,
                                           {.size_bytes = request.size_bytes, .model = request.model});
    size_bytes = simulation.size_bytes;
    return PsToUs(simulation.time_ps);
  }

  // `keep`: where the plan for the whole machine goes.
  template <typename MakePlan>
  StatusOr<FailureTimes> TimesOf(const std::string& name, int64_t size, MakePlan make,
                                 std::optional<Plan>* keep) {
    FailureTimes row{.engine = name, .size_bytes = size};
    if (name != kReplan) {
      const SynthesisRequest request = Request(topology_, size);
      if (StatusOr<Synthesis> made = make(request); made.ok()) {
        row.whole_us = TimeUs(*made, request, row.size_bytes);
        if (keep != nullptr) *keep = PlanOf(std::move(*made));
      }
    }
    for (size_t i = 0; i < failures_.size(); ++i) {
      const SynthesisRequest request = Request(failures_[i].topology, size);
      const auto start = std::chrono::steady_clock::now();
      const StatusOr<Synthesis> made = make(request);
      if (!made.ok()) {
        LeaveOut(name, made.status(), out_.left_out);
        continue;
      }
      row.synthesis_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      XCCL_RETURN_IF_ERROR(CheckMade(*made, failures_[i].topology));
      const double us = TimeUs(*made, request, row.size_bytes);
      const double ratio = bounds_us_[i] > 0 ? us / bounds_us_[i] : 1;
      ++row.planned;
      row.mean_us += us;
      row.bound_us += bounds_us_[i];
      row.mean_ratio += ratio;
      row.worst_ratio = std::max(row.worst_ratio, ratio);
    }
    if (row.planned > 0)
      for (double* mean : {&row.mean_us, &row.bound_us, &row.mean_ratio, &row.synthesis_s})
        *mean /= row.planned;
    return row;
  }

  Plan PlanOf(Synthesis made) const {
    Plan plan{topology_, std::move(made.collective), std::move(made.schedule), std::nullopt, {}};
    plan.made_by.engine = std::move(made.engine);
    return plan;
  }

  Status AddReplan(int64_t size, std::optional<Plan> whole, std::vector<FailureTimes>& times) {
    const SynthesisRequest request = Request(topology_, size);
    if (!whole) {
      StatusOr<Synthesis> made = DefaultEngine().Synthesize(request);
      if (!made.ok()) {
        LeaveOut(kReplan, made.status(), out_.left_out);
        return OkStatus();
      }
      whole = PlanOf(std::move(*made));
    }
    const auto make = [&](const SynthesisRequest& damaged) { return Replan(*whole, damaged); };
    XCCL_ASSIGN_OR_RETURN(FailureTimes row, TimesOf(kReplan, size, make, nullptr));
    row.whole_us = PsToUs(
        Simulate(whole->schedule, whole->collective, topology_, {.size_bytes = size, .model = options_.model})
            .time_ps);
    if (row.planned > 0) times.push_back(row);
    return OkStatus();
  }

  const Topology& topology_;
  const Collective& collective_;
  const PlanOptions& options_;
  const std::vector<Failure> failures_;
  std::vector<double> bounds_us_;  // by draw
  FailureComparison out_;
};

}  // namespace

StatusOr<FailureComparison> CompareFailures(const Topology& topology, const Collective& collective,
                                            const std::vector<std::string>& engines,
                                            const std::vector<int64_t>& sizes, const PlanOptions& options,
                                            const FailureOptions& failures) {
  XCCL_ASSIGN_OR_RETURN(const ComparedEngines compared, EnginesToCompare(engines, collective));
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, collective));
  std::vector<Failure> drawn;
  for (int32_t i = 0; i < failures.draws; ++i) {
    XCCL_ASSIGN_OR_RETURN(
        Failure failure,
        FailCables(topology, failures.cables, options.seed + static_cast<uint64_t>(i),
                   [&](const Topology& left) { return CheckReachable(left, collective).ok(); }));
    drawn.push_back(std::move(failure));
  }
  XCCL_ASSIGN_OR_RETURN(FailureComparison comparison,
                        Comparer(topology, collective, options, std::move(drawn)).Run(compared.names, sizes));
  comparison.left_out.insert(comparison.left_out.begin(), compared.left_out.begin(), compared.left_out.end());
  comparison.title = fmt::format("{} on {} with {} of its cables failed, {} draws: {} ranks, {} model",
                                 collective.name(), topology.name(), failures.cables, failures.draws,
                                 collective.num_members(), ToString(options.model));
  return comparison;
}

}  // namespace xccl
