// Finds the environment variables by which a program runs the plans of a book. Sets and starts nothing.
// docs/nccl.md and docs/library.md say what reads each variable.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {

// Paths of the libraries for programs that call NCCL.
struct Plugins {
  std::string shim;   // libxccl-nccl.so
  std::string tuner;  // libnccl-tuner-xccl.so
  bool operator==(const Plugins&) const = default;
};

// Finds the libraries where tools/install and packages put them, relative to the program's folder, or where a
// build leaves them. Errors: kInvalidInput with the first of these folders if a library is missing;
// kInvalidInput if a library's path has a blank or a colon, since LD_PRELOAD cannot name it.
StatusOr<Plugins> FindPlugins(const std::string& program);

// A book, and how a program comes to run its plans.
struct BookUse {
  std::string directory;           // an absolute path
  std::optional<Plugins> plugins;  // for a program that calls NCCL; absent: for one that calls xccl.h
  bool has_plans = true;           // false: the book has only the table for NCCL's tuner
  bool has_table = false;          // the book has rows for NCCL's tuner
  bool is_one_host = true;         // all ranks of the job are on this host
};

// Returns the variables to set and their values. Names that are in LD_PRELOAD already stay there. The tuner
// is left out if the user has chosen another tuner. It is also left out on several hosts: ranks whose tables
// differ hang, and no rank sees another host's table. The shim needs no such check, because it leaves calls
// to NCCL if its ranks have different books.
std::vector<std::pair<std::string, std::string>> VariablesOf(const BookUse& use,
                                                             const Environment& environment);

}  // namespace xccl
