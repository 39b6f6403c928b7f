// The bars of exact and near-linear synthesis: the demands on a plan for one machine, and the source of each
// number. In: a bar. Out: what a run of it found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/collective.h"
#include "ir/simulate/simulate.h"
#include "synth/common/synthesizer.h"

namespace xccl {

// The quantity that a bar compares.
enum class BarCheck : uint8_t {
  kPlan,      // time, ratio, algbw, depth and seconds of one plan
  kRate,      // as kPlan, but with the algbw of an endless stream, which the busiest link limits
  kProgram,   // the lowered program's time beside the schedule's
  kEveryone,  // auto's time beside the best of all other engines
};

struct Bar {
  bool operator==(const Bar&) const = default;

  std::string_view group;    // one letter
  std::string machine = {};  // as LoadMachine takes it
  CollectiveKind collective = CollectiveKind::kAllgather;
  int32_t first_member = 0;  // ranks before it take no part
  int64_t size_bytes = int64_t{1} << 30;
  TimeModel model = TimeModel::kPipelined;
  int32_t chunks = 0;  // a part, exactly; 0: the engine's choice
  std::string engine = kDefaultEngine;
  BarCheck check = BarCheck::kPlan;
  // The bar is met when all limits that are not 0 hold.
  double most_ratio = 0;
  double most_us = 0;
  double least_gb_per_s = 0;
  double most_seconds = 0;  // CPU seconds
  double most_loss = 0;     // kProgram: program's time ÷ schedule's
  int32_t most_depth = 0;
  bool total_seconds = false;  // seconds include verification
  std::string peer = {};       // the source of the figure, for people
};

std::vector<Bar> AllBars();

struct BarGroup {
  std::string_view letter, what;
};
std::span<const BarGroup> BarGroups();

struct BarResult {
  bool made = false;
  std::string winner;   // engine that made the plan
  std::string problem;  // why there is no figure
  int32_t ranks = 0;
  double time_us = 0, bound_us = 0, gb_per_s = 0;
  double seconds = 0;  // CPU, synthesis with its simulation and bound
  double loss = 0;     // kProgram: program's ÷ schedule's time; kEveryone: auto's ÷ the best other's
  int32_t depth = 0;
  int64_t peak_mib = 0;
  std::string other;  // kEveryone: the best other engine
};

struct BarLimits {
  double cpu_seconds = 60;
  int64_t memory_mib = 3072;
  std::string graphs_folder;
};

// Runs the bar in a child process, so that its memory and time are its own. Never fails: errors are in
// `problem`.
BarResult RunBar(const Bar& bar, const BarLimits& limits);
struct Misses {
  std::string text;  // the limits that are missed: "ratio 1.0302"; "": the bar is met
  double by = 0;     // the largest of the figures over their limits; 0: there is no figure
};
Misses MissesOf(const Bar& bar, const BarResult& result);
// The limits of the bar in words: "ratio <= 1.01, <= 1 s".
std::string Describe(const Bar& bar);

}  // namespace xccl
