#include "runtime/bootstrap/placement.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/files.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/secret.h"

namespace xccl {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

StatusOr<Placement> Find(const Variables& variables) {
  return FindPlacement([&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    if (at == variables.end()) return std::nullopt;
    return at->second;
  });
}

// The placement as one line, to be compared with the table's text. PORT stands for the port made from the job
// and the token.
std::string Text(const Placement& p) {
  const auto number = [](const std::optional<int32_t>& n) {
    return n ? std::to_string(*n) : std::string("-");
  };
  const std::string port = std::to_string(bootstrap::PortOf(p.job + " " + p.token_seed));
  std::string where = p.rendezvous;
  for (size_t at = 0; (at = where.find(port)) != std::string::npos;) where.replace(at, port.size(), "PORT");
  return fmt::format("{} {}/{} local {}/{} job={} at={} seed={} pmi={}", p.launcher, p.rank.value, p.ranks,
                     number(p.local_rank), number(p.local_ranks), p.job, where, p.token_seed,
                     number(p.pmi_file));
}

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "h0"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "a/b"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"}};
const Variables kMpirun = {
    {"OMPI_COMM_WORLD_RANK", "1"},
    {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"PMIX_NAMESPACE", "77"},
    {"OMPI_MCA_orte_hnp_uri", "77.0;tcp://10.77.0.1,172.17.0.1:60675;tcp6://[fd00::1]:6"},
    {"OMPI_MCA_orte_precondition_transports", "ab-cd"}};
const Variables kSrun = {{"SLURM_PROCID", "5"},  {"SLURM_NTASKS", "6"},
                         {"SLURM_LOCALID", "2"}, {"SLURM_STEP_NODELIST", "n[07-08]"},
                         {"SLURM_JOB_ID", "9"},  {"SLURM_STEP_ID", "0"}};
const Variables kHydra = {{"PMI_RANK", "2"},
                          {"PMI_SIZE", "3"},
                          {"PMI_FD", "9"},
                          {"MPI_LOCALRANKID", "0"},
                          {"MPI_LOCALNRANKS", "1"}};

TEST(FindPlacement, KnowsEveryLauncher) {
  const std::string torchrun =
      "torchrun 3/8 local 1/2 job=torchrun-a.b-0-29500 at=h0:PORT seed=torchrun-a.b-0-29500 pmi=-";
  const std::string mpirun =
      "open-mpi 1/4 local 1/2 job=open-mpi-77 at=10.77.0.1:PORT,172.17.0.1:PORT,[fd00::1]:PORT seed=ab-cd "
      "pmi=-";
  const std::string hydra = "pmi 2/3 local 0/1 job=pmi at= seed=pmi pmi=9";
  const struct {
    const char* name;
    Variables variables;
    std::string expected;
  } cases[] = {
      {"torchrun", kTorchrun, torchrun},
      {"torchrun that srun started", With(kSrun, kTorchrun), torchrun},
      {"mpirun", kMpirun, mpirun},
      {"mpirun under salloc", With(kSrun, kMpirun), mpirun},
      {"mpirun on one host", With(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
       "open-mpi 1/4 local 1/4 job=open-mpi-77 at=127.0.0.1:PORT seed=ab-cd pmi=-"},
      {"Hydra", kHydra, hydra},
      {"srun --mpi=pmi2", With(kSrun, kHydra), hydra},
      {"srun", kSrun, "slurm 5/6 local 2/- job=slurm-9-0 at=n07:PORT seed=slurm-9-0 pmi=-"},
      {"srun that tells its own address", With(kSrun, {{"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.7"}}),
       "slurm 5/6 local 2/- job=slurm-9-0 at=n07:PORT,10.0.0.7:PORT seed=slurm-9-0 pmi=-"},
      {"srun on one host", With(kSrun, {{"SLURM_STEP_NUM_NODES", "1"}}),
       "slurm 5/6 local 2/- job=slurm-9-0 at=127.0.0.1:PORT seed=slurm-9-0 pmi=-"},
      {"by hand, over a launcher", With(kTorchrun, {{"XCCL_RANK", "0"}, {"XCCL_SIZE", "2"}}),
       "explicit 0/2 local -/- job=explicit at=127.0.0.1:PORT seed=explicit pmi=-"},
      {"by hand, all of it",
       {{"XCCL_RANK", "1"},
        {"XCCL_SIZE", "4"},
        {"XCCL_LOCAL_RANK", "1"},
        {"XCCL_LOCAL_SIZE", "2"},
        {"XCCL_JOB", "j"},
        {"XCCL_ADDRESS", "[fd00::9]:4000"},
        {"XCCL_TOKEN", "t"}},
       "explicit 1/4 local 1/2 job=explicit-j at=[fd00::9]:4000 seed=t pmi=-"},
      {"an address for a launcher's ranks", With(kSrun, {{"XCCL_ADDRESS", "n0"}, {"XCCL_TOKEN", "t"}}),
       "slurm 5/6 local 2/- job=slurm-9-0 at=n0:PORT seed=t pmi=-"},
  };
  for (const auto& c : cases) {
    const StatusOr<Placement> found = Find(c.variables);
    ASSERT_TRUE(found.ok()) << c.name << ": " << found.status().message();
    EXPECT_EQ(Text(*found), c.expected) << c.name;
    EXPECT_FALSE(found->served);
  }
  const auto found = Find(With(kSrun, {{"XCCL_HOST_ID", "h"}, {"XCCL_INTERFACE", "eth"}}));
  EXPECT_EQ(found->host_id, "h");
  EXPECT_EQ(found->interface, "eth");
}

TEST(FindPlacement, SaysWhatIsWrong) {
  const std::string none =
      "no launcher: none of XCCL_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK with PMI_FD, RANK, SLURM_PROCID with "
      "SLURM_STEP_ID is set; hint: mpirun -n 8, srun or torchrun";
  const struct {
    Variables variables;
    std::string text;
  } cases[] = {
      {{}, none},
      {{{"XCCL_RANK", ""}, {"RANK", ""}, {"WORLD_SIZE", "2"}}, none},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "1"}}, none},
      {With(kSrun, {{"SLURM_STEP_ID", "batch"}}), none},
      {{{"RANK", "1"}},
       "RANK: set, while WORLD_SIZE is not; expected both; hint: unset RANK where no launcher started this "
       "process"},
      {{{"XCCL_RANK", "1"}, {"XCCL_SIZE", ""}},
       "XCCL_RANK: set, while XCCL_SIZE is not; expected both; hint: unset XCCL_RANK where no launcher "
       "started "
       "this process"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", ""}},
       "MASTER_ADDR: not set, while RANK and WORLD_SIZE are; expected the address of rank 0's host; hint: "
       "unset "
       "RANK where no launcher started this process"},
      {With(kMpirun, {{"OMPI_MCA_orte_hnp_uri", ""}}),
       "OMPI_MCA_orte_hnp_uri: no address; expected that of mpirun's host; hint: mpirun -x "
       "XCCL_ADDRESS=HOST:PORT"},
      {With(kSrun, {{"SLURM_STEP_NODELIST", "n[1"}}),
       "SLURM_STEP_NODELIST: host list 'n[1': column 2: no ']' closes '['; expected one such as [001-016]"},
      {With(kSrun, {{"XCCL_ADDRESS", "h:"}}), "XCCL_ADDRESS: h:: expected a port after the colon"},
  };
  for (const auto& c : cases) EXPECT_EQ(Find(c.variables).status().message(), c.text);
  const Status out = Find({{"RANK", "8"}, {"WORLD_SIZE", "8"}}).status();
  EXPECT_EQ(out.code(), StatusCode::kInvalidInput);
  EXPECT_EQ(out.message().rfind("RANK: ", 0), 0u) << out.message();
}

