#include "pipeline/exec/job_shape.h"

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr std::string_view kHint = "; hint: --topology";

// Returns the environment with an unused address and token. The shape of the job does not depend on them, but
// FindPlacement would otherwise look for the user's token file.
Environment WithoutMeeting(const Environment& environment) {
  return [environment](std::string_view name) -> std::optional<std::string> {
    if (name == "XCCL_ADDRESS") return "127.0.0.1:1";
    if (name == "XCCL_TOKEN") return "unused";
    if (name == "XCCL_TOKEN_FILE") return std::nullopt;
    return environment(name);
  };
}

std::optional<int32_t> NumberOf(const Environment& environment, std::string_view name) {
  const std::optional<std::string> text = environment(name);
  if (!text) return std::nullopt;
  const StatusOr<int64_t> number = ParseInteger(*text, 1, kMostRanksOfJob);
  return number.ok() ? std::optional(static_cast<int32_t>(*number)) : std::nullopt;
}

// Returns the number of ranks on each host by Slurm's variables, if they are set. "4(x2)" is 4 ranks on each
// of 2 hosts. "4(x2),3" is refused, because its hosts differ.
StatusOr<std::optional<int32_t>> RanksPerHostOfSlurm(const Environment& environment, int32_t ranks) {
  for (const std::string_view name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const std::optional<std::string> text = environment(name);
    if (!text || text->empty()) continue;
    const StatusOr<int64_t> number = ParseInteger(text->substr(0, text->find('(')), 1, kMostRanksOfJob);
    if (!number.ok() || text->find(',') != std::string::npos)
      return InvalidInput(
          fmt::format("{}={}: expected equally many ranks on all hosts{}", name, *text, kHint));
    return std::optional(static_cast<int32_t>(*number));
  }
  for (const std::string_view name : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
    if (const std::optional<int32_t> hosts = NumberOf(environment, name); hosts && ranks % *hosts == 0)
      return std::optional(ranks / *hosts);
  return std::optional<int32_t>();
}

StatusOr<int32_t> RanksPerHost(const Environment& environment, const Placement& placement) {
  if (placement.local_ranks) return *placement.local_ranks;
  if (placement.ranks == 1) return 1;
  if (placement.launcher == "slurm") {
    XCCL_ASSIGN_OR_RETURN(const std::optional<int32_t> number,
                          RanksPerHostOfSlurm(environment, placement.ranks));
    if (number) return *number;
  }
  // Ranks that a user starts by hand without an address are on one host.
  if (placement.launcher == "explicit" && !environment("XCCL_ADDRESS")) return placement.ranks;
  const std::string_view wanted = placement.launcher == "explicit"   ? "XCCL_LOCAL_SIZE"
                                  : placement.launcher == "torchrun" ? "LOCAL_WORLD_SIZE"
                                  : placement.launcher == "slurm"    ? "SLURM_STEP_TASKS_PER_NODE"
                                                                     : "MPI_LOCALNRANKS";
  return InvalidInput(fmt::format("{}: not set; expected the number of ranks on each host{}", wanted, kHint));
}

}  // namespace

StatusOr<std::optional<JobShape>> ShapeOfJob(const Environment& environment) {
  if (!IsLaunched(environment)) {
    if (const std::string unusable = UnusableLauncher(environment); !unusable.empty())
      return InvalidInput(unusable);
    return std::optional<JobShape>();
  }
  XCCL_ASSIGN_OR_RETURN(const Placement placement, FindPlacement(WithoutMeeting(environment)));
  XCCL_ASSIGN_OR_RETURN(const int32_t here, RanksPerHost(environment, placement));
  const JobShape shape = {placement.rank, placement.ranks / here, here};
  const bool is_open_mpi = placement.launcher == "open-mpi";
  const int32_t hosts =
      (is_open_mpi ? NumberOf(environment, "OMPI_MCA_orte_num_nodes") : std::nullopt).value_or(shape.hosts);
  if (shape.ranks() != placement.ranks || shape.hosts != hosts)
    return InvalidInput(fmt::format("{} ranks, {} of them on this host; expected equally many on all hosts{}",
                                    placement.ranks, here, kHint));
  if (placement.local_rank && placement.rank.value % here != *placement.local_rank)
    return InvalidInput(
        fmt::format("rank {} is number {} of the {} on its host; expected consecutive ranks on each host{}",
                    placement.rank.value, *placement.local_rank, here, kHint));
  return std::optional(shape);
}

}  // namespace xccl
