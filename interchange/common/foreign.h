// The options and the result of the readers of other tools' plans. interchange/import.h picks the reader.
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
  std::optional<CollectiveKind> collective = {};  // for files that do not name their collective
  // The root of a broadcast, reduce, gather or scatter, which no format names. Absent: the one rank that
  // alone reads input or writes output, if the plan has one; else rank 0.
  std::optional<Rank> root = {};
  bool plain_switches = false;  // multicasts and sums in switches are read as messages rank by rank
  std::string beside = {};      // names the other files that the caller reads, for messages
};

// A foreign plan, proved. Files name no machine: paths of the program are missing, or hints that only the
// machine for which the file was made can tell true.
struct Imported {
  std::string format;                    // "MSCCL XML"
  std::string name;                      // the name that the file gives itself; empty: none
  LoweredProgram lowered;                // rules P1 to P9 hold but for paths
  int64_t min_bytes = 0, max_bytes = 0;  // sizes that it is for, and safe at; 0: no upper limit
  std::vector<std::string> warnings =
      {};  // parts that the format's own tools would refuse or run wrongly, each with its place
  std::string in_a_row =
      {};  // the fault of calls that follow each other, which is also a warning; empty: none
};

}  // namespace xccl
