// Allgather of 1 GiB by greedy beside what TACOS 1.3.0 reports (best of several runs, a 2-core 2.6 GHz Xeon):
// time of the plan in the blocking model and seconds to find it. Arguments: further TOPOLOGY arguments to
// time likewise.
#include <fmt/core.h>

#include <ctime>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "synth/greedy/greedy.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

struct Row {
  std::string topology;
  int32_t chunks;
  double tacos_us;  // 0: not known
  double tacos_s;
};

int PrintRow(const Row& row) {
  const StatusOr<Topology> topology = LoadTopology(row.topology);
  if (!topology.ok()) {
    fmt::print(stderr, "{}\n", topology.status().message());
    return 1;
  }
  CollectiveSpec spec;
  spec.ranks = AllRanks(topology->num_ranks());
  const Collective allgather = Collective::Create(spec).value();
  SynthesisRequest request;
  request.topology = &*topology;
  request.collective = &allgather;
  request.size_bytes = int64_t{1} << 30;
  request.model = TimeModel::kBlocking;
  request.limits.chunks = row.chunks;
  const std::clock_t start = std::clock();
  const StatusOr<Synthesis> made = GreedyEngine().Synthesize(request);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!made.ok()) {
    fmt::print(stderr, "{}: {}\n", row.topology, made.status().message());
    return 1;
  }
  const Simulation simulation = Simulate(made->schedule, made->collective, *topology,
                                         {.size_bytes = request.size_bytes, .model = request.model});
  const StatusOr<Bound> bound =
      LowerBound(*topology, allgather, request.size_bytes, request.model, BoundEffort::kFast);
  const double time_us = PsToUs(simulation.time_ps);
  fmt::print("{:<24} {:>6} {:>6} {:>10.1f} {:>7.3f} {:>9.4f} {:>10} {:>8} {:>9}\n",
             row.topology.substr(0, row.topology.find('@')), topology->num_ranks(), row.chunks, time_us,
             bound.ok() && bound->bound_ps > 0 ? time_us / PsToUs(bound->bound_ps) : 0.0, seconds,
             row.tacos_us > 0 ? fmt::format("{:.1f}", row.tacos_us) : "-",
             row.tacos_us > 0 ? fmt::format("{:.3f}", time_us / row.tacos_us) : "-",
             row.tacos_s > 0 ? fmt::format("{:.4f}", row.tacos_s) : "-");
  return 0;
}

int Main(int argc, char** argv) {
  std::vector<Row> rows = {
      {"mesh:4x4", 1, 10004, 0.0002},      {"mesh:8x8", 1, 10016, 0.0095},
      {"mesh:16x16", 1, 10064, 0.78},      {"mesh:32x32", 1, 10256, 80.0},
      {"torus:4x4", 1, 6252.5, 0.0002},    {"torus:8x8", 1, 5321, 0.0066},
      {"torus:16x16", 1, 5110.6, 0.54},    {"torus:32x32", 1, 5168.1, 71.5},
      {"torus:4x4", 16, 4717.5, 0.018},    {"torus:8x8", 16, 5067.9, 1.57},
      {"torus:4x4x4", 1, 3443, 0.005},     {"torus:8x8x8", 1, 3402.4, 4.19},
      {"torus:10x10x10", 1, 3423.5, 57.6}, {"hypercube:4", 1, 6252.5, 0.0002},
      {"hypercube:6", 1, 3443, 0.005},     {"hypercube:8", 1, 2516, 0.31},
      {"hypercube:10", 1, 2063.2, 35.0},   {"full-mesh:8", 1, 2500.5, 0.0001},
      {"full-mesh:16", 1, 1250.5, 0.0002}, {"full-mesh:64", 1, 313, 0.0056},
      {"full-mesh:8", 4, 3127.5, 0.0002},  {"full-mesh:64", 4, 393.1, 0.0363},
      {"nvswitch:8", 4, 18757.5, 0.0003},  {"nvswitch:16", 4, 19390.5, 0.0022},
      {"nvswitch:64", 4, 20252.9, 0.0675},
  };
  for (Row& row : rows)
    row.topology += row.topology.starts_with("nvswitch") ? "@bandwidth=50GiB/s,latency=250ns"
                                                         : "@bandwidth=50GiB/s,latency=500ns";
  for (int i = 1; i < argc; ++i) rows.push_back({argv[i], 1, 0, 0});
  fmt::print("allgather 1 GiB, blocking model, links 50 GiB/s, 500 ns\n");
  fmt::print("{:<24} {:>6} {:>6} {:>10} {:>7} {:>9} {:>10} {:>8} {:>9}\n", "topology", "ranks", "chunks",
             "greedy us", "ratio", "CPU s", "TACOS us", "relative", "TACOS s");
  int failed = 0;
  for (const Row& row : rows) failed |= PrintRow(row);
  return failed;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(argc, argv); }
