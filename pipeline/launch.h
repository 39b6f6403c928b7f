// Ranks that a launcher started as processes: joins this process with the other ranks. docs/running.md lists
// the launchers.
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
  // Set: instead of the launcher's environment.
  std::optional<int32_t> rank, ranks;
  std::string address;  // where the ranks meet: "host:port"; empty: the launcher's
  std::string token;    // empty: that of token_file, or the launcher's
  std::string token_file;
  std::string interface;  // the network interface; empty: chosen
  LaunchedGroupOptions group;
};

// Null where the launcher started one process alone. Requires: IsLaunched, or rank and ranks are set. Errors:
// those of FindPlacement and Bootstrap::Join.
StatusOr<std::unique_ptr<LaunchedGroup>> JoinLaunched(const LaunchOptions& options);

}  // namespace xccl
