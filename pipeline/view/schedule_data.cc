// 1. Write the bytes, busy time and messages of every link over the whole run.
// 2. If the schedule is small, write columns with one entry for each message, transfer and hop.
// 3. If the schedule is large, divide the time into equal bins. For each link and bin, write the busy share
//    of the bin as one digit. For groups of ranks and of chunks, write how much of the needed data is there
//    (holdings.h).
// A schedule without a trace gets only step 1.
#include "pipeline/view/schedule_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ir/analysis/schedule_stats.h"
#include "ir/sizes.h"
#include "pipeline/view/holdings.h"
#include "pipeline/view/writer.h"

namespace xccl::view {
namespace {

LinkTotals TotalsOf(const Topology& topology, const ScheduleTrace& trace) {
  LinkTotals totals(topology);
  for (const TracedHop& hop : trace.hops) {
    totals.bytes[hop.link.index()] += trace.messages[static_cast<size_t>(hop.message)].bytes;
    totals.busy_ps[hop.link.index()] += hop.busy_ps;
    ++totals.messages[hop.link.index()];
  }
  return totals;
}

// Writes the ranks at one end of every message: a rank, or a list if there are several ranks.
void WriteEnds(const char* key, const ScheduleTrace& trace, const std::vector<std::vector<Rank>>& ends,
               JsonWriter& json) {
  json.Key(key);
  json.BeginArray();
  for (const TracedMessage& message : trace.messages) {
    const std::vector<Rank>& ranks = ends[message.path.index()];
    if (ranks.size() == 1)
      json.Value(ranks[0]);
    else
      json.Value(ranks);
  }
  json.EndArray();
}

void WriteRuns(const char* key, const std::vector<HoldingRun>& runs, JsonWriter& json) {
  json.Key(key);
  json.BeginObject();
  Column(json, "rank", runs, [](const HoldingRun& run) { return run.rank.value; });
  Column(json, "chunk", runs, [](const HoldingRun& run) { return run.chunk; });
  Column(json, "count", runs, [](const HoldingRun& run) { return run.count; });
  Column(json, "contributions", runs, [](const HoldingRun& run) { return run.contributions; });
  json.EndObject();
}

// The transfers of message m: transfer[first[m]] up to, but not including, transfer[first[m + 1]].
struct TransfersByMessage {
  std::vector<int64_t> first = {0};
  std::vector<int64_t> transfer;
};

TransfersByMessage ByMessage(const ScheduleTrace& trace) {
  TransfersByMessage by;
  by.first.resize(trace.messages.size() + 1);
  for (const int32_t m : trace.message_of) ++by.first[static_cast<size_t>(m) + 1];
  for (size_t m = 1; m < by.first.size(); ++m) by.first[m] += by.first[m - 1];
  std::vector<int64_t> next = by.first;
  by.transfer.resize(trace.message_of.size());
  for (size_t t = 0; t < trace.message_of.size(); ++t) {
    const size_t place = static_cast<size_t>(next[static_cast<size_t>(trace.message_of[t])]++);
    by.transfer[place] = static_cast<int64_t>(t);
  }
  return by;
}

void WriteTransfers(const ScheduleTrace& trace, JsonWriter& json) {
  const Schedule& schedule = trace.schedule;
  std::vector<int64_t> arrival_ps;  // by transfer: arrival of its last chunk
  size_t next = 0;
  for (const int32_t count : schedule.count) {
    int64_t last = 0;
    for (int32_t i = 0; i < count; ++i) last = std::max(last, trace.chunk_arrival_ps[next++]);
    arrival_ps.push_back(last);
  }
  const TransfersByMessage by = ByMessage(trace);
  const auto at = [](int64_t t) { return static_cast<size_t>(t); };
  json.Member("transfer_first", by.first);
  Column(json, "chunk", by.transfer, [&](int64_t t) { return schedule.first[at(t)].value; });
  Column(json, "count", by.transfer, [&](int64_t t) { return schedule.count[at(t)]; });
  Letters(json, "op", by.transfer,
          [&](int64_t t) { return schedule.op[at(t)] == TransferOp::kReduce ? 'r' : 'c'; });
  Column(json, "arrival", by.transfer, [&](int64_t t) { return arrival_ps[at(t)]; });
}

void WriteDetail(const Plan& plan, const ScheduleTrace& trace, JsonWriter& json) {
  const Ends ends = EndsOf(trace.schedule, plan.topology);
  std::vector<int64_t> start_ps(trace.messages.size(), kForeverPs), end_ps(trace.messages.size());
  for (const TracedHop& hop : trace.hops) {
    const size_t m = static_cast<size_t>(hop.message);
    start_ps[m] = std::min(start_ps[m], hop.start_ps);
    end_ps[m] = std::max(end_ps[m], hop.arrival_ps);
  }
  json.BeginObject();
  WriteEnds("src", trace, ends.sources, json);
  WriteEnds("dst", trace, ends.destinations, json);
  Column(json, "step", trace.messages, [](const TracedMessage& m) { return m.step; });
  Column(json, "bytes", trace.messages, [](const TracedMessage& m) { return m.bytes; });
  json.Member("start", start_ps);
  json.Member("end", end_ps);
  WriteTransfers(trace, json);
  WriteHops(std::ssize(trace.messages), trace.hops, json);
  WriteConditions(plan.collective, plan.topology.num_ranks(), json);
  json.Key("writes");
  json.Null();
  json.EndObject();
}

void WriteBinned(const Plan& plan, const ScheduleTrace& trace, int32_t bins, JsonWriter& json) {
  json.BeginObject();
  json.Member("bins", int64_t{bins});
  WriteLoads(plan.topology.num_links(), trace.hops, trace.simulation.time_ps, bins, json);
  // An arrival takes about 16 characters: a rank and a time in picoseconds.
  BinnedHoldings(plan.collective, plan.topology, trace, kMostCells / 16).Write(json);
  json.EndObject();
}

// Moves load above 1 to later bins, and what is left at the end to earlier bins. Messages overlap on a link,
// and so load it above 1, if only the time of all their passes together is known.
void SpreadOverflow(std::vector<double>& loads) {
  const auto move_on = [](auto begin, auto end) {
    double rest = 0;
    for (auto load = begin; load != end; ++load) {
      const double all = *load + rest;
      *load = std::min(1.0, all);
      rest = all - *load;
    }
    return rest;
  };
  if (const double rest = move_on(loads.begin(), loads.end()); rest > 0) {
    loads.back() += rest;
    move_on(loads.rbegin(), loads.rend());
  }
}

}  // namespace

void WriteTotals(const LinkTotals& totals, JsonWriter& json) {
  json.Key("links");
  json.BeginObject();
  json.Member("bytes", totals.bytes);
  json.Member("busy_ps", totals.busy_ps);
  json.Member("messages", totals.messages);
  json.EndObject();
}

int32_t BinsFor(const LinkTotals& totals) {
  const int64_t used = std::ranges::count_if(totals.messages, [](int64_t m) { return m > 0; });
  return static_cast<int32_t>(std::clamp<int64_t>(kMostCells / std::max<int64_t>(1, used), 24, 240));
}

void WriteLoads(int32_t num_links, std::span<const TracedHop> hops, int64_t time_ps, int32_t bins,
                JsonWriter& json) {
  std::vector<std::vector<double>> loads(static_cast<size_t>(num_links));
  const double width = static_cast<double>(std::max<int64_t>(1, time_ps)) / bins;
  for (const TracedHop& hop : hops) {
    std::vector<double>& of_link = loads[hop.link.index()];
    if (of_link.empty()) of_link.resize(static_cast<size_t>(bins));
    const double from = static_cast<double>(hop.start_ps) / width;
    const double to = std::max(static_cast<double>(hop.end_ps) / width, from + 1e-9);
    const double rate = static_cast<double>(hop.busy_ps) / width / (to - from);
    for (int32_t b = std::min(static_cast<int32_t>(from), bins - 1); b < bins && b < to; ++b)
      of_link[static_cast<size_t>(b)] +=
          rate * std::max(0.0, std::min<double>(to, b + 1) - std::max<double>(from, b));
  }
  json.Key("loads");
  json.BeginArray();
  for (std::vector<double>& of_link : loads) {
    SpreadOverflow(of_link);
    std::string digits;
    for (const double load : of_link) digits += Digit(load);
    json.String(digits);
  }
  json.EndArray();
}

void WriteHops(int64_t num_messages, std::span<const TracedHop> hops, JsonWriter& json) {
  std::vector<int64_t> first(static_cast<size_t>(num_messages) + 1);
  for (const TracedHop& hop : hops) ++first[static_cast<size_t>(hop.message) + 1];
  for (size_t m = 1; m < first.size(); ++m) first[m] += first[m - 1];
  json.Member("hop_first", first);
  Column(json, "hop_link", hops, [](const TracedHop& h) { return h.link.value; });
  Column(json, "hop_start", hops, [](const TracedHop& h) { return h.start_ps; });
  Column(json, "hop_end", hops, [](const TracedHop& h) { return h.end_ps; });
  Column(json, "hop_busy", hops, [](const TracedHop& h) { return h.busy_ps; });
}

void WriteConditions(const Collective& collective, int32_t num_ranks, JsonWriter& json) {
  WriteRuns("before", HoldingRuns(collective, num_ranks, true), json);
  WriteRuns("needs", HoldingRuns(collective, num_ranks, false), json);
}

bool ShowsMessages(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options) {
  if (trace.copies != 1) return false;
  const int64_t cells = int64_t{plan.topology.num_ranks()} * plan.collective.num_chunks();
  return std::ssize(trace.hops) <= options.most_entries && trace.schedule.size() <= options.most_entries &&
         std::ssize(trace.chunk_arrival_ps) <= 4 * options.most_entries && cells <= kMostCells;
}

void WriteSchedule(const Plan& plan, const ScheduleTrace& trace, const ViewOptions& options, bool plays,
                   JsonWriter& json) {
  const LinkTotals totals = TotalsOf(plan.topology, trace);
  const bool detail = plays && ShowsMessages(plan, trace, options);
  const int32_t bins = BinsFor(totals);
  std::vector<std::string> notes;
  if (plays && !detail)
    notes.push_back(
        fmt::format("This plan has {} transfers in {} messages, too many to show one by one: loads of links "
                    "are averages over {} equal "
                    "parts of the time, and who holds what is added up over groups of ranks and of chunks.",
                    trace.schedule.size(), trace.messages.size(), bins));
  if (plays && trace.ran_segments < trace.segments)
    notes.push_back(fmt::format(
        "Chunks move in {} segments; {} of them were simulated one by one, and the rest is the steady state "
        "that they settle into.",
        trace.segments, trace.ran_segments));
  json.BeginObject();
  json.Member("time_ps", trace.simulation.time_ps);
  json.Member("chunks", plan.collective.num_chunks());
  json.Member("notes", notes);
  WriteTotals(totals, json);
  json.Key("detail");
  if (detail)
    WriteDetail(plan, trace, json);
  else
    json.Null();
  json.Key("binned");
  if (detail || !plays)
    json.Null();
  else
    WriteBinned(plan, trace, bins, json);
  json.EndObject();
}

void WriteUntraced(const Plan& plan, const Simulation& simulation, const std::string& reason,
                   JsonWriter& json) {
  LinkTotals totals(plan.topology);
  const CollectiveSizes sizes(plan.collective, simulation.size_bytes);
  if (plan.schedule.symmetry.empty()) {
    for (int64_t t = 0; t < plan.schedule.size(); ++t) {
      const Transfer transfer = plan.schedule.at(t);
      int64_t bytes = 0;
      for (int32_t c = 0; c < transfer.count; ++c)
        bytes += sizes.ChunkBytes(ChunkId(transfer.first.value + c));
      for (const LinkId link : plan.schedule.paths[transfer.path]) {
        totals.bytes[link.index()] += bytes;
        ++totals.messages[link.index()];
      }
    }
  }
  if (simulation.link_busy_ps.size() == totals.busy_ps.size()) totals.busy_ps = simulation.link_busy_ps;
  json.BeginObject();
  json.Member("time_ps", simulation.time_ps);
  json.Member("chunks", plan.collective.num_chunks());
  json.Member("notes",
              std::vector<std::string>{"This schedule is too large to be shown over time (" + reason + "). " +
                                       (plan.schedule.symmetry.empty()
                                            ? "The loads of links are those of the whole run."
                                            : "The times of links are those of the whole run; their "
                                              "bytes and messages are not counted.")});
  WriteTotals(totals, json);
  json.Key("detail");
  json.Null();
  json.Key("binned");
  json.Null();
  json.EndObject();
}

}  // namespace xccl::view