TEST(FindPlacement, AnAddressThatStandsForAllIsRefused) {
  for (const std::string any : {"0.0.0.0:4000", "0.0.0.0", "[::]:4000", "::", "[::ffff:0.0.0.0]:4000"})
    EXPECT_EQ(
        Find(With(kSrun, {{"XCCL_ADDRESS", any}, {"XCCL_TOKEN", "t"}})).status().message(),
        "XCCL_ADDRESS=" + any +
            ": stands for every address; expected the one at which the other ranks reach rank 0's host");
}

TEST(FindPlacement, ReadsTheTokenFromAFileOfItsOwnersAlone) {
  const std::string path = testing::TempDir() + "/token";
  ASSERT_EQ(WriteFileAtomically(path, "a secret\n"), OkStatus());
  const auto seed = [&](const Variables& more) -> std::string {
    const StatusOr<Placement> found = Find(With(With(kSrun, {{"XCCL_TOKEN_FILE", path}}), more));
    return found.ok() ? found->token_seed : found.status().message();
  };
  EXPECT_EQ(seed({}),
            path +
                ": others may use it, by its mode 0644; expected a token's file for its owner alone; "
                "hint: chmod go-rwx " +
                path);
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(seed({}), "a secret");
  EXPECT_EQ(seed({{"XCCL_TOKEN", "t"}}), "XCCL_TOKEN, XCCL_TOKEN_FILE: both are set; expected one");
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_EQ(seed({}), path + ": empty; expected a token");
  ASSERT_EQ(WriteFileAtomically(path, "  \n"), OkStatus());
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(seed({}), path + ": empty; expected a token");
  EXPECT_EQ(seed({{"XCCL_TOKEN", "  "}, {"XCCL_TOKEN_FILE", ""}}), "XCCL_TOKEN: blank; expected a token");
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  EXPECT_EQ(seed({}), path + ": more than 4096 bytes; expected at most so many");
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(seed({}), path + ": cannot read: No such file or directory");
}

