// How results look: text for people on standard output, or rows for --json.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/size_range.h"
#include "cli/output.h"
#include "pipeline/compare.h"
#include "pipeline/compare_failures.h"
#include "pipeline/explain.h"
#include "pipeline/plan_result.h"
#include "pipeline/predict.h"

namespace xccl {

struct GroupsResult;
struct ProcessGroup;
struct TrainingPlan;
namespace smt {
struct Front;
}

// Describes times that come from links alone, without a machine's model: "ideal links: bandwidths and
// latencies alone", or with a time "ideal links 392.5us: bandwidths and latencies alone".
std::string OnIdealLinks(std::optional<int64_t> time_ps = {});

// "times on ideal links: ...", or "times of programs on MACHINE". `no_machine`: why there is no machine, in a
// second line.
std::string WhatTimesAreOf(const std::string& machine, const std::string& no_machine = "");
std::vector<Row> ToRows(const std::vector<PlanTime>& times, const Compared& on);
// One plan at several sizes, as people see it.
std::string TimesText(const std::vector<PlanTime>& times);
// Lines for the sizes that the collective does not move whole: "64MiB is rounded down to 67108800B".
std::string RoundedText(const std::vector<PlanTime>& times);

// How a planning command ended: the file or book that it wrote, and the seconds since the program began.
struct Ended {
  std::string file;  // empty: none
  double total_s = 0;
  std::vector<std::string> warnings = {};  // warnings beside the topology's
};

// Warnings that a plan which starts from another plan may be worse than a fresh one: the other plan was made
// for another machine, or the result takes much longer than the bound. `place` opens each. Empty if the plan
// was made afresh.
std::vector<std::string> WarningsOfRepair(const Plan& from, const std::string& place,
                                          const PlanResult& repaired);

Row PlanRow(const PlanResult& result, const Ended& ended);
std::string PlanText(const PlanResult& result, const std::string& requested_engine, const Ended& ended);

// The texts "name: text" of plan --explain for --json.
std::vector<std::string> ExplanationTexts(std::span<const NamedLine> why);

std::vector<int64_t> Numbers(std::span<const Rank> ranks);

// For people, four significant digits: "64MiB", "4.107GiB", "77B".
std::string FormatSizeShort(int64_t bytes);

// A comparison of engines as text. The text has the rows of one size, and where they are the first, the title
// and the names of columns.
std::string CompareText(const Comparison& of_size, bool first);
// Rows of ToRows(times, on), and more: messages, threadblocks (null: not known), measured, note (why auto
// kept the plan, else null). With several machines each row says its own.
std::vector<Row> ToRows(const Comparison& comparison);
std::string SkippedText(const std::vector<std::string>& reasons);

std::string CompareText(const FailureComparison& comparison);
// draw_us: the time on each machine of `failed`, null where there is no plan.
std::vector<Row> ToRows(const FailureComparison& comparison);

// plan --pareto: the front between steps and rounds a chunk. One row a point: chunks, steps, rounds, cost
// (R/C as text), cost_value, bound, proved_by, proved_chunks (null: for any number), found_by, seconds,
// front_complete.
std::vector<Row> FrontRows(const smt::Front& front);
std::string FrontText(const smt::Front& front);

// The busbw, in bytes per second, of a group whose collective takes so long.
double BusBandwidth(const ProcessGroup& group, int64_t ps);
// The plan of several groups: a line for each group, then the plan of all. Where there are many groups, there
// is a line for each kind.
std::string GroupsText(const GroupsResult& groups, const Ended& ended);
std::string GroupsJson(const GroupsResult& groups, const Ended& ended);

// A planned training step: a line for each kind of group.
std::string TrainingText(const TrainingPlan& plan, const Ended& ended);
std::string TrainingJson(const TrainingPlan& plan, double total_s);

}  // namespace xccl
