// The engines or machines of a comparison as the lines of its charts: each line's group, and whether the line
// is on the front.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/compare.h"

namespace xccl {

enum class EngineGroup : uint8_t {
  kAuto,      // the choice among all other engines
  kSearches,  // the families of engines (EngineFamily)
  kSwitches,
  kTrees,
  kExchanges,
  kOthers,    // plans of other tools
  kMachines,  // auto's plans, each on one of several machines
  kMeasured,  // times of a real machine
};
std::string_view ToString(EngineGroup group);  // "searches"
std::string_view LabelOf(EngineGroup group);   // "Searches", for people
// The group of an engine by its row in the table of engines; kOthers: the table has no such engine.
EngineGroup GroupOf(std::string_view engine);

struct EngineLine {
  std::string name;  // with several machines: "dgx-h100" for auto, else "dgx-h100: ring"
  EngineGroup group = EngineGroup::kOthers;
  bool leads = false;  // on the front, and at some size no engine is faster
  // No other engine is at least as fast at all sizes of this line. The first of several equal engines counts.
  // auto is neither on the front nor does it lead, since its plans are other engines' plans. Measured lines
  // are and do neither, since they are no plans.
  bool on_front = false;
  std::vector<PlanTime> points;  // by size
};

// Lines in this order: auto, measured lines, lines that lead at some size, other lines of the front, all
// other lines; lines of one kind by their mean ratio to the bound (geometric).
std::vector<EngineLine> EngineLines(const Comparison& comparison);

}  // namespace xccl
