// Runs work in a forked child process, so that its memory and its time are its own and bounded. In: limits,
// and a function that returns one text. Out: the text, or why there is none, and what the child used.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace xccl {

struct ChildLimits {
  double cpu_seconds = 60;
  int64_t memory_mib = 3072;  // of address space
};

struct ChildResult {
  std::string text;     // what the work returned; empty if the child did not end well
  std::string problem;  // "stopped after 60 CPU seconds", "died of signal 6 (3000 MiB)"; empty: none
  int64_t peak_mib = 0;
};

// Requires: no other thread runs, since the child has only this one.
ChildResult RunInChild(const ChildLimits& limits, const std::function<std::string()>& work);

}  // namespace xccl
