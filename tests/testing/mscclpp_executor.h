// Runs execution plans of MSCCL++ on numbers, as its executor (microsoft/mscclpp 1f5f065, execution_plan.cc,
// executor.cc and execution_kernel.hpp) does: blocks of several threads that run apart between two nops,
// packets with the flag of their call, scratch in two halves by the size of the rank's own, ports that read
// and signal later, and several calls in a row. Shares no code with the reader that proves plans
// (interchange/mscclpp/read.h) beside that for the file's elements.
#pragma once

#include <cstdint>
#include <string>

#include "ir/collective.h"

namespace xccl {

struct MscclppExecution {
  int32_t calls = 2;
  uint64_t seed = 0;       // seeds the numbers and the order in which threads take turns
  bool late_ports = true;  // ports move nothing while some thread can go on; else at any time
};

// Runs the plan and returns the first fault: a wrong element, or a thread that waits forever; empty: none.
// Between two calls of a rank its caller overwrites inputs and outputs. Operators are sums.
std::string RunMscclppPlan(const std::string& text, CollectiveKind kind, int32_t root,
                           const MscclppExecution& execution);

}  // namespace xccl
