// How near auto's plans come to the bound on machines of the kinds of tests/testing/machine_kinds.h.
//   bazel run --config=release //bench:kinds [-- --set tuning|published --release NAME --machines N --seed S
//     --ranks N --collective C --size S --schedule --rows --repairs N --write FOLDER]
// Machine i of a run has the seed S + 2 i. Two sets have seeds of their own. Tuning has even ones, always
// from 0 on: changes of the search are measured on it. Published has odd ones, which the release's name
// draws: nobody has looked at its rows, so neither --rows nor --write serves it. Without a set S is drawn
// anew, and printed.
// --rows prints every plan, the worst first, as commands can use it; the seed of a row with --machines 1
// makes its machine. --schedule times schedules and makes no programs. --repairs damages the machines (a
// cable gone, or at a tenth of its bandwidth) and sets repaired plans beside fresh ones. --write keeps the
// machines, for commands.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/standard_streams.h"
#include "base/strings.h"
#include "base/units.h"
#include "bench/drawn.h"
#include "bench/markdown_table.h"
#include "ir/bounds/bound.h"
#include "pipeline/pipeline.h"
#include "pipeline/repair.h"
#include "tests/testing/machine_kinds.h"
#include "topologies/xml/native_xml.h"

namespace xccl::bench {
namespace {

struct Wanted {
  int64_t machines = 100, ranks = 64, repairs = 0;
  uint64_t seed = std::random_device{}();
  std::optional<CollectiveKind> kind;
  std::optional<int64_t> size_bytes;
  bool lower = true, rows = false;
  std::string folder;   // where machines are written; empty: nowhere
  std::string set;      // empty: machines that are drawn anew
  std::string release;  // draws the published set
};

constexpr int64_t kSizes[] = {64 << 10, 1 << 20, 64 << 20, 1 << 30};

uint64_t SeedOf(const Wanted& wanted, int64_t machine) {
  return wanted.seed + 2 * static_cast<uint64_t>(machine);
}

// The first seed of the set.
StatusOr<uint64_t> FirstSeed(const Wanted& wanted) {
  if (wanted.set.empty()) return wanted.seed;
  if (wanted.set == "tuning") return 0;
  if (wanted.set != "published")
    return UsageError(fmt::format("--set: '{}'; expected tuning or published", wanted.set));
  if (wanted.release.empty()) return UsageError("--set published: no --release; expected the release's name");
  if (wanted.rows || !wanted.folder.empty())
    return UsageError("--set published: its machines are not looked at; expected neither --rows nor --write");
  const uint64_t drawn = HashOf(wanted.release) >> 1;  // the sum with 2 i stays in 64 bits
  return drawn | 1;
}

PlanOptions OptionsOf(int64_t size_bytes, const Wanted& wanted) {
  PlanOptions options;
  options.request.size_bytes = size_bytes;
  options.lower = wanted.lower;
  return options;
}

Status Ratios(const Wanted& wanted) {
  MarkdownTable table({"collective", "size", "plans:", "exact:", "median:", "90 %:", "worst:",
                       "messages, median:", "CPU s, median:", "CPU s, worst:"});
  std::vector<Drawn> all;
  for (const CollectiveKind kind : kDrawnKinds) {
    if (wanted.kind && kind != *wanted.kind) continue;
    for (const int64_t size : kSizes) {
      if (wanted.size_bytes && size != *wanted.size_bytes) continue;
      std::vector<double> ratios, seconds, messages;
      int64_t exact = 0;
      for (int64_t i = 0; i < wanted.machines; ++i) {
        const uint64_t seed = SeedOf(wanted, i);
        const Topology topology = DrawnMachine(seed, static_cast<int32_t>(wanted.ranks));
        ShowProgress(fmt::format("{} {} {} of {}", ToString(kind), FormatSize(size), i, wanted.machines));
        XCCL_ASSIGN_OR_RETURN(Drawn plan, PlanDrawn(topology, kind, OptionsOf(size, wanted)));
        plan.seed = seed;
        ratios.push_back(plan.ratio);
        seconds.push_back(plan.cpu_s);
        messages.push_back(static_cast<double>(plan.messages));
        exact += plan.exact ? 1 : 0;
        all.push_back(std::move(plan));
      }
      table.Row(ToString(kind), FormatSize(size), ratios.size(), exact,
                fmt::format("{:.3f}", Quantile(ratios, 0.5)), fmt::format("{:.3f}", Quantile(ratios, 0.9)),
                fmt::format("{:.3f}", Quantile(ratios, 1)), Quantile(messages, 0.5),
                fmt::format("{:.2f}", Quantile(seconds, 0.5)), fmt::format("{:.2f}", Quantile(seconds, 1)));
    }
  }
  table.Print();
  if (!wanted.rows) return OkStatus();
  fmt::print("\n");
  std::ranges::stable_sort(all, std::ranges::greater{}, &Drawn::ratio);
  MarkdownTable rows({"plan", "ratio:", "engine", "messages:", "CPU s:", "machine", "seed:"});
  for (const Drawn& plan : all)
    rows.Row(plan.what, fmt::format("{:.3f}", plan.ratio), plan.engine, plan.messages,
             fmt::format("{:.2f}", plan.cpu_s), plan.machine, plan.seed);
  rows.Print();
  return OkStatus();
}

Status Repairs(const Wanted& wanted) {
  Random random(wanted.seed);
  std::map<std::pair<int64_t, bool>, std::vector<double>> ratios;  // by size and damage
  std::map<std::pair<int64_t, bool>, int64_t> said;                // notes that name a fresh plan
  for (int64_t i = 0; i < wanted.repairs; ++i) {
    const uint64_t seed = SeedOf(wanted, i);
    const Topology topology = DrawnMachine(seed, static_cast<int32_t>(wanted.ranks));
    const CollectiveKind kind = wanted.kind.value_or(kDrawnKinds[random.Below(std::size(kDrawnKinds))]);
    const int64_t size = random.Below(3) == 0 ? 1 << 20 : 64 << 20;
    const bool gone = random.Below(2) == 0;
    const Collective collective = DrawnCollective(kind, topology);
    const size_t cable = random.Below(topology.spec().links.size() / 2);
    const Topology damaged = testing::WithDamage(topology, cable, gone);
    if (!CheckReachable(damaged, collective).ok()) continue;
    ShowProgress(fmt::format("repair {} of {}", i, wanted.repairs));
    XCCL_ASSIGN_OR_RETURN(const PlanResult whole, MakePlan(topology, collective, OptionsOf(size, wanted)));
    const PlanOptions options = OptionsOf(size, wanted);
    XCCL_ASSIGN_OR_RETURN(const PlanResult repaired,
                          RepairPlan(whole.plan, "plan.json", damaged, collective, options));
    XCCL_ASSIGN_OR_RETURN(const PlanResult fresh, MakePlan(damaged, collective, options));
    const double ratio = TimePs(repaired) / TimePs(fresh);
    ratios[{size, gone}].push_back(ratio);
    if (ratio > 1.05) {
      PrintError(fmt::format("seed {}: {} {} {}: {:.3f}: {}\n", seed, topology.name(), ToString(kind),
                             FormatSize(size), ratio, repaired.note));
      if (repaired.note.find("fresh") != std::string::npos) ++said[{size, gone}];
    }
  }
  MarkdownTable table({"size", "damage", "plans:", "median:", "worst:", "over 1.05:", "of them said:"});
  for (const auto& [row, values] : ratios)
    table.Row(FormatSize(row.first), row.second ? "gone" : "slow", values.size(),
              fmt::format("{:.3f}", Quantile(values, 0.5)), fmt::format("{:.3f}", Quantile(values, 1)),
              std::ranges::count_if(values, [](double ratio) { return ratio > 1.05; }), said[row]);
  table.Print();
  return OkStatus();
}

Status WriteMachines(const Wanted& wanted) {
  XCCL_RETURN_IF_ERROR(MakeFolders(wanted.folder));
  for (int64_t i = 0; i < wanted.machines; ++i) {
    const Topology topology = DrawnMachine(SeedOf(wanted, i), static_cast<int32_t>(wanted.ranks));
    XCCL_RETURN_IF_ERROR(WriteFileAtomically(fmt::format("{}/{}.xml", wanted.folder, topology.name()),
                                             WriteNativeXml(topology)));
  }
  return OkStatus();
}

Status Run(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--rows" || flag == "--schedule") {
      (flag == "--rows" ? wanted.rows : wanted.lower) = flag == "--rows";
      continue;
    }
    if (i + 1 == argc) return UsageError(fmt::format("{}: no value", flag));
    const std::string value = argv[++i];
    if (flag == "--write") {
      wanted.folder = value;
    } else if (flag == "--set" || flag == "--release") {
      (flag == "--set" ? wanted.set : wanted.release) = value;
    } else if (flag == "--collective") {
      XCCL_ASSIGN_OR_RETURN(wanted.kind, ParseCollectiveKind(value));
    } else if (flag == "--size") {
      XCCL_ASSIGN_OR_RETURN(wanted.size_bytes, ParseSize(value));
    } else {
      XCCL_ASSIGN_OR_RETURN(const int64_t number, ParseInteger(value, 0, INT64_MAX));
      if (flag == "--machines")
        wanted.machines = number;
      else if (flag == "--ranks")
        wanted.ranks = number;
      else if (flag == "--seed")
        wanted.seed = static_cast<uint64_t>(number);
      else if (flag == "--repairs")
        wanted.repairs = number;
      else
        return UsageError(fmt::format("'{}'; expected a flag of the head of bench/kinds_bench.cc", flag));
    }
  }
  XCCL_ASSIGN_OR_RETURN(wanted.seed, FirstSeed(wanted));
  fmt::print("{}\n\n", wanted.set.empty()       ? fmt::format("Seed {}.", wanted.seed)
                       : wanted.set == "tuning" ? "The tuning set."
                                                : fmt::format("The published set of {}.", wanted.release));
  if (!wanted.folder.empty()) return WriteMachines(wanted);
  return wanted.repairs > 0 ? Repairs(wanted) : Ratios(wanted);
}

}  // namespace
}  // namespace xccl::bench

int main(int argc, char** argv) {
  const xccl::Status status = xccl::bench::Run(argc, argv);
  if (!status.ok()) xccl::PrintError(fmt::format("kinds: {}\n", status.message()));
  return status.ok() ? 0 : 1;
}
