#include "pipeline/launch.h"

#include <string_view>
#include <utility>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {
namespace {

// Returns the error with the flag's name in place of the variable's name, if the user gave the flag.
Status NameFlags(const Status& status, const LaunchOptions& options) {
  const std::string& text = status.message();
  const auto name = [&](std::string_view variable, std::string_view flag) {
    return Status(status.code(), std::string(flag) + text.substr(variable.size()));
  };
  if (options.rank && text.starts_with("XCCL_RANK: ")) return name("XCCL_RANK", "--rank");
  if (options.ranks && text.starts_with("XCCL_SIZE: ")) return name("XCCL_SIZE", "--ranks");
  if (!options.address.empty() && text.starts_with("XCCL_ADDRESS")) return name("XCCL_ADDRESS", "--address");
  return status;
}

}  // namespace

StatusOr<std::unique_ptr<LaunchedGroup>> JoinLaunched(const LaunchOptions& options) {
  const auto environment = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "XCCL_RANK" && options.rank) return std::to_string(*options.rank);
    if (name == "XCCL_SIZE" && options.ranks) return std::to_string(*options.ranks);
    if (name == "XCCL_ADDRESS" && !options.address.empty()) return options.address;
    if (name.starts_with("XCCL_TOKEN") && !(options.token.empty() && options.token_file.empty()))
      return name == "XCCL_TOKEN" ? options.token : options.token_file;  // an empty value counts as unset
    return ProcessEnvironment(name);
  };
  StatusOr<Placement> found = FindPlacement(environment);
  if (!found.ok()) return NameFlags(found.status(), options);
  Placement placement = *std::move(found);
  if (options.rank) placement.rank_variable = placement.ranks_variable = "";  // flags set rank and ranks
  if (placement.ranks == 1) return std::unique_ptr<LaunchedGroup>();
  BootstrapOptions how = WithTimeLimit(options.group.time_limit);
  how.interface = options.interface;
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Bootstrap> bootstrap, Bootstrap::Join(placement, how));
  return std::make_unique<LaunchedGroup>(std::move(bootstrap), options.group);
}

}  // namespace xccl
