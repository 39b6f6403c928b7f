// Changes valid schedules a little. The verifier must agree with a slow replay on each, and so reject every
// change that breaks one.
#include <gtest/gtest.h>

#include <map>

#include "ir/translated.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "tests/testing/check.h"
#include "tests/testing/collectives.h"
#include "tests/testing/mutate.h"
#include "tests/testing/replay.h"
#include "tests/testing/topologies.h"

namespace xccl::testing {
namespace {

struct Score {
  int rejected = 0, harmless = 0;
};

// Applies every mutation to one answer several times.
void MutateAnswer(const Synthesis& answer, const Topology& topology, Random& random,
                  std::map<std::string_view, Score>& scores) {
  for (const Mutation& mutation : AllMutations()) {
    Schedule schedule = answer.schedule;
    mutation.apply(schedule, topology, random);
    const std::vector<Violation> violations = VerifySchedule(schedule, answer.collective, topology);
    const bool right = Replay(schedule, answer.collective, topology);
    EXPECT_EQ(right, violations.empty())
        << mutation.name << " of " << answer.engine << ", " << Describe(answer.collective) << " of "
        << topology.name() << (violations.empty() ? "" : ": " + ToString(violations[0]));
    Score& score = scores[mutation.name];
    ++(violations.empty() ? score.harmless : score.rejected);
  }
}

TEST(Mutation, TheVerifierAgreesWithReplay) {
  std::map<std::string_view, Score> scores;
  int answers = 0;
  for (uint64_t seed = 0; seed < (LongRun() ? 300 : 12); ++seed) {
    const Topology topology = MakeRandomMachine(seed, {.max_ranks = 6, .max_switches = 2});
    Random random(seed);
    for (const Collective& collective : AllCollectives(topology.num_ranks())) {
      SynthesisRequest request;
      request.topology = &topology;
      request.collective = &collective;
      for (const Engine& engine : AllEngines()) {
        if (engine.name == "smt" || engine.name == "auto" || !engine.Serves(request).ok()) continue;
        if (engine.name != "greedy" && !LongRun() && random.Below(8) > 0) continue;
        StatusOr<Synthesis> answer = engine.Synthesize(request);
        if (answer.ok()) answer->schedule = Expand(answer->schedule, answer->collective, topology).value();
        if (!answer.ok() || answer->schedule.size() == 0 || answer->schedule.size() > 500) continue;
        ASSERT_TRUE(Replay(answer->schedule, answer->collective, topology)) << engine.name;
        ++answers;
        MutateAnswer(*answer, topology, random, scores);
      }
    }
  }
  EXPECT_GT(answers, 30);
  for (const Mutation& mutation : AllMutations()) {
    RecordProperty(std::string(mutation.name) + " rejected", scores[mutation.name].rejected);
    RecordProperty(std::string(mutation.name) + " harmless", scores[mutation.name].harmless);
    EXPECT_GT(scores[mutation.name].rejected, 0) << mutation.name;
  }
  // Engines send nothing twice, so without a transfer something is missing.
  EXPECT_GT(scores["delete"].rejected, 10 * scores["delete"].harmless);
}

}  // namespace
}  // namespace xccl::testing
