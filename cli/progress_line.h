// The text of a progress line, and when it is due.
#pragma once

#include <string>
#include <string_view>

namespace xccl {

// The facts of work in progress.
struct ProgressState {
  std::string_view what;    // "planning allreduce on dgx1"
  std::string_view detail;  // the current step; empty: none
  double part_done = 0;     // 0..1; 0: unknown
};

// Returns whether the line is due after so many seconds: each second on a terminal, where it replaces the
// line before, and each ten seconds in a pipe or file, where it stays.
bool IsLineDue(bool is_terminal, int seconds);

// Returns the line after so many seconds: "planning allreduce on dgx1, 3 s: tree; best so far 12us by ring".
// In a pipe it begins with "progress: " and ends with a newline.
std::string ProgressLine(const ProgressState& state, bool is_terminal, int seconds);

}  // namespace xccl
