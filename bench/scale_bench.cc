// The stages on machines of 1,024 to 131,072 ranks: CPU seconds and memory of each, and by which power of the
// number of ranks both grow. Then the bars: whole plans of large machines. Each figure is of a child process
// with limits of time and memory, so a stage that does not end is a MISS. `offers` shows, for each engine,
// the estimate of its work beside what its plan takes.
//   bazel run --config=release //bench:scale [-- stages [MACHINE ...] | bars [ROW ...] | offers MACHINE ...]
// A ROW is the beginning of a row's name: "rails:128x128" or "rails:128x128 allgather 1GiB".
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "bench/child.h"
#include "bench/markdown_table.h"
#include "bench/scale_bars.h"
#include "bench/scale_machines.h"
#include "bench/scale_offers.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/bounds/bound.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "topologies/cuts.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

constexpr int64_t kSize = 1LL << 30;
constexpr double kMostExponent = 1.15;

Collective Of(CollectiveKind kind, const Topology& topology) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(kind)) spec.root = Rank(0);
  return Collective::Create(std::move(spec)).value();
}

// The link back from b to a, as every cable of these machines has one.
LinkId Back(const Topology& topology, LinkId link) {
  const Link& forth = topology.link(link);
  for (const LinkId l : topology.Out(forth.to))
    if (topology.link(l).to == forth.from) return l;
  return link;
}

// A compressed plan that needs no search: from the lowest rank of each orbit a tree of fewest links to all
// ranks. A sum takes the tree backwards.
Schedule TreesOf(const Topology& topology, const SymmetryGroup& group, const Collective& collective,
                 bool sum) {
  constexpr int32_t kFar = std::numeric_limits<int32_t>::max();
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  for (int32_t o = 0; o < group.num_rank_orbits(); ++o) {
    const Rank root = group.Representative(o);
    std::vector<int32_t> depth(static_cast<size_t>(topology.num_nodes()), kFar);  // in transfers
    std::vector<std::optional<LinkId>> from(depth.size());
    std::vector<NodeId> queue = {topology.NodeOf(root)};
    depth[queue[0].index()] = 0;
    for (size_t i = 0; i < queue.size(); ++i)
      for (const LinkId l : topology.Out(queue[i])) {
        const NodeId to = topology.link(l).to;
        if (depth[to.index()] != kFar) continue;
        depth[to.index()] = depth[queue[i].index()] + (topology.IsGpu(to) ? 1 : 0);
        from[to.index()] = l;
        queue.push_back(to);
      }
    int32_t deepest = 0;
    for (const NodeId reached : queue) deepest = std::max(deepest, depth[reached.index()]);
    for (size_t i = 1; i < queue.size(); ++i) {
      if (!topology.IsGpu(queue[i])) continue;
      std::vector<LinkId> path;
      NodeId at = queue[i];
      do {
        path.push_back(*from[at.index()]);
        at = topology.link(path.back()).from;
      } while (!topology.IsGpu(at));
      const Rank parent = *topology.RankOf(at), child = *topology.RankOf(queue[i]);
      if (sum) {
        for (LinkId& l : path) l = Back(topology, l);
        schedule.Add(ChunkId(root.value), 1, child, parent, path, TransferOp::kReduce,
                     deepest - depth[queue[i].index()]);
      } else {
        std::ranges::reverse(path);
        schedule.Add(ChunkId(root.value), 1, parent, child, path, TransferOp::kCopy,
                     depth[queue[i].index()] - 1);
      }
    }
  }
  schedule.symmetry = group.generators();
  Normalize(schedule);
  return schedule;
}

// ---- stages ----

struct Figure {
  double seconds = 0;
  int64_t peak_mib = 0;
  std::string problem;
};

// The CPU time of a call: the mean of as many calls as a fifth of a second allows, since some kernels count
// CPU time in ticks of 10 ms.
std::string MeanSeconds(const std::function<Status()>& work) {
  double spent = 0;
  int64_t calls = 0;
  const std::clock_t began = std::clock();
  for (; spent < 0.2; ++calls) {
    if (const Status status = work(); !status.ok()) return "!" + std::string(status.message());
    spent = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  }
  return fmt::format("{}", spent / static_cast<double>(calls));
}

