// Proves an expert plan for every routing that fits its sizes, or names what is wrong. Shares no code with
// the planner and none with what follows branches for the runtime: trees and hops are walked anew here.
//
// Rules:
//   D1  the sizes fit: experts a multiple of the ranks, top-k, row bytes; counts of the plan in range
//   D2  each tree hangs all ranks on its home, so that every needed rank gets a token's row exactly once
//   D3  each branch that a row may take has a hop of its lane and stage; no hop is of another lane or stage
//   D4  each hop's links and its way back join its ranks, through no other GPU
//   D5  with aim latency a hop has a slot for every row that it may carry; else at least one
//   D6  no ring of hops waits for slots of one another
//   D7  a row that enters a domain by a rank that needs it comes from the home's own domain; with blocks that
//       it enters once, from the home itself
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/routing.h"

namespace xccl::dispatch {

struct Rule {
  std::string_view id, statement;
};
inline constexpr std::array<Rule, 7> kRules = {{
    {"D1", "sizes and counts fit"},
    {"D2", "each tree hangs all ranks on its home"},
    {"D3", "each branch has a hop"},
    {"D4", "each hop's links join its ranks through no other GPU"},
    {"D5", "buffers hold what may arrive"},
    {"D6", "no ring of hops waits for slots of one another"},
    {"D7", "rows that enter a domain by need come from the home's domain"},
}};

struct Fault {
  std::string rule;  // "D2"
  std::string text;  // place: what was seen; what was expected
};

// At most this many faults are listed.
inline constexpr size_t kMostFaults = 20;

// All faults, up to kMostFaults; none: the plan is proved. Cost: lanes × ranks², and the pairs of hops that a
// row takes one after the other.
std::vector<Fault> VerifyExpertPlan(const ExpertPlan& plan);

// A plan that is proved. Errors: kInvalidInput "FILE: [D2] ..." with its first fault.
StatusOr<ExpertPlan> ReadExpertPlan(const std::string& path);

// Moves one routing's rows message by message through the plan's slots, in an order that `seed` draws, both
// ways. Errors: kInvalidInput naming the rule that was broken: a row that a rank gets twice, not at all or
// without need, a buffer that is full, a wait without end. Cost: rows × hops on their ways; for tests.
Status Replay(const ExpertPlan& plan, const Routing& routing, uint64_t seed);

}  // namespace xccl::dispatch