// Without a token or a launcher's secret a user's own secret keeps others out; without a home, the loopback.
TEST(FindPlacement, MakesASecretOfTheUsersOnce) {
  const std::string home = testing::TempDir() + "/home";
  std::filesystem::remove_all(home);
  std::filesystem::create_directory(home);
  const Placement first = *Find(With(kSrun, {{"HOME", home}}));
  const std::string path = home + "/.local/state/xccl/secret";
  const std::string secret = *bootstrap::ReadSecret(path);
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(first.token_seed, secret + " " + first.job);
  EXPECT_FALSE(first.guessable);
  EXPECT_TRUE(*Find(With(kSrun, {{"HOME", home}})) == first);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(home + "/.local/state/xccl"),
                          std::filesystem::directory_iterator()),
            1);
  EXPECT_EQ(Find(With(kSrun, {{"HOME", home}, {"XCCL_TOKEN", "t"}}))->token_seed, "t");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(Find(With(kSrun, {{"HOME", home}})).status().message(),
            path +
                ": others may use it, by its mode 0640; expected a token's file for its owner alone; hint: "
                "chmod go-rwx " +
                path + ", or XCCL_TOKEN or XCCL_TOKEN_FILE, the same on all ranks");
  for (const std::string none : {"", "/nowhere", "/proc"}) {
    const Placement found = *Find(With(kSrun, {{"HOME", none}}));
    EXPECT_EQ(found.token_seed, found.job) << none;
    EXPECT_TRUE(found.guessable) << none;
  }
  EXPECT_FALSE(Find(kMpirun)->guessable);
}

// Whoever may write a folder puts a secret of their own there, or takes that of the user away.
TEST(FindPlacement, TakesNoSecretThatOthersMayHavePutThere) {
  namespace fs = std::filesystem;
  const std::string home = testing::TempDir() + "/open-home", folder = home + "/.local/state/xccl";
  const std::string path = folder + "/secret", hint = "XCCL_TOKEN or XCCL_TOKEN_FILE, the same on all ranks";
  const auto text = [&] { return Find(With(kSrun, {{"HOME", home}})).status().message(); };
  const auto writable = [&](const std::string& what, const char* mode) {
    return what + ": others may write it, by its mode " + mode +
           "; expected a folder that only you and root write; hint: chmod go-w " + what + ", or " + hint;
  };
  fs::remove_all(home);
  fs::create_directory(home);
  const mode_t mask = umask(0);
  EXPECT_EQ(text(), "");
  umask(mask);
  for (const std::string& made : {home + "/.local", home + "/.local/state", folder}) {
    EXPECT_EQ(static_cast<int>(fs::status(made).permissions()), 0700) << made;
    ASSERT_EQ(chmod(made.c_str(), 0757), 0);
    EXPECT_EQ(text(), writable(made, "0757"));
    ASSERT_EQ(chmod(made.c_str(), 0755), 0);
  }
  EXPECT_EQ(text(), "");
  ASSERT_EQ(chmod(home.c_str(), 01777), 0);
  EXPECT_EQ(text(), writable(home, "1777"));
  ASSERT_EQ(chmod(home.c_str(), 0700), 0);
  ASSERT_EQ(WriteFileAtomically(path, "00000000\n"), OkStatus());
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(text(), path + ": not what XCCL wrote; expected 64 hexadecimal digits; hint: " + hint);
  fs::remove(path);
  fs::create_symlink("/proc/self/personality", path);
  EXPECT_EQ(text(), path + ": a link; expected a file; hint: " + hint);
  fs::remove_all(home + "/.local");
  fs::create_symlink("/tmp", home + "/.local");
  EXPECT_EQ(text(), home + "/.local: no folder, or a link to one; expected a folder; hint: " + hint);
}

