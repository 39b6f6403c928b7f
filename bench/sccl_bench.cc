// Asks smt every question that SCCL was timed on and checks the answers; CPU seconds stand beside SCCL's.
// Then come SCCL's printed bounds beside ours, and the fronts of the DGX-1.
//   bazel run --config=release //bench:sccl [-- rows | slow | bounds | fronts]      slow: rows of 5 s and
//   more
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "bench/markdown_table.h"
#include "ir/collective.h"
#include "ir/verify/verify_schedule.h"
#include "synth/engines.h"
#include "synth/smt/decider.h"
#include "synth/smt/pareto.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

enum class Sccl : uint8_t { kFound, kRefuted, kTimeout };
struct Row {
  const char* machine;
  CollectiveKind kind;
  int32_t root, chunks, steps, rounds;
  Sccl result;
  double cpu_s;
};

// SCCL with Z3 4.8.12, one thread of a 2.6 GHz VM, CPU seconds of the whole process.
constexpr Row kRows[] = {
    {"DGX1", CollectiveKind::kAllgather, 0, 1, 2, 2, Sccl::kFound, 0.34},
    {"DGX1", CollectiveKind::kAllgather, 0, 2, 2, 3, Sccl::kFound, 0.56},
    {"DGX1", CollectiveKind::kAllgather, 0, 2, 3, 3, Sccl::kFound, 0.50},
    {"DGX1", CollectiveKind::kAllgather, 0, 3, 4, 4, Sccl::kFound, 0.87},
    {"DGX1", CollectiveKind::kAllgather, 0, 3, 3, 4, Sccl::kFound, 1.45},
    {"DGX1", CollectiveKind::kAllgather, 0, 4, 5, 5, Sccl::kFound, 2.42},
    {"DGX1", CollectiveKind::kAllgather, 0, 5, 6, 6, Sccl::kFound, 7.74},
    {"DGX1", CollectiveKind::kAllgather, 0, 6, 7, 7, Sccl::kFound, 17.17},
    {"DGX1", CollectiveKind::kAllgather, 0, 6, 3, 7, Sccl::kFound, 25.10},
    {"DGX1", CollectiveKind::kAllgather, 0, 6, 2, 7, Sccl::kRefuted, 2.39},
    {"DGX1", CollectiveKind::kBroadcast, 0, 2, 2, 2, Sccl::kFound, 0.25},
    {"DGX1", CollectiveKind::kBroadcast, 0, 6, 3, 3, Sccl::kFound, 0.35},
    {"DGX1", CollectiveKind::kBroadcast, 0, 12, 4, 4, Sccl::kFound, 0.65},
    {"DGX1", CollectiveKind::kBroadcast, 0, 18, 5, 5, Sccl::kFound, 8.89},
    {"DGX1", CollectiveKind::kBroadcast, 0, 6, 3, 5, Sccl::kFound, 0.37},
    {"DGX1", CollectiveKind::kGather, 0, 1, 2, 2, Sccl::kFound, 0.35},
    {"DGX1", CollectiveKind::kGather, 0, 6, 7, 7, Sccl::kFound, 6.35},
    {"DGX1", CollectiveKind::kGather, 0, 6, 3, 7, Sccl::kFound, 4.63},
    {"DGX1", CollectiveKind::kScatter, 0, 6, 3, 7, Sccl::kFound, 23.41},
    {"DGX1", CollectiveKind::kReduceScatter, 0, 1, 2, 2, Sccl::kFound, 0.33},
    {"DGX1", CollectiveKind::kReduceScatter, 0, 6, 7, 7, Sccl::kFound, 16.02},
    {"DGX1", CollectiveKind::kReduceScatter, 0, 6, 3, 7, Sccl::kFound, 23.86},
    {"DGX1", CollectiveKind::kReduce, 0, 2, 2, 2, Sccl::kFound, 0.29},
    {"DGX1", CollectiveKind::kAlltoall, 0, 1, 2, 3, Sccl::kFound, 4.49},
    {"DGX1", CollectiveKind::kAlltoall, 0, 1, 3, 3, Sccl::kFound, 5.74},
    {"DGX1", CollectiveKind::kAlltoall, 0, 1, 2, 2, Sccl::kRefuted, 1.47},
    {"DGX2", CollectiveKind::kAllgather, 0, 1, 1, 15, Sccl::kTimeout, 119.46},
    {"DGX2", CollectiveKind::kAllgather, 0, 1, 4, 15, Sccl::kTimeout, 120.41},
    {"DGX2", CollectiveKind::kBroadcast, 0, 1, 4, 4, Sccl::kFound, 0.59},
    {"DGX2", CollectiveKind::kAlltoall, 0, 1, 1, 15, Sccl::kTimeout, 120.56},
    {"AMD4", CollectiveKind::kAllgather, 0, 1, 2, 2, Sccl::kFound, 0.23},
    {"AMD4", CollectiveKind::kAlltoall, 0, 1, 2, 2, Sccl::kFound, 0.27},
    {"AMD8", CollectiveKind::kAllgather, 0, 1, 1, 1, Sccl::kFound, 0.37},
    {"AMD8", CollectiveKind::kAllgather, 0, 5, 1, 1, Sccl::kFound, 1.15},
    {"DGX1", CollectiveKind::kAlltoall, 0, 3, 8, 8, Sccl::kTimeout, 120.28},
    {"DGX1", CollectiveKind::kAlltoall, 0, 3, 2, 8, Sccl::kFound, 100.69},
    {"DGX1", CollectiveKind::kAllreduce, 0, 1, 2, 2, Sccl::kFound, 0.91},
    {"DGX1", CollectiveKind::kAllreduce, 0, 1, 3, 3, Sccl::kFound, 0.92},
    {"Ring:8", CollectiveKind::kAlltoall, 0, 1, 4, 8, Sccl::kFound, 4.58},
    {"Ring:16", CollectiveKind::kAllgather, 0, 1, 8, 8, Sccl::kFound, 1.08},
    {"Ring:16", CollectiveKind::kAllgather, 0, 2, 15, 15, Sccl::kTimeout, 237.62},
    {"Line:8", CollectiveKind::kAllgather, 0, 1, 7, 7, Sccl::kFound, 0.36},
    {"Star:8", CollectiveKind::kAllgather, 0, 1, 2, 7, Sccl::kFound, 0.30},
    {"Star:8", CollectiveKind::kAllgather, 0, 1, 2, 8, Sccl::kFound, 0.31},
    {"Star:8", CollectiveKind::kBroadcast, 1, 1, 2, 2, Sccl::kFound, 0.23},
    {"Star:8", CollectiveKind::kGather, 0, 1, 1, 1, Sccl::kFound, 0.26},
    {"Star:8", CollectiveKind::kAlltoall, 0, 1, 2, 12, Sccl::kFound, 1.79},
    {"FullyConnected:4", CollectiveKind::kAllgather, 0, 1, 1, 1, Sccl::kFound, 0.23},
    {"FullyConnected:8", CollectiveKind::kAllgather, 0, 1, 1, 1, Sccl::kFound, 0.38},
    {"FullyConnected:8", CollectiveKind::kAlltoall, 0, 1, 1, 1, Sccl::kFound, 3.95},
    {"FullyConnected:8", CollectiveKind::kBroadcast, 0, 7, 2, 2, Sccl::kFound, 0.56},
    {"FullyConnected:16", CollectiveKind::kAllgather, 0, 1, 1, 1, Sccl::kTimeout, 238.29},
    {"FullyConnected:16", CollectiveKind::kAlltoall, 0, 1, 1, 1, Sccl::kTimeout, 237.54},
    {"FullyConnected:8", CollectiveKind::kReduceScatter, 0, 1, 1, 1, Sccl::kFound, 0.41},
    {"HubAndSpoke:4", CollectiveKind::kAllgather, 0, 1, 1, 3, Sccl::kFound, 0.26},
    {"HubAndSpoke:4", CollectiveKind::kAllgather, 0, 1, 2, 3, Sccl::kFound, 0.27},
    {"HubAndSpoke:8", CollectiveKind::kAllgather, 0, 1, 1, 7, Sccl::kFound, 0.73},
    {"HubAndSpoke:8", CollectiveKind::kAllgather, 0, 1, 7, 7, Sccl::kFound, 4.00},
    {"HubAndSpoke:8", CollectiveKind::kAllgather, 0, 1, 3, 7, Sccl::kFound, 3.05},
    {"HubAndSpoke:8", CollectiveKind::kAlltoall, 0, 1, 1, 7, Sccl::kFound, 25.10},
    {"Ring:4", CollectiveKind::kAllgather, 0, 1, 2, 2, Sccl::kFound, 0.24},
    {"Ring:4", CollectiveKind::kAllgather, 0, 2, 3, 3, Sccl::kFound, 0.27},
    {"Ring:4", CollectiveKind::kAlltoall, 0, 1, 2, 2, Sccl::kFound, 0.29},
    {"Ring:4", CollectiveKind::kAlltoall, 0, 1, 3, 3, Sccl::kFound, 0.32},
    {"Ring:4", CollectiveKind::kReduceScatter, 0, 2, 3, 3, Sccl::kFound, 0.28},
    {"Ring:8", CollectiveKind::kAllgather, 0, 1, 4, 4, Sccl::kFound, 0.34},
    {"Ring:8", CollectiveKind::kAllgather, 0, 2, 7, 7, Sccl::kFound, 0.57},
    {"Ring:8", CollectiveKind::kAllgather, 0, 2, 4, 7, Sccl::kFound, 0.50},
    {"Ring:8", CollectiveKind::kBroadcast, 0, 2, 4, 4, Sccl::kFound, 0.26},
    {"Ring:8", CollectiveKind::kBroadcast, 0, 10, 8, 8, Sccl::kFound, 0.48},
    {"Ring:8", CollectiveKind::kGather, 0, 2, 4, 7, Sccl::kFound, 0.55},
    {"HubAndSpoke:8", CollectiveKind::kAlltoall, 0, 1, 7, 7, Sccl::kTimeout, 119.84},
};

