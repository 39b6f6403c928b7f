// What a reader of another tool's plan is told, and what it returns. interchange/import.h picks the
// reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

struct ImportOptions {
  std::string file = "plan";                      // opens messages
  std::optional<CollectiveKind> collective = {};  // of a file that does not say which it is for
  // Of broadcast, reduce, gather and scatter: no format has one. Absent: what the plan does says it, where
  // one rank alone reads input or writes output; else rank 0.
  std::optional<Rank> root = {};
  bool plain_switches = false;  // what switches do is read rank by rank
  std::string beside = {};      // what else the caller reads, for messages
};

// A foreign plan, proved. Files name no machine: paths of the program are missing, or hints that only the
// machine for which the file was made can tell true.
struct Imported {
  std::string format;                    // "MSCCL XML"
  std::string name;                      // that the file gives itself; empty: none
  LoweredProgram lowered;                // rules P1 to P9 hold but for paths
  int64_t min_bytes = 0, max_bytes = 0;  // sizes that it is for, and safe at; 0: no upper limit
  std::vector<std::string> warnings =
      {};  // what the tools that the format is for would refuse or run wrongly, with its place
  std::string in_a_row =
      {};  // what goes wrong when calls follow each other; empty: nothing. A warning says it
};

}  // namespace xccl
