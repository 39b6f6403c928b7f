// The programs that test emitted host code: every collective on small machines. The tool that writes the
// code at build time (emit_cases) and the test that runs it use the same list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/program.h"

namespace xccl::testing {

struct KernelCase {
  std::string name;  // "allreduce ring on 3", for failure messages
  Collective collective;
  Program program;
};

// Every program verifies. Deterministic.
std::vector<KernelCase> KernelCases(int32_t ranks);
// The name of a case's kernel in the code that emit_cases writes.
std::string KernelSymbol(int32_t ranks, size_t index);

}  // namespace xccl::testing
