// Joins this process with the other ranks of its group, if a launcher started each rank as a process.
// docs/running.md lists the launchers.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/launched/launched_group.h"

namespace xccl {

struct LaunchOptions {
  // If set, these values replace those of the launcher's environment.
  std::optional<int32_t> rank, ranks;
  std::string address;  // where the ranks meet: "host:port"; empty: the launcher's address
  std::string token;    // empty: the token in token_file, or the launcher's token
  std::string token_file;
  std::string interface;  // the network interface; empty: chosen automatically
  LaunchedGroupOptions group;
};

// Joins the group and returns this process's place in it. Returns null if the group has only one process.
// Requires that IsLaunched is true, or that `rank` and `ranks` are set. Errors: those of FindPlacement and
// Bootstrap::Join.
StatusOr<std::unique_ptr<LaunchedGroup>> JoinLaunched(const LaunchOptions& options);

}  // namespace xccl
