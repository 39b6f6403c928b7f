#include "tests/testing/kernel_cases.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"
#include "ir/verify/verify_program.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "tests/testing/collectives.h"

namespace xccl::testing {
namespace {

// Each algorithm has its own cut: whole parts, three equal chunks, or chunks of unequal weights.
Collective Cut(const Collective& collective, Algorithm algorithm) {
  if (algorithm == Algorithm::kDirect) return collective;
  if (algorithm == Algorithm::kRing) return collective.WithChunks(3);
  std::vector<std::vector<int64_t>> weights;
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    weights.push_back(p % 2 == 0 ? std::vector<int64_t>{2, 2, 1, 3} : std::vector<int64_t>{5});
  return collective.WithWeights(weights);
}

void AddCase(const std::string& name, const Collective& collective, const Schedule& schedule,
             const Topology& topology, bool segments, std::vector<KernelCase>& cases) {
  if (!VerifySchedule(schedule, collective, topology).empty())
    return;  // the algorithm does not fit this collective
  StatusOr<Program> program = LowerChecked(schedule, collective, topology);
  XCCL_CHECK(program.ok());
  if (segments) {
    program->segment_bytes = 512;
    program->instances = 2;
  }
  XCCL_CHECK(VerifyProgram(*program, collective, topology).empty());
  cases.push_back({fmt::format("{} on {}", name, program->ranks.size()), collective, std::move(*program)});
}

}  // namespace

std::vector<KernelCase> KernelCases(int32_t ranks) {
  const Topology topology = FullMesh(ranks);
  std::vector<KernelCase> cases;
  int32_t turn = ranks;
  for (const Collective& whole : AllCollectives(ranks)) {
    ++turn;
    for (Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
      // On many ranks, one algorithm per collective, which differs by the number of ranks; for pairs, the
      // short one.
      const bool pairs = whole.num_parts() > ranks && whole.kind() != CollectiveKind::kCustom;
      if (ranks > 3 && static_cast<int32_t>(algorithm) != (pairs ? 0 : turn % 3)) continue;
      const Collective collective = Cut(whole, algorithm);
      const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, topology);
      if (!schedule) continue;
      AddCase(fmt::format("{} {}", Describe(whole), ToString(algorithm)), collective, *schedule, topology,
              algorithm == Algorithm::kRing, cases);
    }
    if (whole.kind() != CollectiveKind::kAllreduce && whole.kind() != CollectiveKind::kAllgather) continue;
    // The last two exchange sums: several ranks send to one in a step.
    for (const auto& [engine, size_bytes] : {std::pair("ring", 1 << 20),
                                             {"double-binary-tree", 1 << 20},
                                             {"greedy", 1 << 20},
                                             {"direct", 1 << 10},
                                             {"recursive-multiplying", 1 << 10}}) {
      const SynthesisRequest request{.topology = &topology, .collective = &whole, .size_bytes = size_bytes};
      const Engine& synthesizer = **FindEngine(engine);
      if (!synthesizer.Serves(request).ok()) continue;
      StatusOr<Synthesis> made = synthesizer.Synthesize(request);
      if (made.ok())
        AddCase(fmt::format("{} {}", Describe(whole), engine), made->collective, made->schedule, topology,
                false, cases);
    }
  }
  return cases;
}

std::string KernelSymbol(int32_t ranks, size_t index) { return fmt::format("kernel_{}_{}", ranks, index); }

}  // namespace xccl::testing
