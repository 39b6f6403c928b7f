// --hosts of dumps: which NICs join the copies, by which rails, and what NVLink joins.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/cuts.h"
#include "topologies/load/load.h"
#include "topologies/load/load_for_tests.h"

namespace xccl {
namespace {

std::string Cpu(int numa, std::string_view inside, std::string_view arch = "x86_64",
                std::string_view host = "0x1") {
  return fmt::format(
      R"(<cpu host_hash="{}" numaid="{}" arch="{}" vendor="GenuineIntel" familyid="6" modelid="143">{}</cpu>)",
      host, numa, arch, inside);
}
std::string System(std::string_view inside) {
  return fmt::format("<system version=\"1\">{}</system>", inside);
}
std::string Pci(std::string_view busid, std::string_view pci_class, std::string_view inside) {
  return fmt::format(R"(<pci busid="{}" class="{}" link_speed="16.0 GT/s PCIe" link_width="16">{}</pci>)",
                     busid, pci_class, inside);
}
std::string Gpu(int rank, int bus) {
  return Pci(
      fmt::format("0000:{:02x}:00.0", bus), "0x030200",
      fmt::format(R"(<gpu dev="{0}" sm="80" rank="{0}" gdr="1"><nvlink target="0000:07:00.0" count="12" )"
                  R"(tclass="0x068000"/></gpu>)",
                  rank));
}
std::string Card(int rank, int bus) {
  return Pci(fmt::format("0000:{:02x}:00.0", bus), "0x030200",
             fmt::format(R"(<gpu dev="{0}" sm="89" rank="{0}" gdr="1"/>)", rank));
}
std::string Net(std::string_view name, int dev, int mbps, int gdr, std::string_view more = "") {
  return fmt::format(R"(<net name="{}" dev="{}" speed="{}" port="1" gdr="{}" {}/>)", name, dev, mbps, gdr,
                     more);
}
std::string Nic(int bus, std::string_view nets) {
  return Pci(fmt::format("0000:{:02x}:00.0", bus), "0x020700", fmt::format("<nic>{}</nic>", nets));
}

LoadOptions Hosts(int32_t hosts) {
  LoadOptions options;
  options.hosts = hosts;
  return options;
}

// The cables of the first host's NICs to the network, and the warnings; or the error.
std::vector<std::string> Network(const std::string& dump, const LoadOptions& options = Hosts(2)) {
  const File file(dump);
  const StatusOr<Topology> topology = LoadTopology(file.path(), options);
  if (!topology.ok()) return {topology.status().message()};
  std::vector<std::string> lines;
  for (const std::string& cable : Cables(*topology))
    if (cable.starts_with("h0/") && cable.find("--h0/") == std::string::npos &&
        cable.find("nvswitch") == std::string::npos)
      lines.push_back(cable);
  lines.insert(lines.end(), topology->spec().warnings.begin(), topology->spec().warnings.end());
  return lines;
}

TEST(Hosts, NicsOfDumps) {
  struct Case {
    const char* name;
    std::string dump;
    std::vector<std::string> expected;
  };
  const std::vector<Case> cases = {
      {"a NIC without gdr and a slow one: the last is kept",
       System(
           Cpu(0, Pci("0000:10:00.0", "0x060400",
                      Gpu(0, 0x11) + Nic(0x12, Net("a", 0, 400000, 0)) + Nic(0x13, Net("b", 1, 25000, 1))))),
       {"h0/b--fabric 3125MB/s 1.3us",
        "--hosts: the fabric leaves out a (24GB/s, no gdr); the fastest of the others has 3.125GB/s"}},
      {"two ports of one NIC are as near as the one of another",
       System(Cpu(0, Gpu(0, 0x1a) + Gpu(1, 0x1b) +
                         Nic(0x1c, Net("a", 0, 100000, 1) + Net("b", 1, 100000, 1)) +
                         Nic(0x1d, Net("c", 2, 100000, 1)))),
       {"h0/a--fabric 12.5GB/s 1.3us", "h0/b--fabric 12.5GB/s 1.3us", "h0/c--fabric 12.5GB/s 1.3us"}},
      {"so they are below one switch with the GPUs",
       System(Cpu(
           0, Pci("0000:10:00.0", "0x060400",
                  Gpu(0, 0x1a) + Gpu(1, 0x1b) + Nic(0x1c, Net("a", 0, 100000, 1) + Net("b", 1, 100000, 1)) +
                      Nic(0x1d, Net("c", 2, 100000, 1))))),
       {"h0/a--rail0 12.5GB/s 1.3us", "h0/b--rail1 12.5GB/s 1.3us", "h0/c--rail2 12.5GB/s 1.3us"}},
      {"a NIC beside a GPU that several ranks share",
       System(Cpu(0, Pci("0000:10:00.0", "0x060400",
                         Pci("0000:11:00.0", "0x030200",
                             R"(<gpu dev="0" sm="89" rank="0"/><gpu dev="0" sm="89" rank="1"/>)") +
                             Nic(0x12, Net("a", 0, 100000, 1))) +
                         Pci("0000:20:00.0", "0x060400", Card(2, 0x21) + Nic(0x22, Net("b", 1, 100000, 1))))),
       {"h0/a--rail0 12.5GB/s 1.3us", "h0/b--rail1 12.5GB/s 1.3us"}},
      {"farther by CPUs: the other socket's NIC",
       System(Cpu(0, Gpu(0, 0x1a) + Gpu(1, 0x1b) + Nic(0x1c, Net("a", 0, 100000, 1))) +
              Cpu(1, Nic(0x1d, Net("b", 1, 100000, 1)))),
       {"h0/a--fabric 12.5GB/s 1.3us",
        "--hosts: the fabric leaves out b (12.5GB/s, others are nearer to all GPUs); the fastest of the "
        "others has "
        "12.5GB/s"}},
      {"interfaces of containers yield to a slow device",
       System(Cpu(0, Gpu(0, 0x1a) + Gpu(1, 0x1b) + Nic(0x5c, Net("eno1", 0, 1000, 0)) + "<nic>" +
                         Net("docker0", 1, 10000, 0) + Net("veth268d912", 2, 10000, 0) + "</nic>")),
       {"h0/eno1--fabric 125MB/s 1.3us",
        "--hosts: the fabric leaves out docker0 (1.25GB/s, no PCI device), veth268d912 (1.25GB/s, no PCI "
        "device); "
        "the fastest of the others has 0.125GB/s"}},
      {"bonds and merged NICs have no PCI device of their own",
       System(Cpu(0, Gpu(0, 0x1a) + Gpu(1, 0x1b) + Nic(0x5c, Net("eno1", 0, 1000, 0)) + "<nic>" +
                         Net("bond0", 1, 100000, 0) + Net("eth0+eth1", 2, 50000, 0) + "</nic>")),
       {"h0/bond0--fabric 12.5GB/s 1.3us", "h0/eth0+eth1--fabric 6.25GB/s 1.3us",
        "--hosts: the fabric leaves out eno1 (0.125GB/s, slow); the fastest of the others has 12.5GB/s"}},
      {"where no NIC has a PCI device, all join",
       System(Cpu(0, Gpu(0, 0x1a) + Gpu(1, 0x1b) + "<nic>" + Net("eth0", 0, 10000, 0) + "</nic>")),
       {"h0/eth0--fabric 1.25GB/s 1.3us"}},
  };
  for (const Case& c : cases) EXPECT_EQ(Network(c.dump), c.expected) << c.name;
}

// NCCL 2.30 joins NICs of different hosts where their rails and their planes agree.
TEST(Hosts, RailsThatTheDumpNames) {
  const auto dump = [](std::string_view a, std::string_view b, std::string_view c) {
    return System(Cpu(0, Gpu(0, 0x1a) + Gpu(1, 0x1b) + Nic(0x1c, Net("a", 0, 100000, 1, a)) +
                             Nic(0x1d, Net("b", 1, 100000, 1, b)) + Nic(0x1e, Net("c", 2, 100000, 1, c))));
  };
  struct Case {
    const char *a, *b, *c;
    std::vector<std::string> switches;
  };
  const std::vector<Case> cases = {
      {R"(rail="4")", R"(rail="2")", R"(rail="4")", {"rail4", "rail2", "rail4"}},
      {R"(rail="0" plane="0")",
       R"(rail="0" plane="1")",
       R"(rail="1" plane="0")",
       {"rail0-plane0", "rail0-plane1", "rail1-plane0"}},
      {R"(plane="1")", R"(plane="0x0")", R"(plane="1")", {"plane1", "plane0", "plane1"}},
      {R"(rail="1")", "", R"(rail="-1")", {"rail1", "rail2", "rail3"}},
      {"", "", "", {"fabric", "fabric", "fabric"}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> expected;
    for (size_t i = 0; i < 3; ++i)
      expected.push_back(fmt::format("h0/{}--{} 12.5GB/s 1.3us", "abc"[i], c.switches[i]));
    EXPECT_EQ(Network(dump(c.a, c.b, c.c)), expected) << c.a << c.b << c.c;
  }
  LoadOptions one = Hosts(2);
  one.no_rails = true;
  EXPECT_EQ(Network(dump(R"(rail="4")", R"(rail="2")", R"(rail="4")"), one).front(),
            "h0/a--fabric 12.5GB/s 1.3us");
  LoadOptions spines = Hosts(2);
  spines.fabric = "oversubscription=2";
  const File file(dump(R"(rail="4")", R"(rail="2")", R"(rail="4")"));
  const std::vector<std::string> cables = Cables(LoadTopology(file.path(), spines).value());
  EXPECT_EQ(cables[cables.size() - 2], "rail2--spine0 12.5GB/s 1.3us");
  EXPECT_EQ(cables.back(), "rail4--spine0 25GB/s 1.3us");
}

// A tray of GB200 NVL72. Its NVSwitch is that of the rack.
std::string Tray(std::string_view host, int first_rank) {
  const auto gpu = [&](std::string_view busid, int dev) {
    return Pci(
        busid, "0x030200",
        fmt::format(R"(<gpu dev="{}" sm="100" rank="{}" gdr="1"><nvlink target="fffffff:ff:ff.0" count="18" )"
                    R"(tclass="0x068000"/><c2c bw="38400" count="10"/></gpu>)",
                    dev, first_rank + dev));
  };
  return Cpu(0, gpu("0008:01:00.0", 0) + gpu("0009:01:00.0", 1) + Nic(1, Net("mlx5_0", 0, 400000, 1)),
             "arm64", host) +
         Cpu(1, gpu("0012:01:00.0", 2) + gpu("0013:01:00.0", 3) + Nic(2, Net("mlx5_1", 1, 400000, 1)),
             "arm64", host);
}

TEST(Hosts, CopiesOfATrayAreTheRack) {
  std::string trays;
  for (int t = 0; t < 18; ++t) trays += Tray(fmt::format("{:#x}", t + 1), t * 4);
  const File rack_file(System(trays)), tray_file(System(Tray("0x1", 0)));
  const Topology rack = LoadTopology(rack_file.path()).value();
  const Topology copies = LoadTopology(tray_file.path(), Hosts(18)).value();
  EXPECT_EQ(copies.num_hosts(), 18);
  const auto nvlinks = [](const Topology& topology) {
    std::vector<std::string> cables = Cables(topology);
    std::erase_if(cables, [](const std::string& cable) { return cable.find("rail") != std::string::npos; });
    std::ranges::sort(cables);
    return cables;
  };
  EXPECT_EQ(nvlinks(copies), nvlinks(rack));
  // The copies have their rails, too: 36 NICs, each with its slot.
  EXPECT_EQ(CutBetweenHalves(rack), 36 * 721'800'000'000);
  EXPECT_EQ(CutBetweenHalves(copies), 36 * 721'800'000'000 + 18 * 24'000'000'000);
  const Node& nvswitch = *std::ranges::find(copies.spec().nodes, "nvswitch", &Node::id);
  EXPECT_FALSE(nvswitch.host.has_value());
  EXPECT_TRUE(nvswitch.multicast && nvswitch.reduce);
  EXPECT_EQ(copies.spec().warnings,
            std::vector<std::string>{
                "--hosts: one NVSwitch joins the GPUs of up to 18 hosts, as in one NVLink domain of "
                "at most 72 GPUs; hint: --nvlink-domain=4 gives each host its own"});
}

TEST(Hosts, NvlinkDomains) {
  const std::string tray = System(Tray("0x1", 0));
  const auto switches = [&](int32_t hosts, std::optional<int32_t> domain) {
    const File file(tray);
    LoadOptions options = Hosts(hosts);
    options.nvlink_domain = domain;
    const Topology topology = LoadTopology(file.path(), options).value();
    std::vector<std::string> lines;
    for (int32_t n = 0; n < topology.num_nodes(); ++n) {
      const Node& node = topology.node(NodeId(n));
      if (node.id.starts_with("nvswitch"))
        lines.push_back(fmt::format("{} {}", topology.NodeName(NodeId(n)), topology.Out(NodeId(n)).size()));
    }
    return lines;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(switches(1, std::nullopt), Lines{"switch nvswitch 4"});
  EXPECT_EQ(switches(2, std::nullopt), Lines{"switch nvswitch 8"});
  EXPECT_EQ(switches(2, 8), Lines{"switch nvswitch 8"});
  EXPECT_EQ(switches(3, 11), (Lines{"switch h2/nvswitch 4", "switch nvswitch0 8"}));
  EXPECT_EQ(switches(2, 4), (Lines{"switch h0/nvswitch 4", "switch h1/nvswitch 4"}));
  EXPECT_EQ(switches(5, 8), (Lines{"switch h4/nvswitch 4", "switch nvswitch0 8", "switch nvswitch1 8"}));
  EXPECT_EQ(switches(19, std::nullopt), (Lines{"switch h18/nvswitch 4", "switch nvswitch0 72"}));
}

TEST(Hosts, NvlinkDomainsOfOtherMachines) {
  const File native(R"(<topology name="tray"><nvswitch gpus="4"/><nic id="nic"/>
  <link from="gpu:*" to="nic" bandwidth="50GB/s"/></topology>)");
  LoadOptions options = Hosts(2);
  EXPECT_EQ(LoadTopology(native.path(), options)->num_nodes(), 2 * 6 + 1);
  options.nvlink_domain = 8;
  EXPECT_EQ(LoadTopology(native.path(), options)->num_nodes(), 2 * 5 + 1 + 1);
  const auto error = [](const char* machine, const LoadOptions& flags) {
    return LoadTopology(machine, flags).status().message();
  };
  options.nvlink_domain = 3;
  EXPECT_EQ(error(native.path().c_str(), options),
            "--nvlink-domain 3: expected at least the 4 GPUs of one host");
  EXPECT_EQ(error("p4d",
                  [] {
                    LoadOptions alone;
                    alone.nvlink_domain = 8;
                    return alone;
                  }()),
            "--nvlink-domain: only together with --hosts");
  options.nvlink_domain = 16;
  EXPECT_EQ(error("mi250x-full", options),
            "--nvlink-domain 16: mi250x-full has no switch between GPUs alone that hosts could share");
}

}  // namespace
}  // namespace xccl
