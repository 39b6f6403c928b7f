// Hand-written programs with multicast and reduce groups: every collective that a switch helps with, on
// several numbers of ranks, every opcode with a group at either end. For emit_cases and the tests that run
// its output, like kernel_cases.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "tests/testing/kernel_cases.h"

namespace xccl::testing {

// How the root of a chunk, which collects its sum or holds it first, handles it.
enum class GroupForm {
  kFused,     // one instruction receives, reduces, stores and sends
  kSeparate,  // one threadblock receives, another sends
  kScratch,   // received into scratch, then added to a copy
  kRelay,     // through a neighbour of the root, which is the root of the groups
};

// A program for a collective over `ranks` ranks, cut into chunks: allreduce, allgather(v),
// reduce_scatter(v), broadcast or reduce. Requires: three ranks; kRelay: four.
Program MakeGroupProgram(const Collective& collective, int32_t ranks, GroupForm form);
// All forms and collectives. Deterministic.
std::vector<KernelCase> GroupCases();

}  // namespace xccl::testing
