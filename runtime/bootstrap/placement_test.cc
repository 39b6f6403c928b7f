#include "runtime/bootstrap/placement.h"

#include <gtest/gtest.h>

#include <map>

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

Placement Place(std::string launcher, int rank, int ranks, std::optional<int> local_rank,
                std::optional<int> local_ranks, std::string job) {
  return {std::move(launcher), Rank(rank), ranks, local_rank, local_ranks, std::move(job), "", "", {}, false};
}

TEST(FindPlacement, KnowsEveryLauncher) {
  struct Case {
    const char* name;
    Variables variables;
    Placement expected;
  };
  const Case cases[] = {
      {"torchrun",
       {{"RANK", "3"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_RUN_ID", "a/b"}},
       Place("torchrun", 3, 8, 1, 2, "torchrun-a.b-29500")},
      {"mpirun",
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
        {"PMIX_NAMESPACE", "77"}},
       Place("open-mpi", 1, 4, 1, 4, "open-mpi-77")},
      {"srun",
       {{"SLURM_PROCID", "5"},
        {"SLURM_NTASKS", "6"},
        {"SLURM_LOCALID", "5"},
        {"SLURM_JOB_ID", "9"},
        {"SLURM_STEP_ID", "0"}},
       Place("slurm", 5, 6, 5, {}, "slurm-9-0")},
      {"flags win over a launcher",
       {{"XCCL_RANK", "0"}, {"XCCL_SIZE", "2"}, {"RANK", "7"}, {"WORLD_SIZE", "8"}},
       Place("explicit", 0, 2, {}, {}, "explicit")},
  };
  for (const Case& c : cases) {
    const StatusOr<Placement> found = Find(c.variables);
    ASSERT_TRUE(found.ok()) << c.name << ": " << found.status().message();
    EXPECT_EQ(*found, c.expected) << c.name << " " << found->job;
  }
}

TEST(FindPlacement, SaysWhatIsWrong) {
  EXPECT_EQ(
      Find({}).status().message(),
      "no launcher: none of XCCL_RANK, RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID is set; hint: mpirun -n 8, "
      "srun or torchrun");
  EXPECT_EQ(Find({{"RANK", "1"}}).status().message(),
            "WORLD_SIZE: not set; expected a number from 1 to 1048576");
  const Status out = Find({{"RANK", "8"}, {"WORLD_SIZE", "8"}}).status();
  EXPECT_EQ(out.code(), StatusCode::kInvalidInput);
  EXPECT_EQ(out.message().rfind("RANK: ", 0), 0u) << out.message();
}

}  // namespace
}  // namespace xccl
