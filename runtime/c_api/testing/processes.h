// Ranks that are processes, for tests of the C API: children of the test.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "runtime/xccl.h"

namespace xccl {

// The memory that the processes of a test share.
struct Shared {
  std::atomic<bool> made{false};
  xcclUniqueId id = {};  // made by rank 0 for all ranks
  std::atomic<int> told{0};
};

using Body = std::function<bool(int rank, Shared& all)>;

// Runs the body in a process for every rank, and expects true of each. Whoever is not done after `seconds` is
// killed.
void InProcesses(int ranks, const Body& body, unsigned seconds = 60);

// In a child a test's expectations reach nobody: it prints what it saw.
bool Is(const std::string& seen, const std::string& expected);
bool Is(xcclResult_t seen, xcclResult_t expected);

}  // namespace xccl
