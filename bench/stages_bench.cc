// One table over the stages: synthesis, bound, simulation, verification, lowering, program verification and
// CPU execution. Each row says how many transfers it handled, so rows of one stage can be compared: the rate
// should not fall as the input grows.
//   bazel run --config=release //bench:stages [-- --benchmark_filter=lower]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ir/bounds/bound.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "runtime/cpu/run_program.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kSize = 1LL << 30;

template <typename T>
T OrDie(StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "bench: %s\n", result.status().message().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

struct Case {
  const char* topology;
  CollectiveKind kind;
  const char* engine;
};

Collective Whole(const Topology& topology, CollectiveKind kind) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  return OrDie(Collective::Create(std::move(spec)));
}

Synthesis Make(const Topology& topology, const Case& work) {
  const Collective collective = Whole(topology, work.kind);
  const SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = kSize};
  return OrDie(OrDie(FindEngine(work.engine))->Synthesize(request));
}

void CountItems(benchmark::State& state, const Schedule& schedule) {
  state.SetItemsProcessed(state.iterations() * schedule.size());
  state.counters["transfers"] = static_cast<double>(schedule.size());
}

void BenchSynthesize(benchmark::State& state, const Case& work) {
  const Topology topology = OrDie(LoadTopology(work.topology));
  Synthesis made = Make(topology, work);
  for (auto _ : state) made = Make(topology, work);
  CountItems(state, made.schedule);
  const Simulation simulation = Simulate(made.schedule, made.collective, topology, {.size_bytes = kSize});
  const Bound bound = OrDie(LowerBound(topology, made.collective, kSize, TimeModel::kPipelined));
  state.counters["ratio"] = static_cast<double>(simulation.time_ps) / static_cast<double>(bound.bound_ps);
}

void BenchBound(benchmark::State& state, const Case& work) {
  const Topology topology = OrDie(LoadTopology(work.topology));
  const Collective collective = Whole(topology, work.kind);
  for (auto _ : state)
    benchmark::DoNotOptimize(OrDie(LowerBound(topology, collective, kSize, TimeModel::kPipelined)).bound_ps);
}

void BenchSimulate(benchmark::State& state, const Case& work) {
  const Topology topology = OrDie(LoadTopology(work.topology));
  const Synthesis made = Make(topology, work);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        Simulate(made.schedule, made.collective, topology, {.size_bytes = kSize}).time_ps);
  CountItems(state, made.schedule);
}

void BenchVerify(benchmark::State& state, const Case& work) {
  const Topology topology = OrDie(LoadTopology(work.topology));
  const Synthesis made = Make(topology, work);
  for (auto _ : state)
    benchmark::DoNotOptimize(VerifySchedule(made.schedule, made.collective, topology).size());
  CountItems(state, made.schedule);
}

Program Lowered(const Synthesis& made, const Topology& topology) {
  return OrDie(LowerFolded(made.schedule, made.collective, topology, {.fold = false})).program;
}

void BenchLower(benchmark::State& state, const Case& work) {
  const Topology topology = OrDie(LoadTopology(work.topology));
  const Synthesis made = Make(topology, work);
  for (auto _ : state) benchmark::DoNotOptimize(Lowered(made, topology).dependencies.size());
  CountItems(state, made.schedule);
}

void BenchVerifyProgram(benchmark::State& state, const Case& work) {
  const Topology topology = OrDie(LoadTopology(work.topology));
  const Synthesis made = Make(topology, work);
  const Program program = Lowered(made, topology);
  for (auto _ : state) benchmark::DoNotOptimize(VerifyProgram(program, made.collective, topology).size());
  CountItems(state, made.schedule);
}

// 64 MiB on CPU threads, every element checked outside the timed part; `busbw` as nccl-tests defines it.
void BenchRun(benchmark::State& state, const Case& work) {
  const Topology topology = OrDie(LoadTopology(work.topology));
  const Synthesis made = Make(topology, work);
  const Program program = Lowered(made, topology);
  double seconds = 0, busbw = 0;
  for (auto _ : state) {
    const std::vector<RunRow> rows =
        OrDie(RunProgram(program, made.collective, {.iterations = 5, .warmup = 1, .in_place = false}));
    if (!AllRight(rows)) state.SkipWithError("elements are wrong");
    seconds = rows.front().time_us / 1e6;
    busbw = rows.front().busbw_gb_per_s;
    state.SetIterationTime(seconds);
  }
  state.counters["busbw"] = busbw;
}

void Register() {
  static constexpr Case kCases[] = {
      {"dgx-a100", CollectiveKind::kAllreduce, "auto"},
      {"torus:16x16", CollectiveKind::kAllgather, "greedy"},
      {"torus:32x32", CollectiveKind::kAllgather, "greedy"},
      {"torus:32x32", CollectiveKind::kAllgather, "ring"},
  };
  static constexpr struct {
    const char* stage;
    void (*run)(benchmark::State&, const Case&);
  } kStages[] = {
      {"synthesize", BenchSynthesize}, {"bound", BenchBound}, {"simulate", BenchSimulate},
      {"verify", BenchVerify},         {"lower", BenchLower}, {"verify_program", BenchVerifyProgram},
  };
  static constexpr Case kRuns[] = {
      {"nvswitch:2", CollectiveKind::kAllreduce, "auto"},
      {"nvswitch:4", CollectiveKind::kAllreduce, "auto"},
      {"dgx-a100", CollectiveKind::kAllgather, "auto"},
  };
  for (const Case& work : kRuns) {
    const std::string name =
        std::string("run/") + work.topology + "/" + std::string(ToString(work.kind)) + "/cpu";
    benchmark::RegisterBenchmark(name.c_str(), BenchRun, work)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  for (const auto& stage : kStages) {
    for (const Case& work : kCases) {
      const std::string name = std::string(stage.stage) + "/" + work.topology + "/" +
                               std::string(ToString(work.kind)) + "/" + work.engine;
      benchmark::RegisterBenchmark(name.c_str(), stage.run, work)->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  xccl::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
