// Ranks that a launcher started as processes: whether this process is one of them, and its meeting with the
// others. docs/running.md has the launchers.
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
  std::string interface;  // of the network; empty: chosen
  LaunchedGroupOptions group;
};

// Null where the launcher started one process alone. Requires: IsLaunched, or rank and ranks are set. Errors:
// those of FindPlacement and Bootstrap::Join.
StatusOr<std::unique_ptr<LaunchedGroup>> JoinLaunched(const LaunchOptions& options);

}  // namespace xccl
