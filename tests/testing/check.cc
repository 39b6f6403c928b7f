#include "tests/testing/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "ir/analysis/bitwise_same.h"
#include "ir/bounds/bound.h"
#include "ir/interpret/interpret.h"
#include "ir/lower/testing/checked.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "ir/translated.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "synth/engines.h"
#include "tests/testing/collectives.h"

namespace xccl::testing {
namespace {

// Checks that what holds for a compressed schedule holds for its plain form.
void CheckPlainForm(const Synthesis& answer, const SynthesisRequest& request) {
  const Topology& topology = *request.topology;
  const StatusOr<Schedule> plain = Expand(answer.schedule, answer.collective, topology);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(ToStatus(VerifySchedule(*plain, answer.collective, topology)).message(), "");
  const SimulateOptions options{.size_bytes = request.size_bytes, .model = request.model};
  EXPECT_EQ(Simulate(answer.schedule, answer.collective, topology, options).time_ps,
            Simulate(*plain, answer.collective, topology, options).time_ps);
}

bool CheckAnswer(const Synthesis& answer, const SynthesisRequest& request) {
  EXPECT_TRUE(answer.collective.spec() == request.collective->spec()) << "another collective came back";
  const Status verified = ToStatus(VerifySchedule(answer.schedule, answer.collective, *request.topology));
  EXPECT_EQ(verified.message(), "");
  Schedule normalized = answer.schedule;
  Normalize(normalized);
  EXPECT_TRUE(normalized == answer.schedule) << "not normalized";
  if (verified.ok() && !answer.schedule.symmetry.empty()) CheckPlainForm(answer, request);
  return verified.ok();
}

// Element e of the contribution of `rank` to `part`.
int32_t Value(Rank rank, PartId part, int64_t e) {
  uint32_t x = static_cast<uint32_t>(rank.value) * 0x9e3779b1u +
               static_cast<uint32_t>(part.value) * 0x85ebca6bu + static_cast<uint32_t>(e) * 0xc2b2ae35u;
  x ^= x >> 15;
  return static_cast<int32_t>(x * 0x2c1b3c6du);
}

// One int32 buffer per rank: its parts in order. Every element is the sum over the ranks that
// `contributors` returns.
template <typename Contributors>
std::vector<std::vector<std::byte>> Buffers(const Collective& collective, const CollectiveSizes& sizes,
                                            int32_t ranks, bool inputs, Contributors&& contributors) {
  std::vector<std::vector<std::byte>> buffers(static_cast<size_t>(ranks));
  for (Rank r : collective.ranks()) {
    std::vector<int32_t> elements;
    for (PartId p : inputs ? collective.InputParts(r) : collective.OutputParts(r)) {
      for (int64_t e = 0; e < sizes.PartElements(p); ++e) {
        uint32_t sum = 0;
        for (Rank from : contributors(r, p)) sum += static_cast<uint32_t>(Value(from, p, e));
        elements.push_back(static_cast<int32_t>(sum));
      }
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(elements));
    buffers[r.index()].assign(bytes.begin(), bytes.end());
  }
  return buffers;
}

// The contributions of a chunk of the part that may have data; chunks that are always empty are needed
// nowhere.
std::vector<Rank> Contributions(const Collective& collective, bool before, Rank rank, PartId part) {
  ChunkId chunk = collective.FirstChunk(part);
  for (int32_t c = 0; c < collective.ChunksOf(part); ++c) {
    chunk = ChunkId(collective.FirstChunk(part).value + c);
    if (!collective.AlwaysEmpty(chunk)) break;
  }
  std::vector<Holding> holdings;
  before ? collective.Before(chunk, holdings) : collective.After(chunk, holdings);
  for (const Holding& h : holdings)
    if (h.rank == rank) return {h.contributions.begin(), h.contributions.end()};
  return {};
}

void CheckProgram(const Synthesis& answer, const SynthesisRequest& request, int64_t bound_ps) {
  const Topology& topology = *request.topology;
  const StatusOr<LoweredProgram> lowered =
      LowerFoldedChecked(answer.schedule, answer.collective, topology, {.size_bytes = request.size_bytes});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const auto& [cut, program] = *lowered;
  const bool bitwise_same = IsBitwiseSame(answer.schedule, answer.collective, topology);
  const Plan plan{topology, answer.collective, answer.schedule, *lowered, {}, bitwise_same};
  ASSERT_EQ(ToStatus(VerifyPlan(plan)).message(), "");

  const StatusOr<Simulation> simulated =
      SimulateProgram(program, cut, topology, {.size_bytes = request.size_bytes, .model = request.model});
  ASSERT_TRUE(simulated.ok()) << simulated.status().message();
  EXPECT_GE(simulated->time_ps, bound_ps) << "a program faster than the lower bound";

  const int32_t ranks = topology.num_ranks();
  InterpretOptions options;
  options.type = DataType::kInt32;
  options.size_bytes = std::min<int64_t>(request.size_bytes, 1000);
  options.seed = request.seed;
  const CollectiveSizes sizes(answer.collective, options.size_bytes, 4);
  const auto inputs = Buffers(answer.collective, sizes, ranks, true,
                              [&](Rank r, PartId p) { return Contributions(answer.collective, true, r, p); });
  const auto expected = Buffers(answer.collective, sizes, ranks, false, [&](Rank r, PartId p) {
    return Contributions(answer.collective, false, r, p);
  });
  for (bool in_place : {false, true}) {
    if (in_place && !program.in_place) continue;
    options.in_place = in_place;
    const auto outputs = Interpret(program, cut, inputs, options);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_TRUE(*outputs == expected) << "wrong elements" << (in_place ? ", in place" : "");
  }
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

std::optional<Answer> CheckEngine(const Engine& engine, const SynthesisRequest& request) {
  SCOPED_TRACE(std::string(engine.name) + ": " + Describe(*request.collective) + " of " +
               request.topology->name());
  if (!engine.Serves(request).ok()) return std::nullopt;
  SynthesisRequest asked = request;
  // Without a limit the engine may take seconds for each of thousands of requests.
  if (engine.searches_long) asked.limits.work_units = 500'000;
  const StatusOr<Synthesis> answer = engine.Synthesize(asked);
  if (!answer.ok()) {
    const StatusCode code = answer.status().code();
    EXPECT_TRUE(code == StatusCode::kLimit || code == StatusCode::kInvalidInput) << answer.status().message();
    return std::nullopt;
  }
  EXPECT_TRUE(answer->faults.empty()) << answer->faults.front();
  if (!CheckAnswer(*answer, request)) return std::nullopt;
  const StatusOr<Bound> bound =
      LowerBound(*request.topology, *request.collective, request.size_bytes, request.model);
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  if (!bound.ok()) return std::nullopt;
  CheckProgram(*answer, request, bound->bound_ps);
  const int64_t time_ps = Timed(*answer, request);
  EXPECT_GE(time_ps, bound->bound_ps) << "faster than the lower bound";
  return Answer{time_ps, answer->exact};
}

void CheckAllEngines(const SynthesisRequest& request) {
  std::map<std::string, Answer> answers;
  for (const Engine& engine : AllEngines()) {
    if (const std::optional<Answer> answer = CheckEngine(engine, request))
      answers[std::string(engine.name)] = *answer;
  }
  EXPECT_FALSE(answers.empty()) << "no engine serves " << Describe(*request.collective) << " of "
                                << request.topology->name();
  for (const auto& [exact_name, exact] : answers) {
    if (!exact.exact) continue;
    for (const auto& [name, answer] : answers) {
      Bound as_fast;
      as_fast.bound_ps = answer.time_ps;
      EXPECT_TRUE(MeetsBound(exact.time_ps, as_fast))
          << exact_name << " says that it is exact, and " << name
          << " is faster: " << Describe(*request.collective) << " of " << request.topology->name();
    }
  }
}

}  // namespace xccl::testing