// The machines are as SCCL has them, with links of one unit a round. A star's hub is a rank; a hub that is a
// switch has ports of one unit. AMD8 joins every two GPUs by 5 or 6 units.
Topology FromUnits(const std::string& name, const std::vector<std::vector<int>>& units) {
  TopologySpec spec;
  spec.name = name;
  for (size_t r = 0; r < units.size(); ++r)
    spec.nodes.push_back({.kind = NodeKind::kGpu, .id = std::to_string(r), .host = {}});
  for (size_t a = 0; a < units.size(); ++a)
    for (size_t b = 0; b < units.size(); ++b)
      if (units[a][b] > 0)
        spec.links.push_back({.from = NodeId(static_cast<int32_t>(a)),
                              .to = NodeId(static_cast<int32_t>(b)),
                              .bandwidth_bytes_per_s = units[a][b] * int64_t{1'000'000'000},
                              .latency_ps = 700'000});
  return Topology::Create(std::move(spec)).value();
}

Topology MachineOf(const std::string& name) {
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  const int n = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  if (kind == "DGX1") return LoadTopology("dgx1", {}).value();
  if (kind == "DGX2") return LoadTopology("dgx2", {}).value();
  if (kind == "Ring") return LoadTopology(fmt::format("ring:{}", n), {}).value();
  if (kind == "Line") return LoadTopology(fmt::format("mesh:{}", n), {}).value();
  if (kind == "FullyConnected") return LoadTopology(fmt::format("full-mesh:{}", n), {}).value();
  if (kind == "HubAndSpoke") return LoadTopology(fmt::format("nvswitch:{}", n), {}).value();
  if (kind == "AMD4") return LoadTopology("torus:2x2", {}).value();
  if (kind == "Star") {
    std::vector<std::vector<int>> units(static_cast<size_t>(n), std::vector<int>(static_cast<size_t>(n), 0));
    for (size_t r = 1; r < units.size(); ++r) units[0][r] = units[r][0] = 1;
    return FromUnits(name, units);
  }
  return FromUnits(name, {{0, 5, 6, 6, 5, 6, 5, 5},
                          {5, 0, 5, 5, 6, 5, 6, 6},
                          {6, 5, 0, 6, 5, 6, 5, 5},
                          {6, 5, 6, 0, 5, 6, 5, 5},
                          {5, 6, 5, 5, 0, 5, 6, 6},
                          {6, 5, 6, 6, 5, 0, 5, 5},
                          {5, 6, 5, 5, 6, 5, 0, 6},
                          {5, 6, 5, 5, 6, 5, 6, 0}});
}

Collective CollectiveOf(CollectiveKind kind, int32_t ranks, int32_t root) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(ranks);
  if (IsRooted(kind)) spec.root = Rank(root);
  return Collective::Create(spec).value();
}

// CPU seconds of all threads.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// "found": verified, and it takes no more steps and rounds.
std::string Checked(const Synthesis& made, const Topology& topology, int32_t steps, int64_t rounds) {
  const Status verified = ToStatus(VerifySchedule(made.schedule, made.collective, topology));
  if (!verified.ok()) return "WRONG: " + verified.message();
  const smt::StepsAndRounds took = smt::Take(made.schedule, topology, smt::MakeMachine(topology));
  if (took.steps > steps || took.rounds > rounds)
    return fmt::format("WRONG: {} steps, {} rounds", took.steps, took.rounds);
  return "found";
}

std::string Told(const StatusOr<Synthesis>& made, const Topology& topology, const Row& row) {
  if (made.ok()) return Checked(*made, topology, row.steps, row.rounds);
  return made.status().code() == StatusCode::kInfeasible ? "refuted" : made.status().message();
}

// The bar: found or refuted, and below SCCL's time in total. It is a tenth of that time where SCCL's is above
// 5 s, and 10 s where SCCL timed out.
bool MeetsBar(const Row& row, const std::string& told, double cpu_s) {
  if (told != (row.result == Sccl::kRefuted ? "refuted" : "found")) return false;
  if (row.result == Sccl::kTimeout) return cpu_s <= 10;
  return row.cpu_s > 5 ? cpu_s <= row.cpu_s / 10 : cpu_s <= row.cpu_s;
}

// "6 steps, 6 rounds, 5 chunks a part, found by z3, ...": the engine whose plan it is, or z3.
std::string FoundBy(const std::string& note) {
  static constexpr std::string_view kBefore = "found by ";
  const size_t at = note.find(kBefore);
  if (at == std::string::npos) return "";
  const size_t from = at + kBefore.size();
  return note.substr(from, note.find_first_of(",; ", from) - from);
}

// Asks all questions, and shows the ones that took SCCL so many seconds or more.
void RunRows(double least_s) {
  double ours = 0, theirs = 0;
  int missed = 0, faster = 0;
  MarkdownTable table(
      {"machine", "collective", "C:", "S:", "R:", "answer", "by", "CPU s:", "SCCL s:", "times:"});
  for (const Row& row : kRows) {
    const Topology topology = MachineOf(row.machine);
    const Collective collective = CollectiveOf(row.kind, topology.num_ranks(), row.root);
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    request.limits.chunks = row.chunks;
    request.limits.steps = row.steps;
    request.limits.rounds = row.rounds;
    request.allow_divergent = true;
    const double began = CpuSeconds();
    const StatusOr<Synthesis> made = FindEngine("smt").value()->Synthesize(request);
    const double cpu_s = CpuSeconds() - began;
    const std::string told = Told(made, topology, row);
    const bool met = MeetsBar(row, told, cpu_s);
    missed += met ? 0 : 1;
    ours += cpu_s;
    theirs += row.cpu_s;
    faster += cpu_s <= row.cpu_s ? 1 : 0;
    if (row.cpu_s < least_s) continue;
    table.Row(row.machine, ToString(row.kind), row.chunks, row.steps, row.rounds,
              met ? told : "MISS: " + told, made.ok() ? FoundBy(made->note) : "",
              fmt::format("{:.3f}", cpu_s),
              fmt::format("{}{:.2f}", row.result == Sccl::kTimeout ? "> " : "", row.cpu_s),
              fmt::format("{:.0f}", row.cpu_s / std::max(cpu_s, 1e-3)));
  }
  table.Print();
  fmt::print(
      "\n{} rows in all: {:.1f} s of CPU, SCCL {:.0f} s; {} rows are no slower than SCCL, {} miss their "
      "bar.\n\n",
      std::size(kRows), ours, theirs, faster, missed);
}

struct PrintedBound {
  const char* machine;
  CollectiveKind kind;
  const char* sccl;
};
constexpr PrintedBound kBounds[] = {
    {"DGX1", CollectiveKind::kAllgather, "7/6"},
    {"DGX1", CollectiveKind::kBroadcast, "1/6"},
    {"DGX1", CollectiveKind::kGather, "7/6"},
    {"DGX1", CollectiveKind::kReduceScatter, "7/6"},
    {"DGX1", CollectiveKind::kAlltoall, "5/3"},
    {"Ring:8", CollectiveKind::kAllgather, "7/2"},
    {"Ring:8", CollectiveKind::kAlltoall, "6"},
    {"Star:8", CollectiveKind::kAllgather, "7"},
    {"HubAndSpoke:8", CollectiveKind::kAllgather, "7"},
    {"HubAndSpoke:8", CollectiveKind::kAlltoall, "7"},
    {"FullyConnected:8", CollectiveKind::kBroadcast, "1/7"},
    {"AMD8", CollectiveKind::kAllgather, "7/38"},
    {"AMD8", CollectiveKind::kAlltoall, "11/58"},
};

void RunBounds() {
  MarkdownTable table({"machine", "collective", "R/C at least", "by", "CPU s:", "SCCL says"});
  for (const PrintedBound& row : kBounds) {
    const Topology topology = MachineOf(row.machine);
    const Collective collective = CollectiveOf(row.kind, topology.num_ranks(), 0);
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    const double began = CpuSeconds();
    const std::unique_ptr<smt::Decider> decider = smt::Decider::Create(request, AllEngines()).value();
    const auto [bound, by] = decider->BoundOf({});
    table.Row(row.machine, ToString(row.kind), smt::ToText(bound), smt::ToString(by),
              fmt::format("{:.3f}", CpuSeconds() - began), row.sccl);
  }
  table.Print();
  fmt::print("\n");
}

void RunFronts() {
  MarkdownTable table({"collective", "C:", "S:", "R:", "R/C", "bound", "by", "found by", "answer", "front",
                       "CPU s of the front:"});
  const Topology topology = MachineOf("DGX1");
  for (const CollectiveKind kind :
       {CollectiveKind::kAllgather, CollectiveKind::kAlltoall, CollectiveKind::kAllreduce}) {
    const Collective collective = CollectiveOf(kind, topology.num_ranks(), 0);
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    request.allow_divergent = true;
    const double began = CpuSeconds();
    const StatusOr<smt::Front> front = smt::FindFront(request, AllEngines());
    const double cpu_s = CpuSeconds() - began;
    if (!front.ok()) {
      table.Row(ToString(kind), "", "", "", "", "", "", "", front.status().message(), "", "");
      continue;
    }
    for (const smt::FrontPoint& point : front->points)
      table.Row(ToString(kind), point.chunks, point.steps, point.rounds,
                smt::ToText({point.rounds, point.chunks}), smt::ToText(point.bound),
                smt::ToString(point.proved_by), point.found_by,
                Checked(point.made, topology, point.steps, point.rounds),
                front->complete ? "complete" : "stopped by " + front->stopped, fmt::format("{:.2f}", cpu_s));
  }
  table.Print();
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  if (only.empty() || only == "rows" || only == "slow") xccl::RunRows(only == "slow" ? 5 : 0);
  if (only.empty() || only == "bounds") xccl::RunBounds();
  if (only.empty() || only == "fronts") xccl::RunFronts();
  return 0;
}
