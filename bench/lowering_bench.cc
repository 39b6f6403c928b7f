// Measures what lowering loses: simulated time of the program beside that of its schedule, in the pipelined
// model, for every engine that serves a collective on a machine of at most 64 ranks.
//   bazel run --config=release //bench:lowering [-- [--size=S] [--all] [TOPOLOGY [COLLECTIVE [ENGINE]]]]
// Without --all it prints only rows above 5 %, and how many there are in all.
#include <fmt/core.h>

#include <ctime>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/verify/verify_program.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr double kAllowed = 1.05;

constexpr const char* kMachines[] = {"torus:4x4",        "torus:4x4x4", "torus:8x8",   "mesh:4x4",
                                     "hypercube:4",      "nvswitch:8",  "full-mesh:8", "ring:8",
                                     "leaf-spine:2x4x4", "dgx1",        "dgx-a100",    "mi250x"};
constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                     CollectiveKind::kReduce,        CollectiveKind::kGather,
                                     CollectiveKind::kScatter,       CollectiveKind::kAlltoall};

struct Wanted {
  int64_t size_bytes = 64LL << 20;
  bool all = false;
  std::vector<std::string> names;  // topology, collective, engine
};

struct Count {
  int rows = 0, above = 0, failed = 0;
};

void PrintRow(const Wanted& wanted, const std::string& machine, const Topology& topology,
              const Collective& whole, const Engine& engine, Count& count) {
  const SynthesisRequest request{
      .topology = &topology, .collective = &whole, .size_bytes = wanted.size_bytes, .allow_divergent = true};
  if (!engine.Serves(request).ok()) return;
  const StatusOr<Synthesis> made = engine.Synthesize(request);
  if (!made.ok()) return;
  const SimulateOptions simulate{.size_bytes = wanted.size_bytes};
  const int64_t planned = Simulate(made->schedule, made->collective, topology, simulate).time_ps;
  const std::clock_t start = std::clock();
  const StatusOr<LoweredProgram> lowered =
      LowerFolded(made->schedule, made->collective, topology, {.size_bytes = wanted.size_bytes});
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const std::string name = fmt::format("{:<18} {:<15} {:<20}", machine, ToString(whole.kind()), engine.name);
  if (!lowered.ok()) {
    ++count.failed;
    fmt::print("{} {}\n", name, lowered.status().message());
    return;
  }
  const auto& [collective, program] = *lowered;
  const StatusOr<Simulation> timed = SimulateProgram(program, collective, topology, simulate);
  const std::vector<Violation> violations = VerifyProgram(program, collective, topology);
  if (!timed.ok() || !violations.empty()) {
    ++count.failed;
    fmt::print("{} {}\n", name, timed.ok() ? ToString(violations.front()) : timed.status().message());
    return;
  }
  const double ratio = static_cast<double>(timed->time_ps) / static_cast<double>(planned);
  ++count.rows;
  if (ratio > kAllowed) ++count.above;
  if (!wanted.all && ratio <= kAllowed) return;
  const CollectiveSizes sizes(collective, wanted.size_bytes);
  const ProgramStats stats = Stats(program, sizes);
  fmt::print("{} {:>10.1f} {:>10.1f} {:>6.3f} {:>5} {:>5} {:>5} {:>6} {:>8} {:>7} {:>7.3f}\n", name,
             PsToUs(planned), PsToUs(timed->time_ps), ratio, program.slots, program.instances,
             NumPasses(program, sizes), stats.threadblocks / program.instances, stats.instructions,
             collective.num_chunks(), seconds);
}

int Fail(const Status& status) {
  fmt::print(stderr, "lowering: {}\n", status.message());
  return 1;
}

int Main(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--all") {
      wanted.all = true;
    } else if (arg.starts_with("--size=")) {
      const StatusOr<int64_t> size = ParseSize(arg.substr(7));
      if (!size.ok()) return Fail(size.status());
      wanted.size_bytes = *size;
    } else {
      wanted.names.push_back(arg);
    }
  }
  fmt::print("{:<18} {:<15} {:<20} {:>10} {:>10} {:>6} {:>5} {:>5} {:>5} {:>6} {:>8} {:>7} {:>7}\n",
             "topology", "collective", "engine", "plan us", "program us", "ratio", "slots", "inst", "pass",
             "blocks", "instrs", "chunks", "lower s");
  std::vector<std::string> machines(std::begin(kMachines), std::end(kMachines));
  if (!wanted.names.empty() && wanted.names[0] != "*") machines = {wanted.names[0]};
  Count count;
  for (const std::string& machine : machines) {
    const StatusOr<Topology> loaded = LoadTopology(machine);
    if (!loaded.ok()) return Fail(loaded.status());
    const Topology& topology = *loaded;
    for (const CollectiveKind kind : kKinds) {
      if (wanted.names.size() > 1 && wanted.names[1] != "*" && wanted.names[1] != ToString(kind)) continue;
      CollectiveSpec spec;
      spec.kind = kind;
      spec.ranks = AllRanks(topology.num_ranks());
      if (IsRooted(kind)) spec.root = Rank(0);
      const Collective whole = Collective::Create(spec).value();
      for (const Engine& engine : AllEngines()) {
        if (engine.asks_others || engine.searches_long) continue;
        if (wanted.names.size() > 2 && wanted.names[2] != engine.name) continue;
        PrintRow(wanted, machine, topology, whole, engine, count);
      }
    }
  }
  fmt::print("{} rows, {} above {}, {} failed\n", count.rows, count.above, kAllowed, count.failed);
  return count.failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(argc, argv); }
