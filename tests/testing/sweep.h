// Helpers for tests of sweeps: a work list, and tables without the one column that differs between runs.
#pragma once

#include <string>

namespace xccl {

// 36 jobs: 30 plans, and 6 that ring does not serve.
std::string SweepList();
constexpr int kSweepJobs = 36;
// The table's text without the seconds that synthesis took, the only cell that differs between two sweeps.
std::string WithoutSeconds(const std::string& table);
// A command of the shell that waits until the table has so many lines.
std::string WaitForLines(const std::string& table, int lines);

}  // namespace xccl
