// The stages one by one, in CPU milliseconds: synthesis, bound, simulation, verification, lowering and
// program verification of plans for 1 GiB. A stage's time per transfer should not grow with the plan.
//   bazel run --config=release //bench:stages [-- TOPOLOGY COLLECTIVE ENGINE ...]
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "bench/markdown_table.h"
#include "ir/bounds/bound.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kSize = 1LL << 30;

// The least CPU time of a call: of two, and of as many as half a second allows.
template <typename Work>
std::string LeastMs(const Work& work) {
  double least = std::numeric_limits<double>::infinity(), spent = 0;
  for (int calls = 0; calls < 2 || spent < 0.5; ++calls) {
    const std::clock_t began = std::clock();
    work();
    const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    spent += seconds;
    least = std::min(least, seconds);
  }
  const double ms = 1e3 * least;
  return ms < 100 ? fmt::format("{:.3g}", ms) : fmt::format("{:.0f}", ms);
}

Status AddRow(const std::string& name, const std::string& kind, const std::string& engine_name,
              MarkdownTable& table) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology(name));
  CollectiveSpec spec;
  XCCL_ASSIGN_OR_RETURN(spec.kind, ParseCollectiveKind(kind));
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(spec.kind)) spec.root = Rank(0);
  XCCL_ASSIGN_OR_RETURN(const Collective whole, Collective::Create(spec));
  XCCL_ASSIGN_OR_RETURN(const Engine* const engine, FindEngine(engine_name));
  const SynthesisRequest request{.topology = &topology, .collective = &whole, .size_bytes = kSize};
  XCCL_ASSIGN_OR_RETURN(const Synthesis made, engine->Synthesize(request));
  const Simulation simulation = Simulate(made.schedule, made.collective, topology, {.size_bytes = kSize});
  XCCL_ASSIGN_OR_RETURN(const Bound bound,
                        LowerBound(topology, made.collective, kSize, TimeModel::kPipelined));
  const auto lower = [&] {
    return LowerFolded(made.schedule, made.collective, topology, {.fold = false}).value().program;
  };
  const Program program = lower();
  table.Row(
      name, kind, engine_name, made.schedule.size(),
      fmt::format("{:.4f}", static_cast<double>(simulation.time_ps) / static_cast<double>(bound.bound_ps)),
      LeastMs([&] { (void)engine->Synthesize(request).ok(); }),
      LeastMs([&] { (void)LowerBound(topology, whole, kSize, TimeModel::kPipelined).ok(); }),
      LeastMs([&] { Simulate(made.schedule, made.collective, topology, {.size_bytes = kSize}); }),
      LeastMs([&] { VerifySchedule(made.schedule, made.collective, topology); }), LeastMs(lower),
      LeastMs([&] { VerifyProgram(program, made.collective, topology); }));
  return OkStatus();
}

int Main(std::vector<std::string> words) {
  if (words.empty())
    words = {"dgx-a100",    "allreduce", "auto",   "torus:16x16", "allgather", "greedy",
             "torus:32x32", "allgather", "greedy", "torus:32x32", "allgather", "ring"};
  MarkdownTable table({"machine", "collective", "engine", "transfers:", "ratio:", "synthesize ms:",
                       "bound ms:", "simulate ms:", "verify ms:", "lower ms:", "verify_program ms:"});
  for (size_t i = 0; i < words.size(); i += 3) {
    const Status status = i + 2 < words.size() ? AddRow(words[i], words[i + 1], words[i + 2], table)
                                               : UsageError("expected TOPOLOGY COLLECTIVE ENGINE ...");
    if (!status.ok()) {
      PrintError(fmt::format("stages: {}\n", status.message()));
      return ExitCode(status.code());
    }
  }
  table.Print();
  return 0;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(std::vector<std::string>(argv + 1, argv + argc)); }