Figure Measure(const ChildLimits& limits, const std::function<Status()>& work) {
  const ChildResult child = RunInChild(limits, [&] { return MeanSeconds(work); });
  Figure figure{.peak_mib = child.peak_mib, .problem = child.problem};
  if (child.text.starts_with('!'))
    figure.problem = child.text.substr(1);
  else if (figure.problem.empty())
    figure.seconds = std::stod(child.text);
  return figure;
}

struct Stage {
  std::string name;
  Figure figure;
};

std::string TemporaryFile() {
  return (std::filesystem::temp_directory_path() / fmt::format("scale-{}.plan.json", getpid())).string();
}

class StagesOf {
 public:
  StagesOf(std::string name, ChildLimits limits) : name_(std::move(name)), limits_(limits) {}

  std::vector<Stage> Run() {
    if (!Add("read", [&] { return ReadScaledMachine(name_).status(); })) return std::move(stages_);
    topology_ = ReadScaledMachine(name_).value();
    Add("halves", [&] { return CutBetweenHalves(*topology_) > 0 ? OkStatus() : BugError("no cut"); });
    Bounds();
    if (!Add("symmetry",
             [&] { return FindTranslations(*topology_).order() > 0 ? OkStatus() : BugError("none"); }))
      return std::move(stages_);
    group_ = FindTranslations(*topology_);
    PlansOf(CollectiveKind::kAllgather);
    PlansOf(CollectiveKind::kReduceScatter);
    return std::move(stages_);
  }
  const std::optional<Topology>& topology() const { return topology_; }
  int64_t order() const { return group_ ? group_->order() : 0; }
  int64_t file_bytes() const { return file_bytes_; }

 private:
  // The most ranks of an alltoall, which has a part for each pair.
  static constexpr int32_t kMostOfAlltoall = 1 << 13;

  bool Add(std::string stage, const std::function<Status()>& work) {
    ShowProgress(fmt::format("{}: {}", name_, stage));
    stages_.push_back({std::move(stage), Measure(limits_, work)});
    return stages_.back().figure.problem.empty();
  }

  void Bounds() {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce,
          CollectiveKind::kBroadcast, CollectiveKind::kAlltoall}) {
      if (kind == CollectiveKind::kAlltoall && topology_->num_ranks() > kMostOfAlltoall) continue;
      Add(fmt::format("bound {}", ToString(kind)), [&] {
        return LowerBound(*topology_, Of(kind, *topology_), kSize, TimeModel::kPipelined).status();
      });
    }
  }

  void PlansOf(CollectiveKind kind) {
    const Collective collective = Of(kind, *topology_);
    const Schedule schedule = TreesOf(*topology_, *group_, collective, IsReduction(kind));
    const auto add = [&](std::string_view stage, const std::function<Status()>& work) {
      return Add(fmt::format("{} {}", stage, ToString(kind)), work);
    };
    add("simulate", [&] {
      const Simulation made = Simulate(schedule, collective, *topology_, {.size_bytes = kSize});
      return made.unsound.empty() ? OkStatus() : BugError(made.unsound);
    });
    add("verify", [&] { return ToStatus(VerifySchedule(schedule, collective, *topology_)); });
    add("describe", [&] {
      const bool fine = Stats(schedule, collective, *topology_).steps > 0 &&
                        RelaysOf(schedule, collective, *topology_).empty() &&
                        IsBitwiseSame(schedule, collective, *topology_);
      return fine ? OkStatus() : BugError("not described");
    });
    const std::string file = TemporaryFile();
    const bool written = add("write", [&] {
      return WritePlan({*topology_, collective, schedule, std::nullopt, {}, std::nullopt, {}}, file);
    });
    if (written) {
      file_bytes_ = static_cast<int64_t>(std::filesystem::file_size(file));
      add("read plan", [&] { return ReadPlanUnverified(file).status(); });
    }
    std::filesystem::remove(file);
  }

  std::string name_;
  ChildLimits limits_;
  std::optional<Topology> topology_;
  std::optional<SymmetryGroup> group_;
  std::vector<Stage> stages_;
  int64_t file_bytes_ = 0;
};

std::string Shown(const Figure& figure) {
  return figure.problem.empty() ? fmt::format("{:.3g} s, {} MiB", figure.seconds, figure.peak_mib)
                                : figure.problem;
}

