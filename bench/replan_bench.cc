// Compares replanning after failures with planning from nothing: CPU time of both, and how far from the bound
// both plans are.
//   bazel run --config=release //bench:replan [-- TOPOLOGY...]
// A row is the mean over five draws of one failed cable; plans are for 1 GiB, pipelined. Planning from
// nothing simulates its candidates; the time of one simulation of the repaired plan stands beside replanning.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "bench/markdown_table.h"
#include "ir/bounds/bound.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "synth/replan/replan.h"
#include "topologies/failures.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int kDraws = 5;
constexpr int64_t kSize = int64_t{1} << 30;
constexpr const char* kMachines[] = {
    "torus:8x8",   "torus:4x4x4", "mesh:8x8", "hypercube:6",     "dgx1",
    "full-mesh:8", "mi250x",      "mi300x",   "dragonfly:4x4x2", "fat-tree:k=4",
    "ndv2",        "torus:16x16", "rail-4",   "leaf-spine:2x4x4"};
constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                                     CollectiveKind::kBroadcast, CollectiveKind::kAlltoall};

struct Timed {
  double seconds = 0, simulation_s = 0;
  double ratio = 0;
  std::string engine;
};

template <typename MakePlan>
StatusOr<Timed> Time(const SynthesisRequest& request, MakePlan make) {
  const std::clock_t start = std::clock();
  XCCL_ASSIGN_OR_RETURN(const Synthesis made, make());
  Timed timed{.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, .engine = made.engine};
  const std::vector<Violation> violations = VerifySchedule(made.schedule, made.collective, *request.topology);
  XCCL_RETURN_IF_ERROR(ToStatus(violations));
  XCCL_ASSIGN_OR_RETURN(const Bound bound,
                        LowerBound(*request.topology, made.collective, request.size_bytes, request.model));
  const std::clock_t simulate = std::clock();
  const Simulation simulation = Simulate(made.schedule, made.collective, *request.topology,
                                         {.size_bytes = request.size_bytes, .model = request.model});
  timed.simulation_s = static_cast<double>(std::clock() - simulate) / CLOCKS_PER_SEC;
  timed.ratio = static_cast<double>(simulation.time_ps) / static_cast<double>(bound.bound_ps);
  return timed;
}

// Adds a row, and returns by how much replanning is faster.
StatusOr<double> AddRow(const std::string& name, CollectiveKind kind, MarkdownTable& table) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology(name));
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (kind == CollectiveKind::kBroadcast) spec.root = Rank(0);
  XCCL_ASSIGN_OR_RETURN(const Collective collective, Collective::Create(spec));
  const Engine& engine = DefaultEngine();
  SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = kSize};
  XCCL_ASSIGN_OR_RETURN(Synthesis whole, engine.Synthesize(request));
  Plan plan{topology, whole.collective, whole.schedule, std::nullopt, {}};
  plan.made_by.engine = whole.engine;
  Timed anew, again;
  double worst = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    XCCL_ASSIGN_OR_RETURN(const Failure failure,
                          FailCables(topology, 1, static_cast<uint64_t>(draw), [&](const Topology& left) {
                            return CheckReachable(left, collective).ok();
                          }));
    request.topology = &failure.topology;
    XCCL_ASSIGN_OR_RETURN(const Timed one, Time(request, [&] { return engine.Synthesize(request); }));
    XCCL_ASSIGN_OR_RETURN(const Timed two, Time(request, [&] { return Replan(plan, request); }));
    anew.seconds += one.seconds / kDraws;
    anew.ratio += one.ratio / kDraws;
    again.seconds += two.seconds / kDraws;
    again.simulation_s += two.simulation_s / kDraws;
    again.ratio += two.ratio / kDraws;
    worst = std::max(worst, two.ratio / one.ratio);
  }
  const auto ms = [](double seconds) { return fmt::format("{:.1f}", 1e3 * seconds); };
  const double faster = anew.seconds / again.seconds;
  table.Row(name, ToString(kind), whole.engine, ms(anew.seconds), ms(again.seconds), ms(again.simulation_s),
            fmt::format("{:.1f}", faster), fmt::format("{:.3f}", anew.ratio),
            fmt::format("{:.3f}", again.ratio), fmt::format("{:.2f}", worst));
  return faster;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) {
  using namespace xccl;
  std::vector<std::string> machines(argv + 1, argv + argc);
  if (machines.empty()) machines.assign(std::begin(kMachines), std::end(kMachines));
  MarkdownTable table({"machine", "collective", "plan by", "anew ms:", "replan ms:", "simulation ms:",
                       "anew ÷ replan:", "anew ÷ bound:", "repaired ÷ bound:", "worst:"});
  int rows = 0, ten_times = 0;
  for (const std::string& machine : machines) {
    for (const CollectiveKind kind : kKinds) {
      const StatusOr<double> faster = AddRow(machine, kind, table);
      if (!faster.ok()) {
        table.Row(machine, ToString(kind), faster.status().message(), "", "", "", "", "", "", "");
        continue;
      }
      ++rows;
      ten_times += *faster >= 10 ? 1 : 0;
    }
  }
  table.Print();
  fmt::print("\n{} of {} rows are ten times faster or more.\n", ten_times, rows);
  return 0;
}
