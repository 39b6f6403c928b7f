// A lowering pass: an instruction waits for at most one instruction of each threadblock. Threadblocks run
// their instructions in order, so waiting for the last of several is enough.
#pragma once

#include "ir/program.h"

namespace xccl {

// Later passes may assume that the dependencies of an instruction name different threadblocks. Requires: a
// program that verifies; it verifies afterwards too. Linear × log in the dependencies.
void KeepLatestDependencies(Program& program);

}  // namespace xccl
