#include "cli/compare_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "base/units.h"
#include "cli/compare.h"
#include "cli/show.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/failures.h"

namespace xccl {
namespace {

constexpr const char* kReplan = "replan";

class Comparer {
 public:
  Comparer(const Topology& topology, const Collective& collective, const PipelineOptions& options,
           std::vector<Failure> failures)
      : topology_(topology), collective_(collective), options_(options), failures_(std::move(failures)) {}

  StatusOr<FailureComparison> Run(const std::vector<std::string>& engines,
                                  const std::vector<int64_t>& sizes) {
    for (int64_t size : sizes) {
      std::vector<FailureTimes> times;
      XCCL_RETURN_IF_ERROR(FindBounds(size));
      std::optional<Plan> whole;
      for (const std::string& name : engines) {
        XCCL_ASSIGN_OR_RETURN(const Synthesizer* const engine, FindSynthesizer(name));
        const auto make = [&](const SynthesisRequest& request) { return engine->Synthesize(request); };
        XCCL_ASSIGN_OR_RETURN(const FailureTimes row,
                              TimesOf(name, size, make, name == "auto" ? &whole : nullptr));
        Add(row, times);
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
    return {.topology = &topology,
            .collective = &collective_,
            .size_bytes = size,
            .model = options_.model,
            .limits = options_.limits,
            .seed = options_.seed,
            .allow_divergent = options_.allow_divergent};
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

  static void Add(const FailureTimes& row, std::vector<FailureTimes>& times) {
    if (row.planned > 0) times.push_back(row);
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
      XCCL_ASSIGN_OR_RETURN(const Synthesizer* const engine, FindSynthesizer("auto"));
      StatusOr<Synthesis> made = engine->Synthesize(request);
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
    Add(row, times);
    return OkStatus();
  }

  const Topology& topology_;
  const Collective& collective_;
  const PipelineOptions& options_;
  const std::vector<Failure> failures_;
  std::vector<double> bounds_us_;  // by draw
  FailureComparison out_;
};

}  // namespace

StatusOr<FailureComparison> CompareFailures(const Topology& topology, const Collective& collective,
                                            const std::vector<std::string>& engines,
                                            const std::vector<int64_t>& sizes, const PipelineOptions& options,
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

std::string FailuresText(const FailureComparison& comparison) {
  std::vector<std::vector<std::string>> table = {
      {"size", "engine", "whole us", "mean us", "mean/bound", "worst/bound", "planned", "synthesis ms"}};
  int64_t last = -1;
  for (const FailureTimes& row : comparison.times) {
    table.push_back(
        {row.size_bytes == last ? "" : FormatSize(row.size_bytes), row.engine,
         row.whole_us > 0 ? fmt::format("{:.3f}", row.whole_us) : "-", fmt::format("{:.3f}", row.mean_us),
         fmt::format("{:.4f}", row.mean_ratio), fmt::format("{:.4f}", row.worst_ratio),
         fmt::format("{}/{}", row.planned, comparison.draws), fmt::format("{:.1f}", 1e3 * row.synthesis_s)});
    last = row.size_bytes;
  }
  std::string text = comparison.title + "\n";
  for (size_t i = 0; i < comparison.failed.size(); ++i)
    text += fmt::format("draw {}: {}\n", i, comparison.failed[i]);
  text += TableText(table);
  for (const std::string& reason : comparison.left_out) text += "left out: " + reason + "\n";
  return text;
}

std::string FailuresCsv(const FailureComparison& comparison) {
  std::string text =
      "engine,size_bytes,time_us,bound_us,ratio,worst_ratio,whole_us,planned,draws,synthesis_s\n";
  for (const FailureTimes& row : comparison.times)
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.engine, row.size_bytes, row.mean_us,
                        row.bound_us, row.mean_ratio, row.worst_ratio, row.whole_us, row.planned,
                        comparison.draws, row.synthesis_s);
  return text;
}

std::vector<Row> FailureRows(const FailureComparison& comparison) {
  std::vector<Row> rows;
  for (const FailureTimes& row : comparison.times) {
    Row cells = {{"engine", row.engine},
                 {"size_bytes", row.size_bytes},
                 {"time_us", row.mean_us},
                 {"bound_us", row.bound_us},
                 {"ratio", row.mean_ratio},
                 {"worst_ratio", row.worst_ratio},
                 {"planned", int64_t{row.planned}},
                 {"draws", int64_t{comparison.draws}},
                 {"synthesis_s", row.synthesis_s}};
    cells.emplace_back("whole_us", std::monostate());
    if (row.whole_us > 0) cells.back().second = row.whole_us;
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace xccl
