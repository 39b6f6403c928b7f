// The engines or machines of a comparison as the lines of its charts: in groups, and which of them are on the
// front.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/compare.h"

namespace xccl {

enum class EngineGroup : uint8_t {
  kAuto,       // the choice among all other engines
  kSearches,   // that look at the links
  kSwitches,   // that multicast or reduce in switches
  kTrees,      // rings, trees and grids of the textbook
  kExchanges,  // between pairs of ranks, in few steps
  kOthers,     // plans of other tools
  kMachines,   // auto's plans, each on one of several machines
  kMeasured,   // times of a real machine
};
std::string_view ToString(EngineGroup group);  // "searches"
std::string_view LabelOf(EngineGroup group);   // "Searches", for people
// kOthers: none of our engines.
EngineGroup GroupOf(std::string_view engine);

struct EngineLine {
  std::string name;  // with several machines: "dgx-h100" for auto, else "dgx-h100: ring"
  EngineGroup group = EngineGroup::kOthers;
  bool leads = false;  // on the front, and at some size no engine is faster
  // No other engine is at least as fast at all of its sizes. Of engines that are equal at all sizes the first
  // counts. auto neither leads nor is on the front: its plans are other engines' plans. Nor does what was
  // measured: it is no plan.
  bool on_front = false;
  std::vector<TimedPlan> points;  // by size
};

// Lines in this order: auto, measured lines, lines that lead at some size, other lines of the front, all
// other lines; lines of one kind by their mean ratio to the bound (geometric).
std::vector<EngineLine> EngineLines(const Comparison& comparison);

}  // namespace xccl
