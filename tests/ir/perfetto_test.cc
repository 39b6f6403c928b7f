#include "interchange/traces/perfetto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json/json_value.h"
#include "ir/lower/testing/checked.h"
#include "ir/simulate/trace.h"
#include "ir/simulate/trace_program.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

constexpr int64_t kMost = int64_t{1} << 50;

struct Slice {
  int64_t process, track, start_ps, end_ps;
  std::string name;
};

struct Written {
  ScheduleTrace schedule;
  ProgramTrace program;
  JsonDocument json;
  std::vector<Slice> slices;
  std::map<int64_t, std::pair<int32_t, int32_t>> arrows;  // by id: beginnings and ends
};

Written Write(const Topology& topology, const Collective& collective, const Schedule& schedule) {
  const Program program = LowerChecked(schedule, collective, topology).value();
  const SimulateOptions options{.size_bytes = 1'000'000};
  ScheduleTrace schedule_trace = TraceSchedule(schedule, collective, topology, options).value();
  ProgramTrace program_trace = TraceProgram(program, collective, topology, options).value();
  std::ostringstream out;
  WritePerfetto(topology, schedule_trace, &program, &program_trace, {"a \"title\"", "pipelined", "", "1.2.3"},
                out);
  Written written{std::move(schedule_trace),
                  std::move(program_trace),
                  JsonDocument::Parse(out.str(), "trace.json").value(),
                  {},
                  {}};
  const std::vector<JsonValue> events = written.json.root().GetItems("traceEvents").value();
  for (const JsonValue& event : events) {
    const std::string_view phase = event.GetString("ph").value();
    if (phase == "s" || phase == "f") {
      auto& [begins, ends] = written.arrows[event.GetInteger("id", 0, kMost).value()];
      ++(phase == "s" ? begins : ends);
    }
    if (phase != "X") continue;
    const JsonValue args = event.Get("args").value();
    written.slices.push_back(
        {event.GetInteger("pid", 0, kMost).value(), event.GetInteger("tid", 0, kMost).value(),
         args.GetInteger("start_ps", 0, kMost).value(), args.GetInteger("end_ps", 0, kMost).value(),
         std::string(event.GetString("name").value())});
    // Microseconds, to the picosecond.
    EXPECT_EQ(std::llround(event.Get("ts").value().Number().value() * 1e6), written.slices.back().start_ps);
    EXPECT_EQ(std::llround(event.Get("dur").value().Number().value() * 1e6),
              written.slices.back().end_ps - written.slices.back().start_ps);
  }
  return written;
}

void Check(Written& written) {
  std::ranges::stable_sort(written.slices, {},
                           [](const Slice& s) { return std::tuple(s.process, s.track, s.start_ps); });
  std::map<int64_t, int64_t> ends;  // by process: the end of its last slice
  for (size_t i = 0; i < written.slices.size(); ++i) {
    const Slice& slice = written.slices[i];
    ends[slice.process] = std::max(ends[slice.process], slice.end_ps);
    if (i == 0) continue;
    const Slice& before = written.slices[i - 1];
    if (before.process == slice.process && before.track == slice.track) {
      EXPECT_LE(before.end_ps, slice.start_ps) << slice.name;
    }
  }
  // Critical paths end with the times; ranks with the last arrival.
  EXPECT_EQ(ends[1], written.schedule.simulation.time_ps);
  EXPECT_EQ(ends[3], written.schedule.simulation.time_ps);
  EXPECT_EQ(ends[4], written.program.simulation.time_ps);
  EXPECT_FALSE(written.arrows.empty());
  for (const auto& [id, count] : written.arrows) EXPECT_EQ(count, std::pair(1, 1)) << id;
}

TEST(Perfetto, HasEverySliceAndArrow) {
  for (const Topology& topology : {FullMesh(4), OneSwitch(4)}) {
    const Collective collective = MakeCollective(CollectiveKind::kAllgather, 4);
    Written written = Write(topology, collective, *HandSchedule(Algorithm::kRing, collective, topology));
    Check(written);
    const JsonValue about = written.json.root().Get("otherData").value();
    EXPECT_EQ(about.GetString("title").value(), "a \"title\"");
    EXPECT_EQ(about.GetString("machine").value(), "none: links alone");
    EXPECT_EQ(about.GetInteger("schedule_time_ps", 0, kMost).value(), written.schedule.simulation.time_ps);
    EXPECT_EQ(about.GetInteger("program_time_ps", 0, kMost).value(), written.program.simulation.time_ps);
    const auto named = [&](std::string_view name) {
      return std::ranges::count(written.slices, name, &Slice::name);
    };
    EXPECT_EQ(named("send to 1, step 0"), 1);
    EXPECT_EQ(named("receive from 0, step 0"), 1);
    EXPECT_GE(named("recv_copy_send"), 1);
  }
}

// One message of a multicast reaches all members: an arrow to each.
TEST(Perfetto, GroupsHaveAnArrowForEveryMember) {
  TopologySpec spec = OneSwitch(3).spec();
  for (Node& node : spec.nodes) node.multicast = node.reduce = node.kind == NodeKind::kSwitch;
  const Topology topology = Topology::Create(spec).value();
  const Collective collective = MakeCollective(CollectiveKind::kAllreduce, 3);
  Schedule schedule;
  schedule.num_chunks = 1;
  const auto up = [](int32_t r) { return LinkId(2 * r); };
  const auto down = [](int32_t r) { return LinkId(2 * r + 1); };
  schedule.Add(ChunkId(0), 1, Rank(1), Rank(0), std::vector{up(1), up(2), down(0)}, TransferOp::kReduce, 0);
  schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), std::vector{up(0), down(1), down(2)}, TransferOp::kCopy, 1);
  Written written = Write(topology, collective, schedule);
  Check(written);
}

}  // namespace
}  // namespace xccl