// Adds three cells: the powers by which time and memory grow between the first and the last machine with
// figures, and whether both meet the bar. Times below a millisecond count as a millisecond.
void AddExponents(const std::vector<const Figure*>& figures, const std::vector<double>& ranks,
                  std::vector<std::string>& cells) {
  constexpr double kMeanSeconds = 1e-3;
  std::vector<size_t> measured;
  bool all = true;
  for (size_t i = 0; i < figures.size(); ++i) {
    if (figures[i] == nullptr) continue;
    all = all && figures[i]->problem.empty();
    if (figures[i]->problem.empty()) measured.push_back(i);
  }
  if (measured.size() < 2) {
    cells.insert(cells.end(), {"-", "-", all ? "-" : "MISS"});
    return;
  }
  const size_t a = measured.front(), b = measured.back();
  const double more = std::log(ranks[b] / ranks[a]);
  const auto power = [&](double small, double large) { return std::log(large / small) / more; };
  const double time =
      power(std::max(figures[a]->seconds, kMeanSeconds), std::max(figures[b]->seconds, kMeanSeconds));
  const double memory = power(static_cast<double>(std::max<int64_t>(1, figures[a]->peak_mib)),
                              static_cast<double>(std::max<int64_t>(1, figures[b]->peak_mib)));
  const bool met = all && time <= kMostExponent && memory <= kMostExponent;
  cells.insert(cells.end(),
               {fmt::format("{:.2f}", time), fmt::format("{:.2f}", memory), met ? "PASS" : "MISS"});
}

struct Family {
  std::string name;
  std::vector<std::string> machines;  // ascending
};

std::vector<Family> Families() {
  return {{"rails of three tiers", {"rails:8x16", "rails:16x64", "rails:128x128"}},
          {"fat tree", {"fat-tree:k=16", "fat-tree:k=32", "fat-tree:k=64"}},
          {"NVL72 racks", {"nvl72:2", "nvl72:15", "nvl72:228"}},
          {"dragonfly", {"dragonfly:9x8x14", "dragonfly:33x16x16", "dragonfly:65x64x32"}},
          {"torus", {"torus:16x8x8", "torus:32x16x16", "torus:64x64x32"}}};
}

void PrintStages(const std::string& family, const std::vector<std::string>& machines) {
  std::vector<std::string> columns = {"stage"};
  std::vector<std::vector<Stage>> stages;
  std::vector<double> ranks;
  std::string orders;
  for (const std::string& machine : machines) {
    StagesOf measured(machine, {.cpu_seconds = 120, .memory_mib = 8192});
    stages.push_back(measured.Run());
    ranks.push_back(measured.topology() ? measured.topology()->num_ranks() : 0);
    columns.push_back(fmt::format("{}, {} ranks:", machine, ranks.back()));
    orders += fmt::format("{}{}: {} translations, files of {:.1f} MB", orders.empty() ? "" : "; ", machine,
                          measured.order(), static_cast<double>(measured.file_bytes()) / 1e6);
  }
  columns.insert(columns.end(), {"time exponent:", "memory exponent:", "bar"});
  MarkdownTable table(columns);
  for (const Stage& first : stages.front()) {
    std::vector<std::string> cells = {first.name};
    std::vector<const Figure*> figures;
    for (const std::vector<Stage>& of_machine : stages) {
      const auto same = std::ranges::find(of_machine, first.name, &Stage::name);
      figures.push_back(same == of_machine.end() ? nullptr : &same->figure);
      cells.push_back(figures.back() == nullptr ? "-" : Shown(*figures.back()));
    }
    AddExponents(figures, ranks, cells);
    table.Add(cells);
  }
  fmt::print("{}: {}\n\n", family, orders);
  table.Print();
  fmt::print("\n");
  std::fflush(stdout);
}

int Main(const std::vector<std::string>& words) {
  const std::vector<std::string> machines(words.begin() + (words.empty() ? 0 : 1), words.end());
  const bool all = words.empty();
  if (!all && words[0] == "offers") {
    const Status status = PrintScaleOffers(machines);
    if (!status.ok()) PrintError(fmt::format("scale: {}\n", status.message()));
    return status.ok() ? 0 : 1;
  }
  if (!all && words[0] != "stages" && words[0] != "bars") {
    PrintError("scale: expected stages [MACHINE ...], bars [ROW ...] or offers MACHINE ...\n");
    return 2;
  }
  if (!machines.empty() && words[0] == "stages") PrintStages("machines", machines);
  if (all || (machines.empty() && words[0] == "stages"))
    for (const Family& family : Families()) PrintStages(family.name, family.machines);
  if (all || words[0] == "bars") PrintScaleBars(machines);
  return 0;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(std::vector<std::string>(argv + 1, argv + argc)); }
