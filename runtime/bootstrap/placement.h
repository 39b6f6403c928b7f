// Who this process is, as its launcher gives it, and where its ranks meet: Open MPI's mpirun, MPICH's Hydra,
// Slurm's srun or torchrun set the environment, or a user by hand. Nothing here starts processes or opens
// sockets. An environment is passed in as a function, so that this file reads no globals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"

namespace xccl {

inline constexpr int32_t kMostRanksOfJob = 1 << 20;

struct Placement {
  std::string launcher;  // "explicit", "open-mpi", "pmi", "slurm", "torchrun", "unique-id"
  Rank rank;
  int32_t ranks = 1;
  std::optional<int32_t> local_rank, local_ranks;  // among the ranks of this host, where the launcher says
  std::string job;                  // names this run on its hosts: letters, digits, dots and dashes
  std::string rendezvous;           // "host:port", "[v6]:port" or several with commas; "" where PMI tells
  std::string token_seed;           // the secret by which ranks know each other, equal on all
  bool guessable = false;           // token_seed is no secret: ranks meet on the loopback alone
  std::optional<int32_t> pmi_file;  // an open file that speaks PMI-1
  std::string host_id;              // XCCL_HOST_ID; "": the kernel's boot and network namespace
  std::string interface;            // XCCL_INTERFACE, as BootstrapOptions::interface
  bool served = false;              // a process serves the rendezvous already: no rank does
  std::string rank_variable, ranks_variable;  // the sources of `rank`, `ranks`; "": none
  bool operator==(const Placement&) const = default;
};

using Environment = std::function<std::optional<std::string>(std::string_view name)>;
// The process's own environment.
std::optional<std::string> ProcessEnvironment(std::string_view name);

// True where a launcher, or a user by hand, started this process as a rank. In all that follows a variable
// that is empty is not set.
bool IsLaunched(const Environment& environment);
// Where no launcher is found, the variables of one that does not tell where its ranks meet, and the variables
// to set instead: "FLUX_TASK_RANK is set, as by Flux, ..."; "": there is none, or it started one process
// alone.
std::string UnusableLauncher(const Environment& environment);
// XCCL_RANK and XCCL_SIZE first, then the variables of Open MPI, PMI, Slurm and torchrun. XCCL_ADDRESS, and
// XCCL_TOKEN or the text of the file XCCL_TOKEN_FILE, replace what any launcher says. Without a token the
// secret is the launcher's (Open MPI's, or what rank 0 leaves with PMI), or the user's own (secret.h). Ranks
// that are given no address are taken to be on one host, and meet on its loopback. The port is made from the
// job's identity where the launcher gives none. Errors: kInvalidInput naming the variable that is missing, no
// number or out of range; kInvalidInput with what was looked for, and UnusableLauncher, where there is no
// launcher.
StatusOr<Placement> FindPlacement(const Environment& environment);

// A time-out of ranks that wait for each other, with the variables that made them wait.
Status NameVariables(const Status& status, const Placement& placement);

}  // namespace xccl
