#include <fmt/core.h>

#include "base/strings.h"
#include "cli/show.h"
#include "synth/replan/replan.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

constexpr double kFarFromBound = 1.1;  // times the bound: a plan made anew may be faster by as much

bool StartsFrom(const Plan& from, const Plan& plan) {
  if (plan.made_by.engine == kReplan) return true;
  return from.collective.spec() == plan.collective.spec() &&
         WriteNativeXml(from.topology) == WriteNativeXml(plan.topology);
}

std::string WhatItServes(const Plan& plan) {
  return Counted(plan.collective.num_members(), "rank") + " and " + SizeText(plan.made_by.size_bytes);
}

}  // namespace

std::vector<std::string> WarningsOfRepair(const Plan& from, const std::string& place,
                                          const PlanResult& repaired) {
  const Plan& plan = repaired.plan;
  const std::string &old_machine = from.topology.name(), &machine = plan.topology.name();
  const double ratio = RatioOf(repaired.simulation.time_ps, repaired.bound.bound_ps);
  std::vector<std::string> warnings;
  if ((ratio <= kFarFromBound && old_machine == machine) || !StartsFrom(from, plan)) return warnings;
  if (old_machine != machine)
    warnings.push_back(fmt::format("{}: a plan for {}; this machine is {}, and what they have alike was kept",
                                   place, old_machine, machine));
  // The note of a repaired plan states the time of a fresh plan already.
  if (ratio <= kFarFromBound || plan.made_by.engine == kReplan) return warnings;
  const std::string was = WhatItServes(from), is = WhatItServes(plan);
  warnings.push_back(fmt::format("{}: {}{:.4f} x bound; a plan made anew may be faster; hint: without --from",
                                 place, was == is ? "" : fmt::format("made for {}, kept for {}: ", was, is),
                                 ratio));
  return warnings;
}

}  // namespace xccl
