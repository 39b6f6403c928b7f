// The flags of ranks that a launcher started as processes.
#include <string>
#include <utility>

#include "base/strings.h"
#include "cli/flags.h"
#include "cli/say.h"
#include "runtime/bootstrap/placement.h"

namespace xccl {

void AddLaunchFlags(Command& command, LaunchFlags& flags) {
  command
      .AddOption(
          "--rank", flags.options.rank,
          "this process is this rank; without it a launcher's environment says (mpirun, mpiexec, srun, "
          "torchrun)")
      .Between(0, kMostRanksOfJob);
  command.AddOption("--ranks", flags.options.ranks, "of so many processes").Between(1, kMostRanksOfJob);
  command.AddOption("--address", flags.options.address,
                    "HOST:PORT of rank 0's host, where they meet (default: the launcher's)");
  command.AddOption("--token", flags.options.token,
                    "any text, the same for all; others are refused. ps shows it while a process starts; "
                    "prefer --token-file or XCCL_TOKEN");
  command.AddOption("--token-file", flags.options.token_file,
                    "the file that has the token, for its owner alone (mode 0600)");
  command.AddOption("--interface", flags.options.interface,
                    "network interfaces by the start of their names: eth,ib0; ^docker excludes");
  command.AddOption("--network", flags.network, "between hosts: auto, verbs, ofi")
      .OneOf({ToString(NetworkKind::kAuto), ToString(NetworkKind::kVerbs), ToString(NetworkKind::kOfi)})
      .ShowDefault();
  command.AddOption("--devices", flags.devices, "its devices by rail: mlx5_0,mlx5_1 (default: found)");
  command.AddOption("--provider", flags.options.group.provider,
                    "of libfabric: efa, net, tcp, ... (default: the best that is found)");
}

StatusOr<std::unique_ptr<LaunchedGroup>> JoinGroup(const LaunchFlags& flags,
                                                   std::chrono::nanoseconds time_limit) {
  if (flags.options.rank.has_value() != flags.options.ranks.has_value())
    return UsageError("--rank, --ranks: one without the other; expected both");
  if (flags.options.ranks == 1)
    return UsageError("--ranks: 1; expected 2 or more: a process alone needs neither it nor --rank");
  if (!flags.options.token.empty() && !flags.options.token_file.empty())
    return UsageError("--token, --token-file: both; expected one");
  if (!flags.options.rank && !IsLaunched(ProcessEnvironment)) {
    if (!flags.options.address.empty() || !flags.options.token.empty() || !flags.options.token_file.empty())
      return UsageError(
          "--address, --token, --token-file: no other process to meet; expected --rank and --ranks, or a "
          "launcher");
    if (const std::string unusable = UnusableLauncher(ProcessEnvironment); !unusable.empty())
      SayNote("this process runs alone: " + unusable);
    return std::unique_ptr<LaunchedGroup>();
  }
  LaunchOptions options = flags.options;
  options.group.network = ParseNetworkKind(flags.network).value_or(NetworkKind::kAuto);
  if (!flags.devices.empty()) options.group.devices = Split(flags.devices, ',');
  options.group.time_limit = time_limit;
  return JoinLaunched(options);
}

}  // namespace xccl
