// Converts a comparison to the lines of its charts, one for each engine or machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/compare.h"

namespace xccl {

enum class EngineGroup : uint8_t {
  kAuto,      // the engine auto, which chooses among all other engines
  kSearches,  // this and the next three are the families of engines (EngineFamily)
  kSwitches,
  kTrees,
  kExchanges,
  kOthers,    // plans of other tools
  kMachines,  // auto's plans on one of several machines
  kMeasured,  // times of a real machine
};
std::string_view ToString(EngineGroup group);  // "searches"
std::string_view LabelOf(EngineGroup group);   // "Searches", to show to the user
// Returns the group of an engine in the table of engines; kOthers if the table lacks the engine.
EngineGroup GroupOf(std::string_view engine);

struct EngineLine {
  std::string name;  // "ring"; with several machines "dgx-h100: ring", and "dgx-h100" for auto
  EngineGroup group = EngineGroup::kOthers;
  bool leads = false;  // on the front, and at some size no engine is faster
  // True if no other line is at least as fast at all sizes of this line. Only the first of several equal
  // lines is on the front. Lines of kAuto and kMeasured do not count: they keep no line off the front, are
  // never on it, and never lead. The former show other engines' plans, and the latter show no plans.
  bool on_front = false;
  std::vector<PlanTime> points;  // by size
};

// Returns the lines in this order: auto, measured lines, lines that lead, other lines of the front, all other
// lines. Lines of one kind are sorted by their geometric mean of time ÷ bound.
std::vector<EngineLine> EngineLines(const Comparison& comparison);

}  // namespace xccl
