#include "pipeline/launch.h"

#include <string_view>
#include <utility>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {
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
  BootstrapOptions how = WithTimeLimit(options.group.time_limit);
  how.interface = options.interface;
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Bootstrap> bootstrap, Bootstrap::Join(placement, how));
  return std::make_unique<LaunchedGroup>(std::move(bootstrap), options.group);
}

}  // namespace xccl