TEST(FindPlacement, ATokenFileMayBeALinkButNoneOfTheKernels) {
  const std::string path = testing::TempDir() + "/linked", link = path + ".link";
  ASSERT_EQ(WriteFileAtomically(path, "a secret\n"), OkStatus());
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path, link);
  EXPECT_EQ(Find(With(kSrun, {{"XCCL_TOKEN_FILE", link}}))->token_seed, "a secret");
  for (const char* none : {"/proc/self/personality", "/dev/null", "/proc"})
    EXPECT_EQ(Find(With(kSrun, {{"XCCL_TOKEN_FILE", none}})).status().message(),
              std::string(none) + ": no regular file on a disk; expected a token's file");
}

TEST(FindPlacement, TellsWhichVariablesGaveTheRank) {
  EXPECT_EQ(Find(kTorchrun)->rank_variable, "RANK");
  EXPECT_EQ(Find(kTorchrun)->ranks_variable, "WORLD_SIZE");
  EXPECT_EQ(Find(kHydra)->rank_variable, "PMI_RANK");
  // Empty ones did not.
  EXPECT_EQ(Find(With(kMpirun, {{"XCCL_RANK", ""}, {"RANK", ""}}))->rank_variable, "OMPI_COMM_WORLD_RANK");
  EXPECT_TRUE(*Find(With(kMpirun, {{"XCCL_TOKEN", ""}, {"XCCL_ADDRESS", ""}})) == *Find(kMpirun));
}

// A process of theirs used to run all ranks by itself without a word.
TEST(UnusableLauncher, NamesWhatToSetInstead) {
  const auto text = [](const Variables& variables) {
    return UnusableLauncher([&](std::string_view name) -> std::optional<std::string> {
      const auto at = variables.find(name);
      if (at == variables.end()) return std::nullopt;
      return at->second;
    });
  };
  const std::string meet = ", which does not tell where ranks meet; hint: ";
  const std::string address = " XCCL_ADDRESS=HOST:PORT of rank 0's host";
  const struct {
    Variables variables;
    std::string expected;
  } cases[] = {
      {{}, ""},
      {{{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "4"}},
       "FLUX_TASK_RANK is set, as by Flux" + meet + "XCCL_RANK=$FLUX_TASK_RANK XCCL_SIZE=$FLUX_JOB_SIZE" +
           address},
      {{{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "1"}}, ""},
      {{{"FLUX_TASK_RANK", ""}}, ""},
      {{{"PALS_RANKID", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
       "PALS_RANKID is set, as by PALS" + meet + "XCCL_RANK=$PALS_RANKID XCCL_SIZE=$PMI_SIZE" + address},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
       "PMI_RANK is set, as by a launcher with PMI but no PMI_FD" + meet +
           "XCCL_RANK=$PMI_RANK XCCL_SIZE=$PMI_SIZE" + address},
      {{{"ALPS_APP_PE", "3"}},
       "ALPS_APP_PE is set, as by aprun" + meet + "XCCL_RANK=$ALPS_APP_PE XCCL_SIZE=N" + address},
      {With(kHydra, {{"FLUX_TASK_RANK", "2"}}), ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(text(c.variables), c.expected);
    if (!c.expected.empty()) {
      EXPECT_EQ(
          Find(c.variables).status().message(),
          "no launcher: none of XCCL_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK with PMI_FD, RANK, SLURM_PROCID "
          "with SLURM_STEP_ID is set; " +
              c.expected);
    }
  }
}

}  // namespace
}  // namespace xccl
