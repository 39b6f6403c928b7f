#include "tests/testing/check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "ir/bound.h"
#include "ir/simulate.h"
#include "ir/verify_schedule.h"
#include "tests/testing/collectives.h"

namespace xccl::testing {
namespace {

bool IsSlow(std::string_view engine) { return engine == "smt"; }

void CheckAnswer(const Synthesis& answer, const SynthesisRequest& request) {
  EXPECT_TRUE(answer.collective.spec() == request.collective->spec()) << "another collective came back";
  EXPECT_EQ(ToStatus(VerifySchedule(answer.schedule, answer.collective, *request.topology)).message(), "");
  Schedule normalized = answer.schedule;
  Normalize(normalized);
  EXPECT_TRUE(normalized == answer.schedule) << "not normalized";
}

int64_t Timed(const Synthesis& answer, const SynthesisRequest& request) {
  SimulateOptions options;
  options.size_bytes = request.size_bytes;
  options.model = request.model;
  return Simulate(answer.schedule, answer.collective, *request.topology, options).time_ps;
}

}  // namespace

bool LongRun() {
  const char* value = std::getenv("XCCL_LONG");
  return value != nullptr && std::string_view(value) == "1";
}

std::optional<Answer> CheckEngine(const Synthesizer& engine, const SynthesisRequest& request) {
  SCOPED_TRACE(std::string(engine.name()) + ": " + Describe(*request.collective) + " of " +
               request.topology->name());
  if (!engine.Serves(request).ok()) return std::nullopt;
  const StatusOr<Synthesis> answer = engine.Synthesize(request);
  if (!answer.ok()) {
    const StatusCode code = answer.status().code();
    EXPECT_TRUE(code == StatusCode::kLimit || code == StatusCode::kInvalidInput) << answer.status().message();
    return std::nullopt;
  }
  CheckAnswer(*answer, request);
  if (::testing::Test::HasFailure()) return std::nullopt;
  const int64_t time_ps = Timed(*answer, request);
  const StatusOr<Bound> bound =
      LowerBound(*request.topology, *request.collective, request.size_bytes, request.model);
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  if (bound.ok()) {
    EXPECT_GE(time_ps, bound->bound_ps) << "faster than the lower bound";
  }
  return Answer{time_ps, answer->exact};
}

void CheckAllEngines(const SynthesisRequest& request, bool skip_slow) {
  std::map<std::string, Answer> answers;
  for (const std::unique_ptr<Synthesizer>& engine : AllSynthesizers()) {
    if (skip_slow && IsSlow(engine->name())) continue;
    if (const std::optional<Answer> answer = CheckEngine(*engine, request))
      answers[std::string(engine->name())] = *answer;
  }
  EXPECT_FALSE(answers.empty()) << "no engine serves " << Describe(*request.collective) << " of "
                                << request.topology->name();
  for (const auto& [exact_name, exact] : answers) {
    if (!exact.exact) continue;
    for (const auto& [name, answer] : answers)
      EXPECT_LE(exact.time_ps, answer.time_ps)
          << exact_name << " says that it is exact, and " << name
          << " is faster: " << Describe(*request.collective) << " of " << request.topology->name();
  }
}

}  // namespace xccl::testing
