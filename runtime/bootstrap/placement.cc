#include "runtime/bootstrap/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/units.h"

namespace xccl {
namespace {

// The variables of one launcher; empty names where it has none.
struct Launcher {
  std::string_view name, rank, ranks, local_rank, local_ranks;
  std::array<std::string_view, 2> job;
};

constexpr std::array<Launcher, 4> kLaunchers = {{
    {"explicit", "XCCL_RANK", "XCCL_SIZE", "XCCL_LOCAL_RANK", "XCCL_LOCAL_SIZE", {"XCCL_JOB", ""}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"TORCHELASTIC_RUN_ID", "MASTER_PORT"}},
    {"open-mpi",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
}};

StatusOr<int32_t> Number(const Environment& environment, std::string_view name, int64_t low, int64_t high) {
  const std::optional<std::string> text = environment(name);
  if (!text)
    return InvalidInput(fmt::format("{}: not set; expected a number from {} to {}", name, low, high));
  StatusOr<int64_t> number = ParseInteger(*text, low, high);
  if (!number.ok()) return Annotate(number.status(), name);
  return static_cast<int32_t>(*number);
}

StatusOr<std::optional<int32_t>> NumberIfSet(const Environment& environment, std::string_view name,
                                             int64_t low, int64_t high) {
  if (name.empty() || !environment(name)) return std::optional<int32_t>();
  XCCL_ASSIGN_OR_RETURN(const int32_t number, Number(environment, name, low, high));
  return std::optional<int32_t>(number);
}

std::string JobName(const Environment& environment, const Launcher& launcher) {
  std::string job(launcher.name);
  for (std::string_view name : launcher.job) {
    if (name.empty()) continue;
    if (const auto text = environment(name)) job += "-" + *text;
  }
  // It becomes part of a file name.
  for (char& c : job)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '.';
  return job.substr(0, 120);
}

StatusOr<Placement> PlacementBy(const Launcher& launcher, const Environment& environment) {
  Placement placement;
  placement.launcher = launcher.name;
  XCCL_ASSIGN_OR_RETURN(placement.ranks, Number(environment, launcher.ranks, 1, 1 << 20));
  XCCL_ASSIGN_OR_RETURN(const int32_t rank, Number(environment, launcher.rank, 0, placement.ranks - 1));
  placement.rank = Rank(rank);
  XCCL_ASSIGN_OR_RETURN(placement.local_ranks,
                        NumberIfSet(environment, launcher.local_ranks, 1, placement.ranks));
  XCCL_ASSIGN_OR_RETURN(
      placement.local_rank,
      NumberIfSet(environment, launcher.local_rank, 0, placement.local_ranks.value_or(placement.ranks) - 1));
  placement.job = JobName(environment, launcher);
  return placement;
}

}  // namespace

std::optional<std::string> ProcessEnvironment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

StatusOr<Placement> FindPlacement(const Environment& environment) {
  std::string looked_for;
  for (const Launcher& launcher : kLaunchers) {
    if (environment(launcher.rank)) return PlacementBy(launcher, environment);
    looked_for += fmt::format("{}{}", looked_for.empty() ? "" : ", ", launcher.rank);
  }
  return InvalidInput(
      fmt::format("no launcher: none of {} is set; hint: mpirun -n 8, srun or torchrun", looked_for));
}

}  // namespace xccl
