#include <gtest/gtest.h>

#include "topologies/load/load_for_tests.h"
#include "topologies/peers/peers_for_tests.h"

namespace xccl {
namespace {

// Two servers of two H100s; one NVSwitch each; one rail.
constexpr std::string_view kServers =
    "7 2 2 1 8 H100\n"
    "4 5 6 \n"
    "0 4 2880Gbps 0.000025ms 0\n"
    "0 6 400Gbps 0.0005ms 0\n"
    "1 4 2880Gbps 0.000025ms 0\n"
    "1 6 400Gbps 0.0005ms 0\n"
    "2 5 2880Gbps 0.000025ms 0\n"
    "2 6 400Gbps 0.0005ms 0\n"
    "3 5 2880Gbps 0.000025ms 0\n"
    "3 6 400Gbps 0.0005ms 0\n";

TEST(Simai, ServersWithNvswitchesAndAFabric) {
  const StatusOr<Topology> topology = ReadPeer(kServers);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->name(), "peer");
  EXPECT_EQ(topology->gpu_arch(), "sm90");
  EXPECT_EQ(topology->num_hosts(), 2);
  EXPECT_EQ(topology->num_ranks(), 4);
  EXPECT_EQ(Cables(*topology),
            (std::vector<std::string>{"h0/0--h0/nvswitch4 360GB/s 25ns", "h0/0--switch6 50GB/s 500ns",
                                      "h0/1--h0/nvswitch4 360GB/s 25ns", "h0/1--switch6 50GB/s 500ns",
                                      "h1/0--h1/nvswitch5 360GB/s 25ns", "h1/0--switch6 50GB/s 500ns",
                                      "h1/1--h1/nvswitch5 360GB/s 25ns", "h1/1--switch6 50GB/s 500ns"}));
  EXPECT_TRUE(topology->node(NodeId(4)).multicast && topology->node(NodeId(4)).reduce);
  EXPECT_FALSE(topology->node(NodeId(6)).multicast);
  EXPECT_EQ(topology->spec().warnings, std::vector<std::string>());
  EXPECT_FALSE(topology->spec().source.empty());
}

TEST(Simai, TheShortHeadOfNs3HasAHostForEachGpu) {
  const StatusOr<Topology> topology = ReadPeer("3 1 2\n2\n0 2 200Gbps 1us 0\n1 2 200Gbps 1us 0.01\n");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->num_hosts(), 2);
  EXPECT_EQ(topology->gpu_arch(), "");
  EXPECT_EQ(topology->spec().warnings,
            std::vector<std::string>{"folder/peer.txt: error rates of links are left out"});
}

TEST(Simai, ContradictionsAreWarnings) {
  const StatusOr<Topology> topology = ReadPeer(
      "4 2 0 1 3 RTX\n3\n0 3 1Gbps 0ms 0\n1 3 1Gbps 0ms 0\n2 3 1Gbps 0ms 0\n9 3 1Gbps 0ms 0\na note\n");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(topology->num_links(), 6);
  EXPECT_EQ(topology->spec().warnings,
            (std::vector<std::string>{
                "folder/peer.txt:6:1: 3 links in the first line; what stands below them is left out",
                "folder/peer.txt:1: the architecture of GPU type RTX is not known; hint: --gpu-arch=sm90",
                "folder/peer.txt: 3 GPUs, 2 to a server: the last server has 1"}));
}

TEST(Simai, TheFlagNamesTheArchitectureOfAnUnknownType) {
  LoadOptions options;
  options.gpu_arch = "sm90";
  const StatusOr<Topology> topology =
      ReadPeer("3 2 1 0 2 X1\n2\n0 2 1Gbps 0ms 0\n1 2 1Gbps 0ms 0\n", options);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_TRUE(topology->node(NodeId(2)).multicast);
  EXPECT_EQ(topology->spec().warnings, std::vector<std::string>());
}

TEST(Simai, LinesOfBothDirectionsAreOneCable) {
  const StatusOr<Topology> topology =
      ReadPeer("3 1 4\n2\n0 2 400Gbps 1us 0\n1 2 400Gbps 1us 0\n2 0 400Gbps 1us 0\n2 1 400Gbps 1us 0\n");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  EXPECT_EQ(Cables(*topology),
            (std::vector<std::string>{"h0/0--switch2 50GB/s 1us", "h1/0--switch2 50GB/s 1us"}));
  EXPECT_EQ(topology->spec().warnings,
            std::vector<std::string>{
                "folder/peer.txt: each link is there in both directions; two lines are read as one cable"});
  // Parallel cables, of which the other way is not there.
  EXPECT_EQ(ReadPeer("2 0 2\n0 1 400Gbps 1us 0\n0 1 400Gbps 1us 0\n")->num_links(), 4);
}

TEST(Simai, RefusesWithThePlace) {
  struct Case {
    std::string_view text, message;
  };
  constexpr Case kCases[] = {
      {"3 1 2\n2\n0 2 200Gbps 1us 0\n",
       "folder/peer.txt:4:1: the file ends after 1 link; its first line says 2"},
      {"3 1 1\n2\n0 9 200Gbps 1us 0\n",
       "folder/peer.txt:3:3: the destination of a link: '9': expected a whole number from 0 to 2"},
      {"3 1 1\n2\n0 0 200Gbps 1us 0\n", "folder/peer.txt:3:3: a link from 0 to itself; expected another end"},
      {"3 1 1\n2\n0 2 fast 1us 0\n",
       "folder/peer.txt:3:5: link 0 to 2: 'fast': no number; a bandwidth is written like 450GB/s"},
      {"3 3 1\n0 1 2\n0 2 1Gbps 1us 0\n",
       "folder/peer.txt:1:5: 3 of 3 nodes are switches; expected at least one GPU"},
      {"4 2 1\n2 2\n0 2 1Gbps 1us 0\n", "folder/peer.txt:2:3: switch 2 is listed twice"},
      {"3 1 1\n2\n0 2 1Gbps 1us\n", "the text is of no known format"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Refusal(c.text), c.message) << c.text;
}

std::string Write(const RandomMachine& machine, bool simai) {
  std::string text = fmt::format("{}", machine.spec.nodes.size());
  if (simai) text += fmt::format(" {} 0", machine.gpus_per_host);
  text += fmt::format(" {} {}{}\n", machine.switches, machine.num_cables(), simai ? " A100" : "");
  for (size_t n = 0; n < machine.spec.nodes.size(); ++n)
    if (machine.spec.nodes[n].kind == NodeKind::kSwitch) text += fmt::format("{} ", n);
  text += "\n";
  for (size_t c = 0; c < machine.num_cables(); ++c)
    text +=
        fmt::format("{} {} {}Gbps {}ns 0\n", machine.cable(c).from.value, machine.cable(c).to.value,
                    machine.cable(c).bandwidth_bytes_per_s / 125'000'000, machine.cable(c).latency_ps / 1000);
  return text;
}

TEST(Simai, RandomMachinesComeBack) {
  Random random(52);
  for (int i = 0; i < 2000; ++i) {
    const bool simai = i % 2 == 0;
    RandomMachine machine(random, simai ? 4 : 1);
    machine.spec.gpu_arch = simai ? "sm80" : "";
    const std::string text = Write(machine, simai);
    const StatusOr<Topology> topology = ReadPeer(text);
    ASSERT_TRUE(topology.ok()) << topology.status().message() << "\n" << text;
    machine.spec.source = topology->spec().source;
    EXPECT_EQ(topology->spec(), machine.spec) << text;
    EXPECT_EQ(topology->spec().warnings, std::vector<std::string>());
  }
}

}  // namespace
}  // namespace xccl
