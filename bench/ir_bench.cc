// Measures the simulator and the lower bounds on an allgather in which every rank's chunk spreads breadth
// first over the links between GPUs. Best of three, wall clock.
//   ir_bench [TOPOLOGY...]        (bazel run -c opt //bench:ir_bench -- torus:32x32)
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "ir/bounds/bound.h"
#include "ir/simulate/simulate.h"
#include "topologies/load/load.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

constexpr int64_t kSizeBytes = 64LL << 20;

double BestMs(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    best = std::min(best, spent.count());
  }
  return best;
}

// A rank tries its neighbours in an order that turns with the source, which spreads the load.
Schedule SpreadBreadthFirst(const Topology& topology) {
  const NeighbourTable neighbours = GpuNeighbours(topology);
  Schedule schedule;
  schedule.num_chunks = topology.num_ranks();
  for (int32_t source = 0; source < topology.num_ranks(); ++source) {
    std::vector<int32_t> depth(static_cast<size_t>(topology.num_ranks()), -1);
    std::vector<Rank> queue = {Rank(source)};
    depth[source] = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      const std::span<const Neighbour> near = neighbours[queue[i]];
      for (size_t k = 0; k < near.size(); ++k) {
        const Neighbour& next = near[(k + i) % near.size()];
        if (depth[next.rank.index()] >= 0) continue;
        depth[next.rank.index()] = depth[queue[i].index()] + 1;
        schedule.Add(ChunkId(source), 1, queue[i], next.rank, next.path, TransferOp::kCopy,
                     depth[queue[i].index()]);
        queue.push_back(next.rank);
      }
    }
  }
  Normalize(schedule);
  return schedule;
}

Status Row(const std::string& name) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology(name));
  CollectiveSpec spec;
  spec.ranks = AllRanks(topology.num_ranks());
  const auto of_kind = [&](CollectiveKind kind) {
    spec.kind = kind;
    return Collective::Create(spec).value();
  };
  const Collective allgather = of_kind(CollectiveKind::kAllgather);
  XCCL_RETURN_IF_ERROR(CheckReachable(topology, allgather));
  const Schedule schedule = SpreadBreadthFirst(topology);
  std::string row = fmt::format("{:<20} {:>10}", name, schedule.size());
  for (TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking}) {
    SimulateOptions options;
    options.size_bytes = kSizeBytes;
    options.model = model;
    row += fmt::format(" {:>10.2f}", BestMs([&] { Simulate(schedule, allgather, topology, options); }));
  }
  for (CollectiveKind kind :
       {CollectiveKind::kAllgather, CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
    const Collective collective = of_kind(kind);
    row += fmt::format(" {:>10.2f}", BestMs([&] {
                         (void)LowerBound(topology, collective, kSizeBytes, TimeModel::kPipelined).ok();
                       }));
  }
  fmt::print("{}\n", row);
  return OkStatus();
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) {
  std::vector<std::string> topologies(argv + 1, argv + argc);
  if (topologies.empty())
    topologies = {"torus:8x8", "torus:16x16", "torus:32x32", "mesh:32x32", "hypercube:10", "ring:1024"};
  fmt::print(
      "{:<20} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n{:<20} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
      "# milliseconds", "", "pipelined", "blocking", "bound of", "bound of", "bound of", "# topology",
      "transfers", "simulation", "simulation", "allgather", "allreduce", "alltoall");
  for (const std::string& topology : topologies) {
    if (const xccl::Status status = xccl::Row(topology); !status.ok()) {
      fmt::print(stderr, "ir_bench: {}\n", status.message());
      return xccl::ExitCode(status.code());
    }
  }
  return 0;
}
