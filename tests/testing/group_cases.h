// Programs with multicast and reduce groups, written by hand: every collective that a switch helps with, on
// several numbers of ranks, every opcode with a group on either side. For emit_cases and the tests that run
// what it writes, as kernel_cases.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "tests/testing/kernel_cases.h"

namespace xccl::testing {

// How a chunk's root, which gathers its sum or has it first, deals with it.
enum class GroupForm {
  kFused,     // one instruction receives, reduces, stores and sends
  kSeparate,  // one threadblock receives, another sends
  kScratch,   // received as it is, then added to a copy
  kRelay,     // through a neighbour of the root, which has the groups
};

// A collective over `ranks` ranks, cut; one that sums or copies to or from all: allreduce, allgather(v),
// reduce_scatter(v), broadcast, reduce. Requires: three ranks; kRelay: four.
Program MakeGroupProgram(const Collective& collective, int32_t ranks, GroupForm form);
// All forms and collectives. Deterministic.
std::vector<KernelCase> GroupCases();

}  // namespace xccl::testing
