// The bars of large machines: whole plans, each in a child process with the time and the memory of its bar.
#pragma once

#include <string>
#include <vector>

namespace xccl {

// Prints a table, each row as it ends: seconds, peak memory, ratio, file and whether the bar is met. Only
// rows "MACHINE COLLECTIVE SIZE" that begin with one of `rows`, or all if it is empty.
void PrintScaleBars(const std::vector<std::string>& rows);

}  // namespace xccl
