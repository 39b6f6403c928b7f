// The bars of large machines: whole plans, each in a child process with the time and the memory of its bar.
#pragma once

#include <string>
#include <vector>

namespace xccl {

// Prints a table of the machines whose names begin with one of `machines` (all if it is empty): seconds, peak
// memory, ratio, file and whether the bar is met.
void PrintScaleBars(const std::vector<std::string>& machines);

}  // namespace xccl
