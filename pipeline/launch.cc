#include "pipeline/launch.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {
namespace {

// A silent rank is found, and named, before the others give up because nothing moves.
std::chrono::nanoseconds SilenceLimit(std::chrono::nanoseconds time_limit) {
  return std::clamp<std::chrono::nanoseconds>(time_limit / 2, std::chrono::seconds(1),
                                              BootstrapOptions().silence_limit);
}

}  // namespace

StatusOr<std::unique_ptr<LaunchedGroup>> JoinLaunched(const LaunchOptions& options) {
  const auto environment = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "XCCL_RANK" && options.rank) return std::to_string(*options.rank);
    if (name == "XCCL_SIZE" && options.ranks) return std::to_string(*options.ranks);
    if (name == "XCCL_ADDRESS" && !options.address.empty()) return options.address;
    if (name.starts_with("XCCL_TOKEN") && !(options.token.empty() && options.token_file.empty()))
      return name == "XCCL_TOKEN" ? options.token : options.token_file;  // an empty one is not set
    return ProcessEnvironment(name);
  };
  XCCL_ASSIGN_OR_RETURN(Placement placement, FindPlacement(environment));
  if (options.rank) placement.rank_variable = placement.ranks_variable = "";  // flags did
  if (placement.ranks == 1) return std::unique_ptr<LaunchedGroup>();
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Bootstrap> bootstrap,
                        Bootstrap::Join(placement, {.time_limit = options.group.time_limit,
                                                    .silence_limit = SilenceLimit(options.group.time_limit),
                                                    .interface = options.interface}));
  return std::make_unique<LaunchedGroup>(std::move(bootstrap), options.group);
}

}  // namespace xccl
