// What engines offer on large machines, beside what their plans take.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace xccl {

// Prints a row for each engine and collective of 1 GiB: the time and the work that the engine offers, and
// what making and simulating its plan takes in a child process with limits. Engines that look at all pairs of
// ranks are left out. Takes names of ReadScaledMachine. Errors: those of reading the machine.
Status PrintScaleOffers(const std::vector<std::string>& machines);

}  // namespace xccl
