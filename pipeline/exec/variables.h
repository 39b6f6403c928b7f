// The environment by which a program runs the plans of a book: values only, nothing is set or started.
// docs/nccl.md and docs/library.md say what reads each variable.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {

// The plugins for NCCL; paths.
struct Plugins {
  std::string shim;   // libxccl-nccl.so
  std::string tuner;  // libnccl-tuner-xccl.so
  bool operator==(const Plugins&) const = default;
};

// Looks where tools/install and packages put them, beside the program's folder, and where a build leaves
// them. Errors: kInvalidInput with the folders if one is missing; kInvalidInput if LD_PRELOAD cannot name it.
StatusOr<Plugins> FindPlugins(const std::string& program);

// The book that a program is to run, and the way it gets there.
struct BookUse {
  std::string directory;           // an absolute path
  std::optional<Plugins> plugins;  // for a program that calls NCCL; absent: for one that calls xccl.h
  bool has_plans = true;           // false: the table for NCCL's tuner is all there is
  bool has_table = false;          // rows for NCCL's tuner
  bool is_one_host = true;         // all ranks of the job are on this host
};

// The variables to set and their values. LD_PRELOAD keeps what it has. The tuner is left out if the user has
// chosen one, and on several hosts: ranks whose tables differ hang, and no rank sees another host's table. A
// shim whose ranks have different books leaves the calls to NCCL.
std::vector<std::pair<std::string, std::string>> VariablesOf(const BookUse& use,
                                                             const Environment& environment);

}  // namespace xccl
