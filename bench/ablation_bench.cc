// The gain of each mechanism of the search: auto's plans of the tuning set (bench/kinds_bench.cc) with all of
// them, and without one at a time.
//   bazel run --config=release //bench:ablation [-- --machines N --ranks N --program --only NAME,NAME]
// A mechanism is left out by its name in SynthesisRequest::passed_over, as an engine is. For each size the
// table has the ratios to the bound and the CPU time without it, and how many times as long its plans take.
// Cost: (mechanisms + 1) × machines × 18 plans.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "base/strings.h"
#include "base/units.h"
#include "bench/drawn.h"
#include "bench/markdown_table.h"
#include "ir/collective.h"
#include "pipeline/plan_result.h"
#include "topologies/topology.h"

namespace xccl::bench {
namespace {

struct Wanted {
  int64_t machines = 20, ranks = 64;
  bool lower = false;
  std::vector<std::string> only;  // empty: every mechanism
};

constexpr int64_t kSizes[] = {64 << 10, 1 << 20, 64 << 20};

constexpr std::string_view kMechanisms[] = {
    "bfb",          "flow",          "forest",          "greedy",   "switches", "finer", "coarser",
    "reordered",    "delayed",       "mirrored",        "pairs",    "held",     "twins", "wait_price",
    "secondweight", "arborescences", "packedbroadcast", "spanning", "folded"};

// Plans of every machine and collective at one size. Errors: those of PlanDrawn.
StatusOr<std::vector<Drawn>> PlansWithout(std::string_view mechanism, int64_t size_bytes,
                                          const Wanted& wanted) {
  std::vector<Drawn> plans;
  for (int64_t i = 0; i < wanted.machines; ++i) {
    const Topology topology = DrawnMachine(2 * static_cast<uint64_t>(i), static_cast<int32_t>(wanted.ranks));
    ShowProgress(fmt::format("{} {} {} of {}", mechanism, FormatSize(size_bytes), i, wanted.machines));
    for (const CollectiveKind kind : kDrawnKinds) {
      PlanOptions options;
      options.request.size_bytes = size_bytes;
      options.lower = wanted.lower;
      if (!mechanism.empty()) options.request.passed_over.emplace_back(mechanism);
      XCCL_ASSIGN_OR_RETURN(Drawn plan, PlanDrawn(topology, kind, options));
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

std::string Quantiles(const std::vector<double>& values) {
  return fmt::format("{:.3f} {:.3f} {:.3f}", Quantile(values, 0.5), Quantile(values, 0.9),
                     Quantile(values, 1));
}

void Row(MarkdownTable& table, std::string_view mechanism, int64_t size_bytes, std::span<const Drawn> plans,
         std::span<const Drawn> with_all) {
  std::vector<double> ratios, slower, cpu_s, costs;
  for (size_t i = 0; i < plans.size(); ++i) {
    ratios.push_back(plans[i].ratio);
    slower.push_back(plans[i].time_ps / with_all[i].time_ps);
    cpu_s.push_back(plans[i].cpu_s);
    costs.push_back(plans[i].cpu_s / std::max(with_all[i].cpu_s, 1e-6));
  }
  double sum_s = 0;
  for (const double s : cpu_s) sum_s += s;
  table.Row(mechanism.empty() ? "all of them" : mechanism, FormatSize(size_bytes), Quantiles(ratios),
            Quantiles(slower), fmt::format("{:.3f}", Quantile(cpu_s, 0.5)), fmt::format("{:.1f}", sum_s),
            fmt::format("{:.2f}", Quantile(costs, 0.5)));
}

Status Run(const Wanted& wanted) {
  MarkdownTable table({"without", "size",
                       "time ÷ bound: median, 90 %, worst:", "time ÷ with it: median, 90 %, worst:",
                       "CPU s, median:", "CPU s, all:", "CPU ÷ with it, median:"});
  for (const int64_t size : kSizes) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<Drawn> with_all, PlansWithout("", size, wanted));
    Row(table, "", size, with_all, with_all);
    for (const std::string_view mechanism : kMechanisms) {
      if (!wanted.only.empty() && std::ranges::find(wanted.only, mechanism) == wanted.only.end()) continue;
      XCCL_ASSIGN_OR_RETURN(const std::vector<Drawn> without, PlansWithout(mechanism, size, wanted));
      Row(table, mechanism, size, without, with_all);
    }
  }
  table.Print();
  return OkStatus();
}

Status RunWith(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--program") {
      wanted.lower = true;
      continue;
    }
    if (i + 1 == argc) return UsageError(fmt::format("{}: no value", flag));
    const std::string value = argv[++i];
    if (flag == "--only") {
      wanted.only = Split(value, ',');
      for (const std::string& name : wanted.only)
        if (std::ranges::find(kMechanisms, name) == std::end(kMechanisms))
          return UsageError(fmt::format("--only: '{}'; expected names of bench/ablation_bench.cc", name));
    } else if (flag == "--machines" || flag == "--ranks") {
      XCCL_ASSIGN_OR_RETURN((flag == "--ranks" ? wanted.ranks : wanted.machines),
                            ParseInteger(value, 1, 100'000));
    } else {
      return UsageError(fmt::format("'{}'; expected a flag of the head of bench/ablation_bench.cc", flag));
    }
  }
  return Run(wanted);
}

}  // namespace
}  // namespace xccl::bench

int main(int argc, char** argv) {
  const xccl::Status status = xccl::bench::RunWith(argc, argv);
  if (!status.ok()) xccl::PrintError(fmt::format("ablation: {}\n", status.message()));
  return status.ok() ? 0 : 1;
}
