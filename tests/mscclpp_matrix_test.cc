// Library machines × collectives as execution plans of MSCCL++. A plan that is written is read again, proved,
// put on its machine, and takes the time of the plan's program within 1 % (3 % where threadblocks are cut); a
// plan that is not written names the limit. Written plans, in either protocol, out of place and in place, run
// right on numbers by the executor's rules, two calls in a row with late ports (three in packets), and are
// proved for calls in a row. XCCL_LONG=1 takes all machines of up to 128 ranks at four sizes;
// XCCL_MACHINES=NAME,NAME picks some, and may name files. Where one process runs all of them, at least 80 %
// must be written.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "interchange/common/foreign.h"
#include "interchange/mscclpp/json.h"
#include "interchange/mscclpp/read.h"
#include "interchange/place.h"
#include "ir/collective.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "pipeline/pipeline.h"
#include "tests/testing/library.h"
#include "tests/testing/mscclpp_executor.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

const bool kLong = std::getenv("XCCL_LONG") != nullptr;

struct Count {
  int32_t written = 0, refused = 0, alike = 0;  // plans' own programs
  int32_t run = 0, too_large = 0;  // all plans that are written: run on numbers, and too large for it
};

// A threadblock of more ops than MSCCL++ takes is written as several, of which each begins when the one
// before has ended. The allreduce of 64 MiB on p5 takes 1.023 of the time so.
double ToleranceOf(const std::string& text) {
  return text.find("\"continues\"") == std::string::npos ? 0.01 : 0.03;
}

int64_t TimeOf(const LoweredProgram& lowered, const Topology& topology, int64_t size) {
  const StatusOr<Simulation> simulation =
      SimulateProgram(lowered.program, lowered.collective, topology, {.size_bytes = size});
  EXPECT_TRUE(simulation.ok()) << simulation.status().message();
  return simulation.ok() ? simulation->time_ps : 0;
}

// The plan's program as the executor runs it: every instance has a share of each chunk of its own, which it
// cuts into whole passes. A plan's instances take turns, and some may have one pass more.
LoweredProgram AsExecuted(const LoweredProgram& own, const MscclppOptions& options,
                          const LoweredProgram& read, int64_t size) {
  LoweredProgram made{own.collective, AsRunByMscclpp(own.program, options)};
  if (made.program.instances == 1 || made.program.segment_bytes == 0) return made;
  const int64_t passes =
      int64_t{NumPasses(read.program, CollectiveSizes(read.collective, size))} * made.program.instances;
  const int64_t largest = CollectiveSizes(own.collective, size).LargestChunkBytes();
  made.program.segment_bytes = std::max<int64_t>(1, (largest + passes - 1) / passes);
  return made;
}

// Elements that all ops of a plan move, about: chunks are counted by their text, which is quick to find.
bool IsTooLarge(const std::string& text) {
  return text.size() > (kLong ? size_t{24} << 20 : size_t{4} << 20);
}

