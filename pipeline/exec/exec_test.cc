#include <gtest/gtest.h>

#include <map>
#include <string>

#include "pipeline/exec/job_shape.h"
#include "pipeline/exec/machine.h"
#include "pipeline/exec/variables.h"
#include "topologies/load/load.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Environment Of(const Variables& variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Variables OpenMpi(int rank, int ranks, int local_rank, int local_ranks) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(ranks)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_ranks)}};
}
Variables Slurm(int rank, int ranks, const std::string& per_node) {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_NTASKS", std::to_string(ranks)},
          {"SLURM_STEP_TASKS_PER_NODE", per_node}};
}
Variables With(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(ShapeOfJob, TheLaunchersVariables) {
  struct Case {
    std::string name;
    Variables variables;
    std::optional<JobShape> expected;
  };
  const Case cases[] = {
      {"by hand", {}, std::nullopt},
      {"mpirun", OpenMpi(5, 8, 1, 4), JobShape{Rank(5), 2, 4}},
      {"mpirun that tells its hosts", With(OpenMpi(5, 8, 1, 4), "OMPI_MCA_orte_num_nodes", "2"),
       JobShape{Rank(5), 2, 4}},
      {"srun", Slurm(3, 8, "2(x4)"), JobShape{Rank(3), 4, 2}},
      {"srun on one host", Slurm(3, 8, "8"), JobShape{Rank(3), 1, 8}},
      {"srun once a host, before torchrun", Slurm(1, 4, "1(x4)"), JobShape{Rank(1), 4, 1}},
      {"torchrun",
       {{"TORCHELASTIC_RUN_ID", "a"},
        {"RANK", "9"},
        {"WORLD_SIZE", "16"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "8"},
        {"MASTER_ADDR", "h0"}},
       JobShape{Rank(9), 2, 8}},
      {"by variables, on one host", {{"XCCL_RANK", "1"}, {"XCCL_SIZE", "4"}}, JobShape{Rank(1), 1, 4}},
      {"no home for a secret is needed", With(OpenMpi(0, 2, 0, 2), "HOME", "/nowhere"),
       JobShape{Rank(0), 1, 2}},
  };
  for (const Case& c : cases) {
    const StatusOr<std::optional<JobShape>> shape = ShapeOfJob(Of(c.variables));
    ASSERT_TRUE(shape.ok()) << c.name << ": " << shape.status().message();
    EXPECT_EQ(*shape, c.expected) << c.name;
  }
}

TEST(ShapeOfJob, JobsWhoseHostsAreNotAlike) {
  struct Case {
    Variables variables;
    std::string error;
  };
  const Case cases[] = {
      {OpenMpi(0, 6, 0, 4),
       "6 ranks, 4 of them on this host; expected equally many on all hosts; hint: --topology"},
      {With(OpenMpi(0, 6, 0, 2), "OMPI_MCA_orte_num_nodes", "2"),  // on the other host are 4
       "6 ranks, 2 of them on this host; expected equally many on all hosts; hint: --topology"},
      {Slurm(0, 5, "2(x2),1"),
       "SLURM_STEP_TASKS_PER_NODE=2(x2),1: expected equally many ranks on all hosts; hint: --topology"},
      {OpenMpi(2, 4, 1, 2),  // --map-by node
       "rank 2 is number 1 of the 2 on its host; expected consecutive ranks on each host; hint: --topology"},
      {{{"XCCL_RANK", "1"}, {"XCCL_SIZE", "4"}, {"XCCL_ADDRESS", "h0:4000"}},
       "XCCL_LOCAL_SIZE: not set; expected the number of ranks on each host; hint: --topology"},
  };
  for (const Case& c : cases) {
    const StatusOr<std::optional<JobShape>> shape = ShapeOfJob(Of(c.variables));
    EXPECT_EQ(shape.ok() ? "ok" : shape.status().message(), c.error);
  }
}

TEST(XmlOfCpuRanks, HasTheJobsRanksInOrder) {
  for (const JobShape& shape : {JobShape{Rank(0), 1, 4}, JobShape{Rank(0), 3, 2}, JobShape{Rank(0), 4, 1},
                                JobShape{Rank(0), 2, 64}}) {
    const StatusOr<Topology> topology = ReadNativeXml(XmlOfCpuRanks(shape), "cpu-ranks");
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_EQ(topology->num_hosts(), shape.hosts);
    ASSERT_EQ(topology->num_ranks(), shape.ranks());
    for (int32_t r = 0; r < shape.ranks(); ++r)
      EXPECT_EQ(topology->HostOf(Rank(r)).value, r / shape.ranks_per_host);
  }
}

TEST(HostsToAdd, AHostOrAllOfThem) {
  const Topology machine = *LoadTopology("dgx-h100");
  EXPECT_EQ(*HostsToAdd(machine, {Rank(0), 1, 8}), 1);
  EXPECT_EQ(*HostsToAdd(machine, {Rank(0), 4, 8}), 4);
  EXPECT_EQ(*HostsToAdd(machine, {Rank(0), 4, 1}), 4);  // torchrun on each
  EXPECT_EQ(HostsToAdd(machine, {Rank(0), 4, 4}).status().message(),
            "dgx-h100: 8 ranks; expected those of the job, 4 on each of 4 hosts");
}

TEST(GpusOfJob, TheFirstGpusOfEachHost) {
  LoadOptions options;
  options.hosts = 2;
  const Topology machine = *LoadTopology("dgx-h100", options);
  const auto ranks = [&](const JobShape& shape) { return GpusOfJob(machine, shape, "m")->num_ranks(); };
  EXPECT_EQ(ranks({Rank(0), 2, 8}), 16);
  EXPECT_EQ(ranks({Rank(0), 2, 1}), 16);  // one process has all GPUs of its host
  const Topology half = *GpusOfJob(machine, {Rank(0), 2, 4}, "m");
  EXPECT_EQ(half.name(), "m");
  EXPECT_EQ(half.num_ranks(), 8);
  EXPECT_EQ(half.HostOf(Rank(4)).value, 1);
  EXPECT_EQ(GpusOfJob(machine, {Rank(0), 2, 9}, "m").status().message(),
            "8 GPUs on this host, and 9 ranks; expected a GPU for each rank");
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(VariablesOf, Programs) {
  const Plugins plugins = {"/p/shim.so", "/p/tuner.so"};
  const BookUse nccl = {"/book", plugins, true, true, true};
  const Pairs tuner = {{"NCCL_TUNER_PLUGIN", "/p/tuner.so"}, {"XCCL_TUNER_TABLE", "/book/nccl-tuner.table"}};
  const Pairs shim = {{"LD_PRELOAD", "/p/shim.so"}, {"XCCL_BOOK", "/book"}};
  Pairs both = tuner;
  both.insert(both.end(), shim.begin(), shim.end());
  EXPECT_EQ(VariablesOf(nccl, Of({})), both);

  BookUse other = nccl;
  other.is_one_host = false;  // no rank sees another host's table
  EXPECT_EQ(VariablesOf(other, Of({})), shim);
  other = nccl;
  other.has_plans = false;
  EXPECT_EQ(VariablesOf(other, Of({})), tuner);
  other = nccl;
  other.plugins.reset();  // the program calls xccl.h
  EXPECT_EQ(VariablesOf(other, Of({})), (Pairs{{"XCCL_BOOK", "/book"}}));

  for (const char* const chosen : {"NCCL_TUNER_PLUGIN", "XCCL_TUNER_TABLE", "NCCL_TUNER_CONFIG_FILE"})
    EXPECT_EQ(VariablesOf(nccl, Of({{chosen, "mine"}})), shim) << chosen;
  const auto preload = [&](const std::string& before) {
    return VariablesOf(nccl, Of({{"LD_PRELOAD", before}}))[2].second;
  };
  EXPECT_EQ(preload("libjemalloc.so"), "/p/shim.so:libjemalloc.so");
  EXPECT_EQ(preload("libjemalloc.so:/p/shim.so"), "libjemalloc.so:/p/shim.so");
}

}  // namespace
}  // namespace xccl
