// Files that describe a fabric as a TOPOLOGY, with --host, --hosts-file, --job and --nic-rate.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/load/load.h"
#include "topologies/load/load_for_tests.h"

namespace xccl {
namespace {

constexpr std::string_view kTree =
    "SwitchName=leaf1 Nodes=gpu[1-2]\n"
    "SwitchName=leaf2 Nodes=gpu[3-4]\n"
    "SwitchName=spine Switches=leaf[1-2]\n";

constexpr std::string_view kBox =
    R"(<topology name="box"><host name="h"><gpu count="2"/><nic id="nic"/>
    <link from="gpu:*" to="nic" bandwidth="25GB/s"/></host></topology>)";

std::string ErrorOf(const std::string& file, const LoadOptions& options) {
  const StatusOr<Topology> topology = LoadTopology(file, options);
  return topology.ok() ? "" : topology.status().message();
}

TEST(Fabric, IsReadByItsContents) {
  const File tree(kTree);
  LoadOptions options;
  options.nic_rate = "200Gbit/s";
  const Topology topology = LoadTopology(tree.path(), options).value();
  EXPECT_EQ(topology.num_ranks(), 4);
  EXPECT_EQ(Cables(topology).back(), "spine--leaf2 50GB/s 450ns");
  options.gpu_arch = "sm90";
  EXPECT_EQ(LoadTopology(tree.path(), options)->gpu_arch(), "sm90");
}

TEST(Fabric, HostsAreDumpsOrMachinesOfTheLibrary) {
  const File tree(kTree), box(kBox);
  LoadOptions options;
  options.host_kinds = {box.path()};
  EXPECT_EQ(LoadTopology(tree.path(), options)->num_ranks(), 8);
  options.host_kinds = {"gpu[3-4]=dgx-h100", box.path()};
  const Topology mixed = LoadTopology(tree.path(), options).value();
  EXPECT_EQ(mixed.num_ranks(), 20);
  EXPECT_EQ(mixed.gpu_arch(), "");
  options.host_kinds = {"gpu4=dgx-h100"};
  EXPECT_EQ(LoadTopology(tree.path(), options)->gpu_arch(), "sm90");
}

TEST(Fabric, AHostsFileSaysWhichHostsCountAndTheirKinds) {
  const File tree(kTree), box(kBox);
  const File hosts("# the hosts of a project\ngpu4 dgx-h100\n\ngpu[1-2]  # two more\n");
  LoadOptions options;
  options.hosts_file = hosts.path();
  options.host_kinds = {box.path()};
  const Topology topology = LoadTopology(tree.path(), options).value();
  EXPECT_EQ(topology.num_ranks(), 12);
  EXPECT_EQ(topology.spec().hosts[0].name, "gpu4");
  const File wrong("gpu1\ngpu2 a b\n");
  options.hosts_file = wrong.path();
  EXPECT_EQ(ErrorOf(tree.path(), options),
            fmt::format("{}:2: 3 words; expected a host, or a host and its dump", wrong.path()));
  const File stranger("gpu1\ngpu2 dgx-h1000\n");
  options.hosts_file = stranger.path();
  EXPECT_EQ(ErrorOf(tree.path(), options),
            fmt::format("{}:2: 'dgx-h1000': no such file, short form or library machine; did you mean "
                        "'dgx-h100'?",
                        stranger.path()));
}

TEST(Fabric, FlagsOfTheHostsOfAHostsFileHaveAnEffect) {
  const File tree(kTree), hosts("gpu[1-2] dgx-h100\n");
  LoadOptions options;
  options.hosts_file = hosts.path();
  const std::vector<std::string> warnings = LoadTopology(tree.path(), options)->spec().warnings;
  options.gpus_per_switch = 2;
  options.nic_rate = "400Gbit/s";
  options.nvlink_domain = 16;
  EXPECT_EQ(LoadTopology(tree.path(), options)->spec().warnings, warnings);
}

TEST(Fabric, AnNvlinkDomainWithoutHostsHasNoEffect) {
  const File tree(kTree);
  LoadOptions options;
  options.nic_rate = "400Gbit/s";
  std::vector<std::string> warnings = LoadTopology(tree.path(), options)->spec().warnings;
  options.nvlink_domain = 16;
  const std::string idle =
      fmt::format("{}: --nvlink-domain has no effect; it is for hosts that --host gives", tree.path());
  EXPECT_EQ(std::ranges::count(LoadTopology(tree.path(), options)->spec().warnings, idle), 1);
  EXPECT_EQ(std::ranges::count(warnings, idle), 0);
}

TEST(Fabric, AJobIsTakenOutOfAnyMachine) {
  const File tree(kTree), box(kBox);
  LoadOptions options;
  options.host_kinds = {box.path()};
  options.job = "gpu[1-2]";
  const Topology job = LoadTopology(tree.path(), options).value();
  EXPECT_EQ(job.num_nodes(), 7);  // of each host two GPUs and a NIC, and one leaf
  LoadOptions of_copies;
  of_copies.hosts = 4;
  of_copies.job = "h[2-3]";
  EXPECT_EQ(LoadTopology("dgx-h100", of_copies)->num_hosts(), 2);
  of_copies.job = "h[2-4]";
  EXPECT_EQ(ErrorOf("dgx-h100", of_copies), "--job: 4x dgx-h100: no host 'h4'; did you mean 'h0'?");
  of_copies.job = "h[2";
  EXPECT_EQ(LoadTopology("dgx-h100", of_copies).status().code(), StatusCode::kUsage);
}

TEST(Fabric, FlagsOfFabricsHaveNoEffectElsewhere) {
  LoadOptions options;
  options.host_kinds = {"dgx-h100"};
  options.hosts_file = "hosts.txt";
  const Topology ring = LoadTopology("ring:4", options).value();
  EXPECT_EQ(ring.spec().warnings,
            (std::vector<std::string>{
                "ring:4: --host has no effect; it is for files that describe a fabric",
                "ring:4: --hosts-file has no effect; it is for files that describe a fabric"}));
}

TEST(Fabric, WrongFlagsAreNamed) {
  const File tree(kTree);
  LoadOptions options;
  EXPECT_EQ(ErrorOf(tree.path(), options),
            fmt::format("{}: the file does not state the rate of its NICs; expected a flag; hint: "
                        "--nic-rate=400Gbit/s",
                        tree.path()));
  options.nic_rate = "fast";
  EXPECT_TRUE(ErrorOf(tree.path(), options).starts_with("--nic-rate: "));
  options.nic_rate = "400Gbit/s";
  options.host_kinds = {"=x"};
  EXPECT_EQ(ErrorOf(tree.path(), options),
            "--host '=x': expected DUMP or HOSTS=DUMP, such as gpu[001-016]=h100.xml");
  options.host_kinds = {"dgx-h1000"};
  EXPECT_TRUE(ErrorOf(tree.path(), options).starts_with("--host: 'dgx-h1000': no such file"));
  options.host_kinds = {"gpu9=dgx-h100"};
  EXPECT_EQ(
      ErrorOf(tree.path(), options),
      fmt::format("{}: no --host names any of its hosts (gpu1, gpu2, gpu3, gpu4); expected one of them; "
                  "hint: --host=DUMP is for all hosts",
                  tree.path()));
  options.host_kinds = {"gpu*=dgx-h100", "gpu[=dgx-h100"};  // the second one would name no further host
  EXPECT_TRUE(ErrorOf(tree.path(), options).starts_with("--host gpu[=dgx-h100: host list 'gpu[': "));
  options.host_kinds = {tree.path()};
  EXPECT_EQ(ErrorOf(tree.path(), options),
            fmt::format("--host: {}: this is a fabric; expected a machine of one host", tree.path()));
}

TEST(Fabric, AFolderHasTheFilesOfOneFabric) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "lldp";
  std::filesystem::create_directories(folder);
  for (const std::string_view host : {"gpu1", "gpu2"})
    std::ofstream(folder / fmt::format("{}.json", host))
        << R"({"lldp":{"interface":{"eth0":{"chassis":{"leaf-1":{"id":{"type":"mac","value":"02:00:00:00:00:01"}}},)"
        << R"("port":{"id":{"type":"ifname","value":"Ethernet)" << host.back() << R"("}}}}}})";
  LoadOptions options;
  options.nic_rate = "400Gbit/s";
  const Topology topology = LoadTopology(folder.string() + "/", options).value();
  EXPECT_EQ(topology.name(), "lldp");
  EXPECT_EQ(Cables(topology).back(), "leaf-1--gpu2/eth0 50GB/s 1.3us");
  EXPECT_EQ(topology.num_hosts(), 2);
  std::filesystem::remove_all(folder);
}

TEST(Fabric, SeveralFilesAreOneFabric) {
  const File tree(kTree), blocks("BlockName=rack1 Nodes=gpu[1-4]\nBlockSizes=4\n"), box(kBox);
  LoadOptions options;
  options.nic_rate = "400Gbit/s";
  const std::vector<std::string> files = {tree.path(), tree.path()};
  EXPECT_EQ(LoadTopology(files, options)->num_ranks(), 4);
  EXPECT_EQ(
      LoadTopology(std::vector{tree.path(), box.path()}, options).status().message(),
      fmt::format("{}: no file of a fabric; expected what ibnetdiscover, iblinkinfo, lldpcli -f json or "
                  "Slurm's topology.conf or topology.yaml wrote",
                  box.path()));
}

}  // namespace
}  // namespace xccl
