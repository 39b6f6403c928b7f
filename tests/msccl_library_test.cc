// Plans for the library's machines as MSCCL XML: emitted, or refused with the limit named. An emitted file is
// read again, proved, put on its machine, and written to the same text. Its program takes the time of the
// plan's program within 1 %, once the latter has the pieces and slots of the executor, which the format
// cannot say. XCCL_LONG=1 takes machines of up to 64 ranks, else they have 8.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "interchange/import.h"
#include "interchange/place.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "pipeline/emit_msccl.h"
#include "pipeline/pipeline.h"
#include "tests/testing/library.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kSize = 1 << 20;
const int32_t kMostRanks = std::getenv("XCCL_LONG") != nullptr ? 64 : 8;

StatusOr<PlanResult> PlanFor(const Topology& topology, CollectiveKind kind) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(kind)) spec.root = Rank(0);
  PlanOptions options;
  options.request.size_bytes = kSize;
  options.lower = true;
  return MakePlan(topology, Collective::Create(spec).value(), options);
}

StatusOr<Simulation> Time(const LoweredProgram& lowered, const Topology& topology) {
  return SimulateProgram(lowered.program, lowered.collective, topology, {.size_bytes = kSize});
}

// The plan's program as an executor of MSCCL runs it: with its slots and pieces, at least one an instance.
LoweredProgram AsExecuted(const LoweredProgram& own, const Program& read) {
  LoweredProgram made = own;
  made.program.slots = read.slots;
  const int64_t chunk = CollectiveSizes(own.collective, kSize).LargestChunkBytes();
  made.program.segment_bytes =
      std::max<int64_t>(16, std::min(read.segment_bytes, chunk / own.program.instances));
  return made;
}

struct Share {
  int32_t cells = 0, emitted = 0;
  int32_t timed = 0, equal = 0;  // whose program is the plan's own, and whose time is within 1 % of it
};

void CheckCell(const std::string& cell, const Plan& plan, Share& share) {
  const MscclXmlOptions options{.target = MscclTarget::kMsccl, .name = "library"};
  const Topology& topology = plan.topology;
  const StatusOr<MscclXml> xml = EmitMscclXml(plan, options, {});
  ++share.cells;
  if (!xml.ok()) {
    const std::string& why = xml.status().message();
    EXPECT_TRUE(why.find(" at most") != why.npos || why.find("which is what msccl has") != why.npos) << why;
    fmt::print("{}: refused: {}\n", cell, why);
    return;
  }
  ++share.emitted;
  const StatusOr<Imported> read = ReadForeign(xml->text, {.file = "library"});
  ASSERT_TRUE(read.ok()) << cell << ": " << read.status().message();
  std::vector<std::string> warnings;
  const StatusOr<Plan> placed = PlaceOnMachine(*read, topology, &warnings);
  ASSERT_TRUE(placed.ok()) << cell << ": " << placed.status().message();
  EXPECT_TRUE(warnings.empty()) << cell << ": " << warnings[0];
  const StatusOr<MscclXml> again = EmitMscclXml(*placed, options, {});
  ASSERT_TRUE(again.ok()) << cell << ": " << again.status().message();
  EXPECT_TRUE(again->text == xml->text) << cell;
  const StatusOr<Simulation> theirs = Time(*placed->program, topology);
  ASSERT_TRUE(theirs.ok()) << cell << ": " << theirs.status().message();
  const StatusOr<Simulation> ours = Time(AsExecuted(*plan.program, placed->program->program), topology);
  const bool other = std::ranges::any_of(xml->warnings, [](const std::string& warning) {
    return warning.find("another program") != warning.npos;
  });
  if (other || !ours.ok()) return;
  const double ratio = static_cast<double>(theirs->time_ps) / static_cast<double>(ours->time_ps);
  ++share.timed;
  share.equal += std::abs(ratio - 1) <= 0.01 ? 1 : 0;
  EXPECT_NEAR(ratio, 1, 0.01) << cell;
}

TEST(MscclLibraryTest, PlansAreEmittedOrRefusedByALimit) {
  LoadOptions plain;
  plain.plain_switches = true;
  Share share;
  for (const std::string& name : DistinctMachines()) {
    const Topology topology = LoadTopology(name, plain).value();
    if (topology.num_ranks() > kMostRanks) continue;
    for (const CollectiveKind kind :
         {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
          CollectiveKind::kAlltoall, CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
      const std::string cell = fmt::format("{} {}", name, ToString(kind));
      const StatusOr<PlanResult> result = PlanFor(topology, kind);
      ASSERT_TRUE(result.ok()) << cell << ": " << result.status().message();
      CheckCell(cell, result->plan, share);
    }
  }
  fmt::print("{} of {} emitted; {} of {} with their plan's program take its time within 1 %\n", share.emitted,
             share.cells, share.equal, share.timed);
  EXPECT_GE(share.emitted * 10, share.cells * 8);
}

}  // namespace
}  // namespace xccl
