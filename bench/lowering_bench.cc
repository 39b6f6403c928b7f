// Measures the loss by lowering: simulated time of the program beside that of its schedule, in the pipelined
// model, for every engine that serves a collective on a machine of at most 64 ranks.
//   bazel run --config=release //bench:lowering [-- [--size=S] [--all] [TOPOLOGY [COLLECTIVE [ENGINE]]]]
// Without --all it prints only rows above 5 %, and how many there are in all.
//   bazel run --config=release //bench:lowering -- --waves
// prints what folding waves into passes does to large programs of forest (docs/ir.md §7).
#include <fmt/core.h>

#include <ctime>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "base/units.h"
#include "bench/markdown_table.h"
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

StatusOr<Collective> Whole(const Topology& topology, CollectiveKind kind) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(kind)) spec.root = Rank(0);
  return Collective::Create(spec);
}

void AddRow(const Wanted& wanted, const std::string& machine, const Topology& topology,
            const Collective& whole, const Engine& engine, MarkdownTable& table, Count& count) {
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
  const auto fail = [&](const std::string& why) {
    ++count.failed;
    PrintError(fmt::format("{} {} {}: {}\n", machine, ToString(whole.kind()), engine.name, why));
  };
  if (!lowered.ok()) return fail(lowered.status().message());
  const auto& [collective, program] = *lowered;
  const StatusOr<Simulation> timed = SimulateProgram(program, collective, topology, simulate);
  const std::vector<Violation> violations = VerifyProgram(program, collective, topology);
  if (!timed.ok() || !violations.empty())
    return fail(timed.ok() ? ToString(violations.front()) : timed.status().message());
  const double ratio = static_cast<double>(timed->time_ps) / static_cast<double>(planned);
  ++count.rows;
  if (ratio > kAllowed) ++count.above;
  if (!wanted.all && ratio <= kAllowed) return;
  const CollectiveSizes sizes(collective, wanted.size_bytes);
  const ProgramStats stats = Stats(program, sizes);
  table.Row(machine, ToString(whole.kind()), engine.name, fmt::format("{:.1f}", PsToUs(planned)),
            fmt::format("{:.1f}", PsToUs(timed->time_ps)), fmt::format("{:.3f}", ratio), program.slots,
            program.instances, NumPasses(program, sizes), stats.threadblocks / program.instances,
            stats.instructions, collective.num_chunks(), fmt::format("{:.3f}", seconds));
}

struct Waves {
  const char* machine;
  CollectiveKind kind;
  int64_t size_bytes;
};

constexpr Waves kWaves[] = {
    {"rail-2", CollectiveKind::kReduce, 1LL << 30},      {"rail-4", CollectiveKind::kReduce, 1LL << 30},
    {"dgx-a100", CollectiveKind::kReduce, 64LL << 20},   {"rail-2", CollectiveKind::kAllreduce, 1LL << 30},
    {"mi250x", CollectiveKind::kAllreduce, 1LL << 30},   {"mi250x", CollectiveKind::kAllgather, 64LL << 20},
    {"torus:8x8", CollectiveKind::kAllreduce, 1LL << 30}};

Status AddWaves(const Waves& waves, MarkdownTable& table) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology(waves.machine));
  XCCL_ASSIGN_OR_RETURN(const Collective whole, Whole(topology, waves.kind));
  const SynthesisRequest request{
      .topology = &topology, .collective = &whole, .size_bytes = waves.size_bytes, .allow_divergent = true};
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine("forest"));
  XCCL_ASSIGN_OR_RETURN(const Synthesis made, engine->Synthesize(request));
  const SimulateOptions simulate{.size_bytes = waves.size_bytes};
  const int64_t planned = Simulate(made.schedule, made.collective, topology, simulate).time_ps;
  std::vector<std::string> cells = {waves.machine, std::string(ToString(waves.kind)),
                                    FormatSize(waves.size_bytes)};
  for (const bool fold : {false, true}) {
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram lowered,
                          LowerFolded(made.schedule, made.collective, topology,
                                      {.size_bytes = waves.size_bytes, .fold = fold}));
    XCCL_ASSIGN_OR_RETURN(const Simulation timed,
                          SimulateProgram(lowered.program, lowered.collective, topology, simulate));
    const CollectiveSizes sizes(lowered.collective, waves.size_bytes);
    cells.push_back(std::to_string(Stats(lowered.program, sizes).instructions));
    cells.push_back(fmt::format("{:.2f}", static_cast<double>(timed.time_ps) / static_cast<double>(planned)));
  }
  table.Add(cells);
  return OkStatus();
}

int Fail(const Status& status) {
  PrintError(fmt::format("lowering: {}\n", status.message()));
  return 1;
}

int Main(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--waves") {
      MarkdownTable table({"machine", "collective", "size", "instructions:", "program ÷ schedule:",
                           "instructions, folded:", "program ÷ schedule, folded:"});
      for (const Waves& waves : kWaves)
        if (const Status status = AddWaves(waves, table); !status.ok()) return Fail(status);
      table.Print();
      return 0;
    }
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
  MarkdownTable table({"machine", "collective", "engine", "plan µs:", "program µs:", "ratio:", "slots:",
                       "instances:", "passes:", "blocks:", "instructions:", "chunks:", "lower, CPU s:"});
  std::vector<std::string> machines(std::begin(kMachines), std::end(kMachines));
  if (!wanted.names.empty() && wanted.names[0] != "*") machines = {wanted.names[0]};
  Count count;
  for (const std::string& machine : machines) {
    const StatusOr<Topology> loaded = LoadTopology(machine);
    if (!loaded.ok()) return Fail(loaded.status());
    const Topology& topology = *loaded;
    for (const CollectiveKind kind : kKinds) {
      if (wanted.names.size() > 1 && wanted.names[1] != "*" && wanted.names[1] != ToString(kind)) continue;
      const Collective whole = Whole(topology, kind).value();
      for (const Engine& engine : AllEngines()) {
        if (engine.asks_others || engine.searches_long) continue;
        if (wanted.names.size() > 2 && wanted.names[2] != engine.name) continue;
        AddRow(wanted, machine, topology, whole, engine, table, count);
      }
    }
  }
  if (wanted.all || count.above > 0) table.Print();
  fmt::print("\n{} rows, {} above {}, {} failed.\n", count.rows, count.above, kAllowed, count.failed);
  return count.failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(argc, argv); }
