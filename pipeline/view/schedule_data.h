// Writes the schedule's part of the page: every message on every link or, if there are too many messages,
// sums over time, ranks and chunks. The page describes the data as ScheduleData (view/src/view/data.ts).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json/json_writer.h"
#include "ir/plan.h"
#include "ir/simulate/trace.h"
#include "pipeline/view/view.h"

namespace xccl::view {

// Returns whether the page has an entry for every message, numbered as in the trace; otherwise it has sums.
bool ShowsMessages(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options);

// Writes the value of "schedule". `plays`: the page plays the schedule; otherwise only its totals are there.
void WriteSchedule(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options, bool plays,
                   JsonWriter& json);
// Writes the value of "schedule" for a schedule that cannot be traced, with the reason.
void WriteUntraced(const Plan& plan, const Simulation& simulation, const std::string& reason,
                   JsonWriter& json);

// All that follows is for schedules and for programs.

// The most (rank, chunk) cells, or digits of link loads, on the page. The page then has a few MB.
inline constexpr int64_t kMostCells = 400'000;

struct LinkTotals {
  std::vector<int64_t> bytes, busy_ps, messages;  // by LinkId
  explicit LinkTotals(const Topology& topology)
      : bytes(static_cast<size_t>(topology.num_links())), busy_ps(bytes), messages(bytes) {}
};
void WriteTotals(const LinkTotals& totals, JsonWriter& json);

// Returns the number of bins of the time: as many as a screen can show, but fewer if many links are used.
int32_t BinsFor(const LinkTotals& totals);

// Writes for every link and bin the share of the bin for which the link is busy. Assumes that a message
// spreads its busy time evenly over the time from its start to its end on the link.
void WriteLoads(int32_t num_links, std::span<const TracedHop> hops, int64_t time_ps, int32_t bins,
                JsonWriter& json);

// Writes the columns of hops, which are sorted by message.
void WriteHops(int64_t num_messages, std::span<const TracedHop> hops, JsonWriter& json);

// Writes what ranks hold before the collective and need after it.
void WriteConditions(const Collective& collective, int32_t num_ranks, JsonWriter& json);

}  // namespace xccl::view
