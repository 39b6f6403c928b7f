#include "bench/scale_bars.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "bench/child.h"
#include "bench/markdown_table.h"
#include "bench/scale_machines.h"
#include "ir/collective.h"
#include "ir/plan.h"
#include "ir/sizes.h"
#include "pipeline/pipeline.h"

namespace xccl {
namespace {

constexpr int64_t kKiB = int64_t{1} << 10, kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

struct ScaleBar {
  std::string machine;
  CollectiveKind kind = CollectiveKind::kAllgather;
  int64_t size_bytes = kGiB;
  double most_seconds = 60;
  int64_t most_mib = 4096;
  double most_ratio = 0;  // 0: any
};

struct Measured {
  double seconds = 0, ratio = 0, file_mb = 0;
  std::string engine, problem;
  int64_t peak_mib = 0;
};

constexpr CollectiveKind kAllFive[] = {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                       CollectiveKind::kAllreduce, CollectiveKind::kBroadcast,
                                       CollectiveKind::kAlltoall};

std::vector<ScaleBar> AllBars() {
  std::vector<ScaleBar> bars;
  const auto add = [&](const char* machine, double seconds, int64_t mib, int64_t size, double ratio,
                       double of_broadcast) {
    for (const CollectiveKind kind : kAllFive)
      bars.push_back(
          {machine, kind, size, seconds, mib, kind == CollectiveKind::kBroadcast ? of_broadcast : ratio});
  };
  add("rails:128x128", 60, 4096, kGiB, 1.05, 1.1);
  add("rails:128x128", 60, 4096, 64 * kMiB, 0, 0);
  for (const int64_t size : {kGiB, 64 * kMiB}) add("damaged:rails:128x128", 120, 6144, size, 1.15, 1.15);
  for (const char* machine : {"torus:64x64x32", "dragonfly:65x16x10", "llama3-24k", "nvl72:228"})
    add(machine, 60, 4096, kGiB, 1.05, 1.05);
  for (const int64_t size : {kGiB, 64 * kKiB}) {
    add("dgx-h100:128", 1, 4096, size, 0, size == kGiB ? 1.05 : 0);
    add("dgx-h100:1024", 5, 4096, size, 0, size == kGiB ? 1.05 : 0);
  }
  for (const auto& [size, ratio] : {std::pair(64 * kMiB, 1.05), std::pair(64 * kKiB, 2.5)}) {
    add("fat-tree:k=16", 5, 1024, size, ratio, ratio);
    add("fat-tree:k=32", 30, 4096, size, ratio, ratio);
  }
  bars.push_back({"dragonfly:65x16x10", CollectiveKind::kAlltoall, 64 * kMiB, 60, 4096, 1.05});
  bars.push_back({"mesh:32x32", CollectiveKind::kAlltoall, kGiB, 10, 4096, 1.05});
  bars.push_back({"mesh:32x32", CollectiveKind::kAllreduce, kGiB, 10, 4096, 1.1});
  bars.push_back({"mesh:16x32", CollectiveKind::kAlltoall, kGiB, 10, 4096, 1.05});
  bars.push_back({"mesh:16x32", CollectiveKind::kAllreduce, kGiB, 10, 4096, 1.1});
  return bars;
}

// Reads the machine, plans (with bound, simulation and proof) and writes the plan.
Status PlanBar(const ScaleBar& bar, const std::string& file, Measured& made) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadScaledMachine(bar.machine));
  CollectiveSpec spec;
  spec.kind = bar.kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(bar.kind)) spec.root = Rank(0);
  XCCL_ASSIGN_OR_RETURN(const Collective collective, Collective::Create(std::move(spec)));
  if (CollectiveSizes(collective, bar.size_bytes).size_bytes() == 0)
    return InvalidInput("no byte for each pair of ranks");
  PlanOptions options;
  options.request.size_bytes = bar.size_bytes;
  XCCL_ASSIGN_OR_RETURN(const PlanResult result, MakePlan(topology, collective, options));
  XCCL_RETURN_IF_ERROR(WritePlan(result.plan, file));
  made.ratio = result.ratio;
  made.engine = result.plan.made_by.engine;
  return OkStatus();
}

Measured Measure(const ScaleBar& bar) {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("scale-{}.plan.json", getpid())).string();
  // The address space has parts that are never used; the peak is compared with the bar afterwards.
  const ChildLimits limits{.cpu_seconds = bar.most_seconds + 2, .memory_mib = 2 * bar.most_mib};
  const ChildResult child = RunInChild(limits, [&] {
    Measured made;
    const Status status = PlanBar(bar, file, made);
    std::string problem(status.message());
    std::ranges::replace(problem, '\t', ' ');
    return fmt::format("{}\t{}\t{}\t{}", static_cast<double>(std::clock()) / CLOCKS_PER_SEC, made.ratio,
                       made.engine, problem);
  });
  Measured made;
  made.problem = child.problem;
  made.peak_mib = child.peak_mib;
  if (const std::vector<std::string> fields = Split(child.text, '\t'); fields.size() == 4) {
    made.seconds = std::stod(fields[0]);
    made.ratio = std::stod(fields[1]);
    made.engine = fields[2];
    made.problem = fields[3];
  }
  std::error_code none;
  if (std::filesystem::exists(file, none))
    made.file_mb = static_cast<double>(std::filesystem::file_size(file, none)) / 1e6;
  std::filesystem::remove(file, none);
  return made;
}

}  // namespace

void PrintScaleBars(const std::vector<std::string>& rows) {
  constexpr double kMostFileMb = 100;
  MarkdownTable table({fmt::format("{:<21}", "machine"), fmt::format("{:<14}", "collective"),
                       " size:", fmt::format("{:<20}", "engine"),
                       "seconds:", " MiB:", "ratio:", "file MB:", fmt::format("{:<20}", "bar"), "met"});
  table.PrintAsAdded();
  for (const ScaleBar& bar : AllBars()) {
    const std::string row =
        fmt::format("{} {} {}", bar.machine, ToString(bar.kind), FormatSize(bar.size_bytes));
    const bool asked =
        std::ranges::any_of(rows, [&](const std::string& begin) { return row.starts_with(begin); });
    if (!rows.empty() && !asked) continue;
    ShowProgress(row);
    const Measured made = Measure(bar);
    const bool fast = made.seconds <= bar.most_seconds && made.peak_mib <= bar.most_mib;
    const bool good = bar.most_ratio == 0 || made.ratio <= bar.most_ratio;
    const bool met = made.problem.empty() && fast && good && made.file_mb <= kMostFileMb;
    table.Row(bar.machine, ToString(bar.kind), FormatSize(bar.size_bytes), made.engine,
              fmt::format("{:.1f}", made.seconds), made.peak_mib, fmt::format("{:.3f}", made.ratio),
              fmt::format("{:.1f}", made.file_mb),
              fmt::format("{:g} s, {} MiB{}", bar.most_seconds, bar.most_mib,
                          bar.most_ratio > 0 ? fmt::format(", {:g}", bar.most_ratio) : ""),
              met                    ? "PASS"
              : made.problem.empty() ? "MISS"
                                     : "MISS: " + Shortened(made.problem));
  }
}

}  // namespace xccl
