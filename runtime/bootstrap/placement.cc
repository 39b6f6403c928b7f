#include "runtime/bootstrap/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/secret.h"
#include "topologies/fabric/host_list.h"

namespace xccl {
namespace {

// The variables of one launcher; empty names where it has none.
struct Launcher {
  std::string_view name, rank, ranks, local_rank, local_ranks;
  std::array<std::string_view, 3> job;  // variables whose values tell jobs apart
  std::string_view secret;              // random, known to the job alone
};

constexpr Launcher kExplicit = {"explicit",        "XCCL_RANK",  "XCCL_SIZE", "XCCL_LOCAL_RANK",
                                "XCCL_LOCAL_SIZE", {"XCCL_JOB"}, ""};
constexpr Launcher kTorchrun = {"torchrun",
                                "RANK",
                                "WORLD_SIZE",
                                "LOCAL_RANK",
                                "LOCAL_WORLD_SIZE",
                                {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"},
                                ""};
constexpr Launcher kOpenMpi = {"open-mpi",
                               "OMPI_COMM_WORLD_RANK",
                               "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK",
                               "OMPI_COMM_WORLD_LOCAL_SIZE",
                               {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
                               "OMPI_MCA_orte_precondition_transports"};
constexpr Launcher kPmi = {"pmi",         "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
                           {"PMI_JOBID"}, ""};
constexpr Launcher kSlurm = {
    "slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", {"SLURM_JOB_ID", "SLURM_STEP_ID"}, ""};

// Launchers that give ranks, and neither a place to meet nor a way to leave word there. `ranks`
// is empty where no variable has the size.
struct Unusable {
  std::string_view name, rank, ranks;
};
constexpr std::array<Unusable, 7> kUnusable = {{{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                                {"PALS", "PALS_RANKID", "PMI_SIZE"},
                                                {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
                                                {"aprun", "ALPS_APP_PE", ""},
                                                {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                                {"a launcher with PMI but no PMI_FD", "PMI_RANK", "PMI_SIZE"},
                                                {"a launcher with PMIx", "PMIX_RANK", ""}}};

bool IsNumber(const std::optional<std::string>& text) {
  return text && !text->empty() &&
         std::all_of(text->begin(), text->end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// A launcher that another one started inherits the other's variables: the inner one comes first, and torchrun
// is always the inner one. Under salloc, mpirun's processes have Slurm's variables too.
const Launcher* FindLauncher(const Environment& environment) {
  if (environment(kExplicit.rank)) return &kExplicit;
  if (environment("TORCHELASTIC_RUN_ID") && environment(kTorchrun.rank)) return &kTorchrun;
  if (environment(kOpenMpi.rank)) return &kOpenMpi;
  if (environment(kPmi.rank) && environment("PMI_FD")) return &kPmi;
  if (environment(kTorchrun.rank)) return &kTorchrun;
  if (environment(kSlurm.rank) && IsNumber(environment("SLURM_STEP_ID"))) return &kSlurm;
  return nullptr;
}

// Scripts set variables to nothing where they have no value for them.
Environment WithoutEmpty(const Environment& environment) {
  return [environment](std::string_view name) -> std::optional<std::string> {
    std::optional<std::string> text = environment(name);
    if (text && text->empty()) text.reset();
    return text;
  };
}

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
  // It becomes part of names.
  for (char& c : job)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '.';
  return job.substr(0, 120);
}

std::string WithPort(std::string_view host, uint16_t port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("[{}]:{}", host, port);
}

// "1234.0;tcp://10.77.0.1,192.168.1.1:60675;tcp6://[fd00::1]:60676" has three hosts.
std::vector<std::string> HostsOfUri(std::string_view uri) {
  std::vector<std::string> hosts;
  for (const std::string& part : Split(uri, ';')) {
    const size_t scheme = part.find("://");
    if (scheme == std::string::npos || part.substr(0, 3) != "tcp") continue;
    const std::string rest = part.substr(scheme + 3);
    for (std::string host : Split(rest.substr(0, rest.rfind(':')), ',')) {
      std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
      if (!host.empty()) hosts.push_back(std::move(host));
    }
  }
  return hosts;
}

// The hosts at which ranks may meet, as the launcher names them.
StatusOr<std::vector<std::string>> MeetingHosts(const Launcher& launcher, const Environment& environment,
                                                const Placement& placement) {
  const std::vector<std::string> loopback = {"127.0.0.1"};
  if (&launcher == &kTorchrun) {
    const auto host = environment("MASTER_ADDR");
    if (!host)
      return InvalidInput(
          "MASTER_ADDR: not set, while RANK and WORLD_SIZE are; expected the address of rank 0's host; hint: "
          "unset RANK where no launcher started this process");
    return std::vector<std::string>{*host};
  }
  if (placement.local_ranks == placement.ranks || &launcher == &kExplicit) return loopback;
  if (&launcher == &kOpenMpi) {
    std::vector<std::string> hosts = HostsOfUri(environment("OMPI_MCA_orte_hnp_uri").value_or(""));
    if (hosts.empty())
      return InvalidInput(
          "OMPI_MCA_orte_hnp_uri: no address; expected that of mpirun's host; hint: mpirun -x "
          "XCCL_ADDRESS=HOST:PORT");
    return hosts;
  }
  if (&launcher == &kSlurm && environment("SLURM_STEP_NUM_NODES") != "1") {
    const auto list = environment("SLURM_STEP_NODELIST");
    if (!list) return InvalidInput("SLURM_STEP_NODELIST: not set; expected the hosts of the step");
    StatusOr<std::vector<std::string>> hosts = ExpandHostList(*list);
    if (!hosts.ok()) return Annotate(hosts.status(), "SLURM_STEP_NODELIST");
    hosts->resize(1);
    // Slurm's names of nodes need not be known to the resolver. Under sbatch srun's host is the first node.
    if (const auto srun = environment("SLURM_LAUNCH_NODE_IPADDR"); srun && !srun->empty())
      hosts->push_back(*srun);
    return hosts;
  }
  return loopback;
}

// A port that the job's ranks all compute, and that is not the one of torchrun's own store.
uint16_t JobPort(const Environment& environment, const Placement& placement) {
  const std::string own = fmt::format("{} {}", placement.job, placement.token_seed);
  const uint16_t port = bootstrap::PortOf(own);
  return environment("MASTER_PORT") == std::to_string(port) ? bootstrap::PortOf(own + " again") : port;
}

StatusOr<std::string> Rendezvous(const Launcher& launcher, const Environment& environment,
                                 const Placement& placement) {
  const uint16_t port = JobPort(environment, placement);
  if (const auto address = environment("XCCL_ADDRESS"); address && !address->empty()) {
    const StatusOr<bootstrap::Endpoint> endpoint = bootstrap::ParseEndpoint(*address);
    if (!endpoint.ok()) return Annotate(endpoint.status(), "XCCL_ADDRESS");
    const StatusOr<bootstrap::Address> numeric = bootstrap::NumericAddress(endpoint->host, 0);
    if (numeric.ok() && numeric->IsAny())
      return InvalidInput(
          fmt::format("XCCL_ADDRESS={}: stands for every address; expected the one at which the other ranks "
                      "reach rank 0's host",
                      Shortened(*address)));
    return WithPort(endpoint->host, endpoint->port == 0 ? port : endpoint->port);
  }
  if (&launcher == &kPmi) return std::string();
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, MeetingHosts(launcher, environment, placement));
  std::string all;
  for (const std::string& host : hosts) {
    if (!all.empty()) all += ",";
    all += WithPort(host, port);
  }
  return all;
}

// The token that the user gives, in XCCL_TOKEN or in a file. Absent: none.
StatusOr<std::optional<std::string>> GivenToken(const Environment& environment) {
  std::optional<std::string> token = environment("XCCL_TOKEN");
  const std::optional<std::string> file = environment("XCCL_TOKEN_FILE");
  if (token && file) return InvalidInput("XCCL_TOKEN, XCCL_TOKEN_FILE: both are set; expected one");
  if (file) {
    XCCL_ASSIGN_OR_RETURN(token, bootstrap::ReadSecret(*file));
  }
  if (token && bootstrap::IsBlank(*token)) return InvalidInput("XCCL_TOKEN: blank; expected a token");
  return token;
}

// Takes the token that the user gives, else the launcher's secret, else the secret that the user's processes
// share (secret.h). Without any of them the job's name stands in, which can be guessed.
Status FindToken(const Launcher& launcher, const Environment& environment, Placement& placement) {
  XCCL_ASSIGN_OR_RETURN(std::optional<std::string> token, GivenToken(environment));
  if (!token && !launcher.secret.empty()) token = environment(launcher.secret);
  if (!token) {
    XCCL_ASSIGN_OR_RETURN(token, bootstrap::UserSecret(environment("HOME").value_or("")));
    if (token) token = *token + " " + placement.job;
  }
  placement.guessable = !token;
  placement.token_seed = token.value_or(placement.job);
  return OkStatus();
}

StatusOr<Placement> PlacementBy(const Launcher& launcher, const Environment& environment) {
  Placement placement;
  placement.launcher = launcher.name;
  placement.rank_variable = launcher.rank;
  placement.ranks_variable = launcher.ranks;
  if (!environment(launcher.ranks))
    return InvalidInput(fmt::format(
        "{}: set, while {} is not; expected both; hint: unset {} where no launcher started this process",
        launcher.rank, launcher.ranks, launcher.rank));
  XCCL_ASSIGN_OR_RETURN(placement.ranks, Number(environment, launcher.ranks, 1, kMostRanksOfJob));
  XCCL_ASSIGN_OR_RETURN(const int32_t rank, Number(environment, launcher.rank, 0, placement.ranks - 1));
  placement.rank = Rank(rank);
  XCCL_ASSIGN_OR_RETURN(placement.local_ranks,
                        NumberIfSet(environment, launcher.local_ranks, 1, placement.ranks));
  XCCL_ASSIGN_OR_RETURN(
      placement.local_rank,
      NumberIfSet(environment, launcher.local_rank, 0, placement.local_ranks.value_or(placement.ranks) - 1));
  placement.job = JobName(environment, launcher);
  XCCL_RETURN_IF_ERROR(FindToken(launcher, environment, placement));
  if (&launcher == &kPmi) {
    XCCL_ASSIGN_OR_RETURN(placement.pmi_file, NumberIfSet(environment, "PMI_FD", 0, 1 << 20));
  }
  placement.host_id = environment("XCCL_HOST_ID").value_or("");
  placement.interface = environment("XCCL_INTERFACE").value_or("");
  XCCL_ASSIGN_OR_RETURN(placement.rendezvous, Rendezvous(launcher, environment, placement));
  return placement;
}

}  // namespace

std::optional<std::string> ProcessEnvironment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

bool IsLaunched(const Environment& environment) { return FindLauncher(WithoutEmpty(environment)) != nullptr; }

std::string UnusableLauncher(const Environment& environment) {
  const Environment set = WithoutEmpty(environment);
  if (FindLauncher(set) != nullptr) return "";
  for (const Unusable& launcher : kUnusable) {
    if (!set(launcher.rank)) continue;
    const bool sized = !launcher.ranks.empty() && set(launcher.ranks);
    if (sized && *set(launcher.ranks) == "1") return "";
    return fmt::format(
        "{} is set, as by {}, which does not tell where ranks meet; hint: XCCL_RANK=${} XCCL_SIZE={} "
        "XCCL_ADDRESS=HOST:PORT of rank 0's host",
        launcher.rank, launcher.name, launcher.rank, sized ? fmt::format("${}", launcher.ranks) : "N");
  }
  return "";
}

StatusOr<Placement> FindPlacement(const Environment& environment) {
  const Environment set = WithoutEmpty(environment);
  if (const Launcher* launcher = FindLauncher(set)) return PlacementBy(*launcher, set);
  const std::string none =
      "no launcher: none of XCCL_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK with PMI_FD, RANK, SLURM_PROCID with "
      "SLURM_STEP_ID is set; ";
  const std::string unusable = UnusableLauncher(set);
  return InvalidInput(none + (unusable.empty() ? "hint: mpirun -n 8, srun or torchrun" : unusable));
}

Status NameVariables(const Status& status, const Placement& placement) {
  if (status.code() != StatusCode::kLimit || placement.rank_variable.empty()) return status;
  constexpr std::string_view kHint = "; hint: ";
  const std::string& text = status.message();
  const size_t hint = text.find(kHint);
  const std::string given = hint == std::string::npos ? "" : text.substr(hint + kHint.size()) + ", or ";
  return Status(status.code(),
                fmt::format("{}; {} and {} are set{}{}unset {} where no launcher started this process",
                            text.substr(0, hint), placement.rank_variable, placement.ranks_variable, kHint,
                            given, placement.rank_variable));
}

}  // namespace xccl
