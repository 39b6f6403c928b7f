// Small plans of MSCCL++ run on numbers by its executor's rules, several calls in a row and with late ports:
// what the writer writes runs right, and what the reader proves does.
#include "tests/testing/mscclpp_executor.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>

#include "base/files.h"
#include "interchange/common/foreign.h"
#include "interchange/mscclpp/json.h"
#include "interchange/mscclpp/read.h"
#include "ir/collective.h"
#include "ir/lower/testing/checked.h"
#include "ir/program.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

// In the order of all that may go wrong: random turns, with ports that move at any time and as late as can
// be.
std::string RunOften(const std::string& text, CollectiveKind kind, int32_t root) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    std::string wrong =
        RunMscclppPlan(text, kind, root, {.calls = 3, .seed = seed, .late_ports = seed % 2 == 0});
    if (!wrong.empty()) return wrong;
  }
  return "";
}

TEST(MscclppExecutorTest, WhatIsWrittenRunsRight) {
  const Topology mesh = FullMesh(4);
  int32_t plans = 0;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAlltoall, CollectiveKind::kBroadcast, CollectiveKind::kReduce,
        CollectiveKind::kGather, CollectiveKind::kScatter})
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
      const Collective collective = MakeCollective(kind, 4).WithChunks(3);
      const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, mesh);
      if (!schedule) continue;
      StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
      ASSERT_TRUE(lowered.ok()) << lowered.status().message();
      for (const auto& [protocol, ports, in_place, segment] :
           {std::tuple(Protocol::kSimple, false, false, 0), std::tuple(Protocol::kSimple, true, false, 0),
            std::tuple(Protocol::kSimple, true, false, 64), std::tuple(Protocol::kLl, false, false, 0),
            std::tuple(Protocol::kSimple, false, true, 0), std::tuple(Protocol::kSimple, true, true, 0),
            std::tuple(Protocol::kLl, false, true, 0)}) {
        if (in_place && !lowered->program.in_place) continue;
        SCOPED_TRACE(std::string(ToString(kind)) + " " + std::string(ToString(algorithm)) + " " +
                     std::string(ToString(protocol)) + (ports ? " ports" : "") +
                     (in_place ? " in place" : "") + (segment > 0 ? " in segments" : ""));
        lowered->program.protocol = protocol;
        lowered->program.segment_bytes = segment;
        MscclppOptions options{.in_place = in_place};
        if (ports) options.domains = {0, 0, 1, 1};
        const StatusOr<MscclppJson> json = WriteMscclppJson(lowered->program, lowered->collective, options);
        ASSERT_TRUE(json.ok()) << json.status().message();
        EXPECT_EQ(RunOften(json->text, kind, 2), "") << json->text;
        const StatusOr<Imported> read = ReadMscclppJson(json->text, {.root = Rank(2)});
        EXPECT_TRUE(read.ok()) << read.status().message() << "\n" << json->text;
        ++plans;
      }
    }
  EXPECT_GE(plans, 100);
}

// An op adds up ten buffers: in place the rank's own input may come after a sum of others that is stored over
// it.
TEST(MscclppExecutorTest, SumsOfManyInPlace) {
  constexpr int32_t kRanks = 13;
  const Topology mesh = FullMesh(kRanks);
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, kRanks);
  const std::optional<Schedule> schedule = HandSchedule(Algorithm::kDirect, collective, mesh);
  ASSERT_TRUE(schedule);
  StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  for (const Protocol protocol : {Protocol::kSimple, Protocol::kLl}) {
    lowered->program.protocol = protocol;
    const StatusOr<MscclppJson> json =
        WriteMscclppJson(lowered->program, lowered->collective, {.in_place = true});
    ASSERT_TRUE(json.ok()) << json.status().message();
    EXPECT_EQ(RunOften(json->text, CollectiveKind::kAllreduce, 0), "");
    const StatusOr<Imported> read = ReadMscclppJson(json->text, {});
    EXPECT_TRUE(read.ok()) << read.status().message();
  }
}

// Plans of earlier writers, which hang and add wrongly: the executor finds the same faults as the reader.
TEST(MscclppExecutorTest, PlansThatRunWronglyAreFound) {
  const std::string packets = ReadFile("tests/mscclpp/ll_broadcast.json").value();
  EXPECT_NE(RunOften(packets, CollectiveKind::kBroadcast, 0), "");
  EXPECT_NE(
      ReadMscclppJson(packets, {}).status().message().find("expected as many scratch_chunks at all ranks"),
      std::string::npos);
  const std::string ports = ReadFile("tests/mscclpp/port_race.json").value();
  EXPECT_NE(RunOften(ports, CollectiveKind::kAllreduce, 0), "");
  EXPECT_EQ(ReadMscclppJson(ports, {.file = "p"}).status().message(),
            "p: rank 0 threadblock 1 op 10 (res): overwrites what a port may not have read yet for rank 0 "
            "threadblock 0 op 6 (pws); expected a wait for an answer before it");
}

}  // namespace
}  // namespace xccl