// Both protocols, out of place and in place.
void RunAll(const LoweredProgram& lowered, const Topology& topology, Count& count) {
  const CollectiveKind kind = lowered.collective.kind();
  LoweredProgram made = lowered;
  for (const auto& [protocol, in_place] :
       {std::pair(lowered.program.protocol, false), std::pair(lowered.program.protocol, true),
        std::pair(Protocol::kLl, false), std::pair(Protocol::kLl, true),
        std::pair(Protocol::kSimple, false)}) {
    const bool own = protocol == lowered.program.protocol;
    if ((in_place && !lowered.program.in_place) || (own && protocol != made.program.protocol)) continue;
    made.program.protocol = protocol;
    SCOPED_TRACE(fmt::format("{}{}", ToString(protocol), in_place ? " in place" : ""));
    const StatusOr<MscclppJson> json = WriteMscclppJson(
        made.program, made.collective, {.in_place = in_place, .domains = LoadStoreDomains(topology)});
    if (!json.ok()) continue;
    const StatusOr<Imported> read = ReadMscclppJson(json->text, {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->in_a_row, "");
    if (IsTooLarge(json->text)) {
      ++count.too_large;
      continue;
    }
    ++count.run;
    const int32_t calls = protocol == Protocol::kLl ? 3 : 2;
    for (uint64_t seed = 1; seed <= (kLong ? 2 : 1); ++seed)
      EXPECT_EQ(RunMscclppPlan(json->text, kind, 0, {.calls = calls, .seed = seed, .late_ports = seed == 1}),
                "");
  }
}

void Check(const Topology& topology, CollectiveKind kind, int64_t size, Count& count) {
  const std::string name = fmt::format("{} {} {} KiB", topology.name(), ToString(kind), size >> 10);
  SCOPED_TRACE(name);
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(kind)) spec.root = Rank(0);
  PlanOptions options;
  options.request.size_bytes = size;
  options.lower = true;
  const StatusOr<PlanResult> made = MakePlan(topology, Collective::Create(spec).value(), options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(made->plan.program) << made->no_program;
  const LoweredProgram& lowered = *made->plan.program;
  RunAll(lowered, topology, count);
  const MscclppOptions written{.domains = LoadStoreDomains(topology)};
  const StatusOr<MscclppJson> json = WriteMscclppJson(lowered.program, lowered.collective, written);
  if (!json.ok()) {
    EXPECT_NE(json.status().message().find("; expected "), std::string::npos) << json.status().message();
    fmt::print("{}: refused: {}\n", name, json.status().message());
    ++count.refused;
    return;
  }
  ++count.written;
  const StatusOr<Imported> read = ReadMscclppJson(json->text, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  std::vector<std::string> warnings;
  const StatusOr<Plan> placed = PlaceOnMachine(*read, topology, &warnings);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  const int64_t theirs = TimeOf(*placed->program, topology, size);
  const int64_t ours = TimeOf(AsExecuted(lowered, written, read->lowered, size), topology, size);
  const double ratio = static_cast<double>(theirs) / static_cast<double>(ours);
  const double tolerance = ToleranceOf(json->text);
  EXPECT_NEAR(ratio, 1, tolerance) << theirs << " ps and " << ours << " ps";
  if (std::abs(ratio - 1) <= tolerance) ++count.alike;
  fmt::print("{}: {:.3f} of the time, {:.3f} of the plan's\n", name, ratio,
             static_cast<double>(theirs) / static_cast<double>(TimeOf(lowered, topology, size)));
}

std::vector<std::string> Machines() {
  if (const char* const names = std::getenv("XCCL_MACHINES")) return Split(names, ',');
  const int32_t most_ranks = kLong ? 128 : 8;
  std::vector<std::string> names;
  for (const std::string& name : DistinctMachines())
    if (LoadTopology(name).value().num_ranks() <= most_ranks) names.push_back(name);
  names.emplace_back("tests/mscclpp/two_hosts.xml");  // reads from places that the same hosts then add to
  return names;
}

class MscclppMatrix : public testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() {
    const int32_t all = of_all.written + of_all.refused;
    fmt::print(
        "{} of {} written, {} of these within 1 % of the plan's time; {} run, {} too large for "
        "it\n",
        of_all.written, all, of_all.alike, of_all.run, of_all.too_large);
    const bool is_whole =
        std::getenv("TEST_TOTAL_SHARDS") == nullptr && std::getenv("XCCL_MACHINES") == nullptr;
    if (is_whole) {
      EXPECT_GE(of_all.written * 10, all * 8);
    }
  }

  static inline Count of_all;
};

TEST_P(MscclppMatrix, WhatIsWrittenIsReadAndTakesThePlansTime) {
  const StatusOr<Topology> topology = LoadTopology(GetParam());
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  Count count;
  for (const int64_t size : kLong ? std::vector<int64_t>{1 << 10, 64 << 10, 1 << 20, 64 << 20}
                                  : std::vector<int64_t>{1 << 10, 1 << 20})
    for (const CollectiveKind kind :
         {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAlltoall,
          CollectiveKind::kGather, CollectiveKind::kScatter})
      Check(*topology, kind, size, count);
  EXPECT_EQ(count.alike, count.written);
  of_all.written += count.written;
  of_all.refused += count.refused;
  of_all.alike += count.alike;
  of_all.run += count.run;
  of_all.too_large += count.too_large;
  fmt::print(
      "{}: {} of {} written, {} of these within 1 % of the plan's time; {} run, {} too large "
      "for it\n",
      GetParam(), count.written, count.written + count.refused, count.alike, count.run, count.too_large);
}

INSTANTIATE_TEST_SUITE_P(Library, MscclppMatrix, testing::ValuesIn(Machines()), [](const auto& machine) {
  std::string name = machine.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

}  // namespace
}  // namespace xccl
