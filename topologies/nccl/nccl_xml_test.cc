#include "topologies/nccl/nccl_xml.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "base/random.h"
#include "base/strings.h"
#include "base/testing/shared_data.h"
#include "base/units.h"
#include "topologies/nccl/nccl_dumps_for_tests.h"

namespace xccl {
namespace {

TEST(NcclXml, Machines) {
  struct Case {
    const char* name;
    std::string text;
    LoadOptions options;
    std::string expected;
  };
  const std::string pair = R"(<nvlink target="0000:01:00.0" count="4" tclass="0x030200"/>)";
  const std::string back = R"(<nvlink target="0000:00:00.0" count="4" tclass="0x030200"/>)";
  const std::vector<Case> cases = {
      {"bridged pair",
       System(Gpu(0, pair) + Gpu(1, back)),
       {},
       "0--1 80GB/s 600ns\n0--numa0 24GB/s 500ns\n1--numa0 24GB/s 500ns\n"},
      {"busids compare as numbers",
       System(Gpu(0, R"(<nvlink target="00000000:01:00.0" count="4" tclass="0x030200"/>)") + Gpu(1, back)),
       {},
       "0--1 80GB/s 600ns\n0--numa0 24GB/s 500ns\n1--numa0 24GB/s 500ns\n"},
      {"one side lists nothing",
       System(Gpu(0, pair) + Gpu(1)),
       {},
       "0->1 80GB/s 600ns\n0--numa0 24GB/s 500ns\n1--numa0 24GB/s 500ns\n"
       "! dir/box.xml:1:1: gpu 0 lists 80GB/s to gpu 1, which lists none back\n"},
      {"sides differ",
       System(Gpu(0, pair) + Gpu(1, R"(<nvlink target="0000:00:00.0" count="2" tclass="0x030200"/>)")),
       {},
       "0->1 80GB/s 600ns\n1->0 40GB/s 600ns\n0--numa0 24GB/s 500ns\n1--numa0 24GB/s 500ns\n"
       "! dir/box.xml:1:1: gpu 0 lists 80GB/s to gpu 1, which lists 40GB/s back\n"},
      {"hidden NVSwitches are one switch",
       System(Gpu(0, R"(<nvlink target="fffffff:ff:ff.0" count="12" tclass="0x068000"/>)") +
              Gpu(1, R"(<nvlink target="0000:c0:00.0" count="5" tclass="0x068000"/>)"
                     R"(<nvlink target="0000:c1:00.0" count="7" tclass="0x068000"/>)")),
       {},
       "0--nvswitch 240GB/s 300ns\n1--nvswitch 240GB/s 300ns\n0--numa0 24GB/s 500ns\n1--numa0 24GB/s "
       "500ns\n"},
      {"a hidden NVSwitch without class",
       System(Gpu(0, R"(<nvlink target="fffffff:ff:ff.0" count="12"/>)")),
       {},
       "0--nvswitch 240GB/s 300ns\n0--numa0 24GB/s 500ns\n"},
      {"NVLink to the CPU, and C2C",
       System(Gpu(0, R"(<nvlink target="0000:cc:00.0" count="3" tclass="0x068001"/>)") +
              Gpu(1, R"(<c2c bw="44712" count="5"/>)")),
       {},
       "0--numa0 60GB/s 600ns\n1--numa0 223.56GB/s 600ns\n0--numa0 24GB/s 500ns\n1--numa0 24GB/s 500ns\n"
       "! dir/box.xml:1:100: no NVLink between sm80 GPUs, which usually have it; only PCIe and their CPUs "
       "join "
       "them\n"},
      {"links to itself, to nothing, of no count",
       System(Gpu(0, back + R"(<nvlink target="0000:77:00.0" count="1"/>)" +
                         R"(<nvlink target="0000:c0:00.0" tclass="0x068000"/>)")),
       {},
       "0--nvswitch 20GB/s 300ns\n0--numa0 24GB/s 500ns\n"
       "! dir/box.xml:1:225: a link of a GPU to itself; left out\n"
       "! dir/box.xml:1:284: a link to 0000:77:00.0, which is neither a GPU of this file nor an NVSwitch; "
       "left out\n"
       "! dir/box.xml:1:325: nvlink without count; 1 assumed\n"},
      {"xGMI of gfx90a as RCCL writes it",
       System(
           R"(<pci busid="0:1:0.0" class="0x038000" link_speed="32 GT/s" link_width="16"><gpu dev="0" sm="104" gcn="910" rank="0"><xgmi target="0:2:0.0" count="4" tclass="0x038000"/></gpu></pci>)"
           R"(<pci busid="0:2:0.0" class="0x038000" link_speed="32 GT/s" link_width="16"><gpu dev="1" sm="104" gcn="910" rank="1"><xgmi target="0:1:0.0" count="4" tclass="0x038000"/></gpu></pci>)"),
       {},
       "0--1 144GB/s 600ns\n0--numa0 48GB/s 500ns\n1--numa0 48GB/s 500ns\n"},
      {"comment, declaration, CRLF and blank lines before the root",
       "\r\n<?xml version=\"1.0\"?>\r\n<!-- <system> -->\r\n" + System("\r\n" + Gpu(0) + "\r\n"),
       {},
       "0--numa0 24GB/s 500ns\n"},
      {"gpus by class",
       System(R"(<pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>)"
              R"(<pci busid="0002:00:00.0" class="0x120000" link_speed="16 GT/s" link_width="16"/>)"
              R"(<pci busid="0003:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="8"/>)"
              R"(<pci busid="0004:00:00.0" class="0x010802" link_speed="16 GT/s" link_width="4"/>)"),
       Arch("sm70"),
       "0--numa0 24GB/s 500ns\n1--numa0 24GB/s 500ns\nnic-0003.00--numa0 12GB/s 500ns\n"
       "! dir/box.xml:1:1: no <gpu> elements, so no NVLinks: only PCIe joins the GPUs (the library's "
       "machines have "
       "both)\n"
       "! dir/box.xml:1:262: a NIC without <net>, so without a speed; that of its PCIe link assumed\n"},
      {"a bridge with one device is part of its link; with two, a switch",
       System(
           R"(<pci busid="0000:0a:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">)"
           R"(<pci busid="0000:0b:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">)" +
           Card(0) + Card(1) +
           R"(</pci></pci><pci busid="0000:0c:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">)" +
           Card(2) + "</pci>"),
       {},
       "pci-0b--numa0 12GB/s 500ns\n0--pci-0b 24GB/s 500ns\n1--pci-0b 24GB/s 500ns\n2--numa0 12GB/s 500ns\n"},
      {"a bridge of one slow lane is virtual",
       System(R"(<pci busid="0000:0a:00.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1">)" +
              Card(0) + Card(1) + "</pci>"),
       {},
       "pci-0a--numa0 24GB/s 500ns\n0--pci-0a 24GB/s 500ns\n1--pci-0a 24GB/s 500ns\n"
       "! dir/box.xml:1:100: a bridge of 2.5 GT/s x1 above a faster device; taken for virtual, as fast as "
       "the "
       "device\n"},
      {"a slow NIC is not virtual",
       System(Gpu(0) +
              R"(<pci busid="0000:60:00.0" class="0x020000" link_speed="2.5 GT/s" link_width="1"><nic>)"
              R"(<net name="eth0" dev="0" speed="10000" port="0" gdr="0"/></nic></pci>)"),
       {},
       "0--numa0 24GB/s 500ns\neth0--numa0 187.5MB/s 500ns\n"},
      {"both levels of a Broadcom Gen4 switch",
       System(
           R"(<pci busid="0000:0a:00.0" class="0x060400" vendor="0x1000" device="0xc010" subsystem_vendor="0x1000" subsystem_device="0xa096" link_speed="16 GT/s" link_width="16">)"
           R"(<pci busid="0000:0b:00.0" class="0x060400" vendor="0x1000" device="0xc010" subsystem_vendor="0x1000" subsystem_device="0xa096" link_speed="16 GT/s" link_width="16">)" +
           Card(0) + Card(1) + "</pci>" + Card(2) + "</pci>"),
       {},
       "pci-0a--numa0 24GB/s 500ns\n0--pci-0a 24GB/s 500ns\n1--pci-0a 24GB/s 500ns\n2--pci-0a 24GB/s "
       "500ns\n"},
      {"several nets on one nic, a nic without PCI, odd speeds",
       System(
           Gpu(0) +
           R"(<pci busid="0000:61:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16"><nic>)"
           R"(<net name="m0" dev="0" speed="180000" port="1"/><net name="m0" dev="1" speed="180000" port="2"/></nic></pci>)"
           R"(<nic><net name="veth" dev="2" speed="-1" port="0" latency="2.5"/></nic>)"),
       {},
       "0--numa0 24GB/s 500ns\npci-61--numa0 48GB/s 500ns\nm0--pci-61 22.5GB/s 0ns\nm0-2--pci-61 22.5GB/s "
       "0ns\n"
       "veth--numa0 1.25GB/s 2.5us\n"
       "! dir/box.xml:1:442: net without speed; 10000 Mbit/s assumed, as NCCL does\n"},
      {"names that references could not say",
       System(Gpu(0) + "<nic><net name=\"a/b:*..\xc3\xa9\" dev=\"0\" speed=\"8000\"/></nic>"),
       {},
       "0--numa0 24GB/s 500ns\na_b__.___--numa0 1GB/s 0ns\n"},
      {"a pcilink between switches",
       System(R"(<pci busid="0000:0a:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">)" +
              Card(0) + Card(1) +
              R"(<pcilink target="0000:0b:00.0"/></pci>)"
              R"(<pci busid="0000:0b:00.0" class="0x060400" link_speed="16 GT/s" link_width="16">)" +
              Card(2) + Card(3) +
              R"(<pcilink target="0000:0a:00.0"/><pcilink target="0000:77:00.0"/></pci>)"),
       {},
       "pci-0a--numa0 24GB/s 500ns\n0--pci-0a 24GB/s 500ns\n1--pci-0a 24GB/s 500ns\npci-0b--numa0 24GB/s "
       "500ns\n"
       "2--pci-0b 24GB/s 500ns\n3--pci-0b 24GB/s 500ns\npci-0a--pci-0b 5000GB/s 500ns\n"
       "! dir/box.xml:1:878: a pcilink to 0000:77:00.0, which is no other switch of this file; left out\n"},
      {"unknown elements and versions",
       "<system version=\"3\"><cpu numaid=\"0\"><odd/>" + Gpu(0) + "</cpu><even/></system>",
       {},
       "0--numa0 24GB/s 500ns\n"
       "! dir/box.xml:1:1: system version=\"3\"; known are 1 (NCCL) and 2 (RCCL)\n"
       "! dir/box.xml:1:37: unknown element <odd> left out\n"
       "! dir/box.xml:1:186: unknown element <even> left out\n"},
      {"the file beats the flag", System(Gpu(0)), Arch("sm90"),
       "0--numa0 24GB/s 500ns\n! dir/box.xml:1:100: the file says sm80; --gpu-arch=sm90 has no effect\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(Read(c.text, c.options), c.expected) << c.name;
}

TEST(NcclXml, RanksOrderTheGpusAndDevNamesThem) {
  const std::string text =
      "<system version=\"1\"><cpu numaid=\"1\" arch=\"arm64\">" + Gpu(2) +
      "</cpu><cpu numaid=\"0\" arch=\"arm64\">" +
      R"(<pci busid="0000:08:00.0" class="0x030200"><gpu dev="7" sm="80" rank="0"/></pci>)"
      R"(<pci busid="0000:09:00.0" class="0x030200"><gpu dev="9" sm="80"/></pci>)"
      "</cpu></system>";
  const StatusOr<Topology> t = ReadNcclXml(text, "box.xml");
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_EQ(t->NodeName(t->NodeOf(Rank(0))), "gpu 7");
  EXPECT_EQ(t->NodeName(t->NodeOf(Rank(1))), "gpu 2");
  EXPECT_EQ(
      Join(t->spec().warnings, "\n"),
      "box.xml:1:222: a PCI device without link_speed; 8 GT/s assumed, as NCCL does\n"
      "box.xml:1:222: ranks are not 0..1; renumbered in their order\n"
      "box.xml:1:222: no NVLink between sm80 GPUs, which have it unless they are PCIe cards; only PCIe joins "
      "them\n"
      "box.xml:1:302: a <gpu> without rank among others with one; left out, as NCCL does");
  EXPECT_EQ(Links(*t), "2--numa1 24GB/s 500ns\n7--numa0 12GB/s 500ns\nnuma1--numa0 6GB/s 500ns\n");
}

// A dump of an NVLink domain of several hosts: host_hash tells them apart, and the NVSwitch belongs to none.
TEST(NcclXml, SeveralHosts) {
  const auto host = [](std::string_view hash, int rank) {
    return fmt::format(
        R"(<cpu numaid="0" host_hash="{}" arch="arm64"><pci busid="0000:0{}:00.0" class="0x030200" )"
        R"(link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="100" rank="{}">)"
        R"(<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/></gpu></pci></cpu>)",
        hash, rank, rank);
  };
  const StatusOr<Topology> t =
      ReadNcclXml("<system version=\"1\">" + host("0xb", 1) + host("0xa", 0) + "</system>", "nvl.xml");
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_EQ(t->num_hosts(), 2);
  EXPECT_EQ(Links(*t),
            "h0/0--nvswitch 721.8GB/s 300ns\nh1/0--nvswitch 721.8GB/s 300ns\n"
            "h1/0--h1/numa0 48GB/s 500ns\nh0/0--h0/numa0 48GB/s 500ns\n");
  const Node& nvswitch = t->node(t->link(LinkId(0)).to);
  EXPECT_FALSE(nvswitch.host.has_value());
  EXPECT_TRUE(nvswitch.multicast && nvswitch.reduce);
}

// Follows the flags of an error's hint, and then the hints of the errors that follow, until the file is read.
void ExpectThatHintsWork(std::string_view text, LoadOptions options) {
  for (int tries = 0; tries < 3; ++tries) {
    const StatusOr<Topology> t = ReadNcclXml(text, "box.xml", options);
    const std::string message = t.ok() ? "" : t.status().message();
    const size_t hint = message.find("hint: --");
    if (hint == std::string::npos) return;
    ASSERT_LT(tries, 2) << message;
    for (const std::string& word : Split(message.substr(hint + 6), ' ')) {
      const std::string value = word.substr(word.find('=') + 1);
      if (word.starts_with("--gpu-arch="))
        options.gpu_arch = value;
      else if (word.starts_with("--gpus-per-switch="))
        options.gpus_per_switch = std::stoi(value);
      else if (word.starts_with("--gpu-busids="))
        options.gpu_busids = value;
      else if (word.starts_with("--"))
        ADD_FAILURE() << "an unknown flag: " << message;
    }
  }
}

TEST(NcclXml, Rejections) {
  struct Case {
    const char* name;
    std::string text;
    LoadOptions options;
    std::string expected;
  };
  LoadOptions zero_per_switch;
  zero_per_switch.gpus_per_switch = 0;
  zero_per_switch.gpu_arch = "sm90";
  const std::string by_class = System(R"(<pci busid="0001:00:00.0" class="0x030200"/>)");
  const std::vector<Case> cases = {
      {"graphs",
       "\n<graphs version=\"1\"/>",
       {},
       "dir/box.xml:2:1: an NCCL graph file (<graphs>), not a topology; expected <system>; hint: "
       "NCCL_TOPO_DUMP_FILE "
       "writes one"},
      {"other root", "<topology/>", {}, "dir/box.xml:1:1: root element <topology>; expected <system>"},
      {"malformed",
       "<system version=\"1\">\n<cpu>\n</system>",
       {},
       "dir/box.xml:3:3: malformed XML: an end tag that does not match its start tag"},
      {"empty", "", {}, "dir/box.xml:1:1: no element; expected <system>"},
      {"no cpu",
       "<system version=\"1\"/>",
       {},
       "dir/box.xml:1:1: a <system> without <cpu>; expected at least one"},
      {"absurd count",
       System(Gpu(0, R"(<nvlink target="0000:01:00.0" count="99999999999"/>)")),
       {},
       "dir/box.xml:1:225: nvlink: count=\"99999999999\": expected a whole number from 0 to 1048576"},
      {"no target",
       System(Gpu(0, R"(<nvlink count="1"/>)")),
       {},
       "dir/box.xml:1:225: nvlink: no target; expected a busid"},
      {"c2c without bw",
       System(Gpu(0, R"(<c2c count="1"/>)")),
       {},
       "dir/box.xml:1:225: c2c: no bw; expected the MB/s of one link"},
      {"cut in a tag",
       "<system version=\"1\">\n<cpu numaid=\"0\" ar",
       {},
       "dir/box.xml:2:19: the file ends inside an attribute; expected more, up to </system>"},
      {"cut between tags",
       "<system version=\"1\">\n<cpu numaid=\"0\"/>\n",
       {},
       "dir/box.xml:2:18: the file ends early; expected more, up to </system>"},
      {"text after the root",
       "<system version=\"1\"/>\nbye",
       {},
       "dir/box.xml:2:1: text beside <system>; expected nothing but comments"},
      {"two files in one",
       "<system version=\"1\"/>\n<system version=\"1\"/>",
       {},
       "dir/box.xml:2:1: a second root element; expected one <system>"},
      {"arch of a GPU with links unknown",
       System(
           R"(<pci busid="0000:01:00.0"><gpu dev="0"><nvlink target="fffffff:ff:ff.0" count="18"/></gpu></pci>)"),
       {},
       "dir/box.xml:1:100: gpu: nvlink, but no sm; expected the GPU's architecture; hint: --gpu-arch=sm90"},
      {"arch guessed from the device",
       System(R"(<pci busid="0000:01:00.0" vendor="0x10de" device="0x20b2"><gpu dev="0">)"
              R"(<nvlink target="fffffff:ff:ff.0" count="12"/></gpu></pci>)"),
       {},
       "dir/box.xml:1:100: gpu: nvlink, but no sm; expected the GPU's architecture; hint: --gpu-arch=sm80"},
      {"no such arch", by_class, Arch("h100"),
       "--gpu-arch=h100: no GPU architecture; expected one such as sm90 or gfx942"},
      {"no GPUs at all",
       System(R"(<pci busid="0001:00:00.0" class="0x020000"/>)"),
       {},
       "dir/box.xml:1:1: neither <gpu> elements nor devices of a GPU's class; expected one of them; hint: "
       "--gpus-per-switch=1"},
      {"neither classes nor switches",
       System(R"(<pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/><pci class="0x010802"/>)"),
       {},
       "dir/box.xml:1:1: neither <gpu> elements nor classes of devices; expected the bus ids of the GPUs; "
       "hint: "
       "--gpu-busids=0000:00:16.0,0000:00:17.0 without those of NICs"},
      {"a bus id that is no device's", System(R"(<pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/>)"),
       BusIds("00:16.0, 00:18.0"),
       "dir/box.xml:1:1: --gpu-busids: no device 00:18.0 without <gpu> and <net>; devices are 0000:00:17.0"},
      {"no bus id", System(R"(<pci busid="0000:00:16.0"/>)"), BusIds(" ,"),
       "--gpu-busids: no bus id; expected some such as 0000:17:00.0,0000:65:00.0"},
      {"no GPUs a switch", System(R"(<pci busid="0001:00:00.0"><pci busid="0002:00:00.0"/></pci>)"),
       zero_per_switch, "--gpus-per-switch=0: expected 1 to 1024"},
      {"a rank twice",
       System(Gpu(0) + Gpu(0)),
       {},
       "dir/box.xml:1:237: gpu: rank=\"0\": an earlier <gpu> has it; expected each rank once"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Read(c.text, c.options), c.expected) << c.name;
    ExpectThatHintsWork(c.text, c.options);
  }
}

TEST(NcclXml, EveryWarningCostsAsMuch) {
  constexpr int kUnknown = 100'000;
  std::string inside = Card(0) + Card(1);
  for (int i = 0; i < kUnknown; ++i) inside += fmt::format("<x{}/>\n", i);
  const StatusOr<Topology> t = ReadNcclXml(System(inside), "box.xml");
  ASSERT_TRUE(t.ok()) << t.status().message();
  ASSERT_EQ(t->spec().warnings.size(), size_t{kUnknown});
  EXPECT_EQ(t->spec().warnings.front(), fmt::format("box.xml:1:{}: unknown element <x0> left out",
                                                    System(Card(0) + Card(1)).find("</cpu>") + 1));
  EXPECT_EQ(t->spec().warnings.back(),
            fmt::format("box.xml:{}:1: unknown element <x99999> left out", kUnknown));
}

TEST(NcclXml, DeepNestingIsRefused) {
  std::string open, close;
  for (int i = 0; i < 5000; ++i) {
    open += fmt::format("<pci busid=\"{}\">", i);
    close += "</pci>";
  }
  EXPECT_EQ(Read(System(open + close)), "dir/box.xml:1:1098: pci: nested deeper than 64");
}

// Random bytes are changed, removed and inserted: the result is an error or a topology, never a crash.
TEST(NcclXml, MutatedFiles) {
  const std::string text = System(
      R"(<pci busid="0000:0a:00.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1">)" +
      Gpu(0, R"(<nvlink target="0000:01:00.0" count="4" tclass="0x030200"/><c2c bw="44712" count="5"/>)") +
      Gpu(1, R"(<nvlink target="fffffff:ff:ff.0" count="12" tclass="0x068000"/>)") +
      R"(<pci busid="0000:61:00.0" class="0x020000"><nic><net name="m" dev="0" speed="180000"/><net dev="1"/></nic></pci>)"
      R"(<pcilink target="0000:0a:00.0"/></pci><pci busid="0000:70:00.0" class="0x120000"/>)");
  Random random(5);
  const std::string_view alphabet = "<>/\"= 019xacgpiu:.-";
  int read = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string mutated = text;
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      const size_t at = random.Below(mutated.size());
      const char c = alphabet[random.Below(alphabet.size())];
      switch (random.Below(4)) {
        case 0:
          mutated[at] = c;
          break;
        case 1:
          mutated.erase(at, 1 + random.Below(40));
          break;
        case 2:
          mutated.insert(at, 1, c);
          break;
        case 3:
          mutated.insert(at, text.substr(random.Below(text.size()), random.Below(60)));
          break;
      }
    }
    LoadOptions options = Arch("sm90");
    if (trial % 2 == 0) options.gpus_per_switch = 1;
    HostFacts facts;
    const StatusOr<Topology> t = ReadNcclXml(mutated, "m.xml", options, &facts);
    read += t.ok() ? 1 : 0;
    ASSERT_TRUE(t.ok() || t.status().code() == StatusCode::kInvalidInput) << t.status().message() << "\n"
                                                                          << mutated;
  }
  EXPECT_GT(read, 300);
}

TEST(NcclXml, TellsTheArchitectureThatAllGpusHave) {
  const auto arch_of = [](const std::string& first, const std::string& second) {
    const std::string gpu =
        R"(<pci busid="0000:0{}:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="{}" {}/></pci>)";
    const std::string xml = R"(<system version="1"><cpu numaid="0" arch="x86_64">)" +
                            fmt::format(fmt::runtime(gpu), 1, 0, first) +
                            fmt::format(fmt::runtime(gpu), 2, 1, second) + "</cpu></system>";
    const StatusOr<Topology> topology = ReadNcclXml(xml, "box.xml");
    EXPECT_EQ(topology.status(), OkStatus());
    return topology.ok() ? topology->gpu_arch() : "";
  };
  EXPECT_EQ(arch_of("sm=\"90\"", "sm=\"90\""), "sm90");
  EXPECT_EQ(arch_of("gcn=\"gfx942\"", "gcn=\"gfx942\""), "gfx942");
  EXPECT_EQ(arch_of("sm=\"90\"", "sm=\"80\""), "");
}

TEST(NcclXml, TellsItsRoots) {
  EXPECT_TRUE(IsNcclXml("<!DOCTYPE system><system>"));
  EXPECT_TRUE(IsNcclXml("<!DOCTYPE system [<!ENTITY a '<topology>'>]><system>"));
  EXPECT_TRUE(IsNcclXml("host7: NCCL INFO dump: 1 < 2\n<n:system xmlns:n='x'>"));
  EXPECT_TRUE(IsNcclXml("<system"));
  EXPECT_FALSE(IsNcclXml("<!DOCTYPE system [<system>"));
  EXPECT_FALSE(IsNcclXml("<n:topology>"));
  EXPECT_TRUE(IsNcclXml("<system version=\"1\">"));
  EXPECT_TRUE(IsNcclXml("\r\n <?xml version=\"1.0\"?><!-- <topology> -->\n<graphs>"));
  EXPECT_FALSE(IsNcclXml("<topology/>"));
  EXPECT_FALSE(IsNcclXml("<systems/>"));
  EXPECT_FALSE(IsNcclXml("<!-- never closed <system>"));
  EXPECT_FALSE(IsNcclXml(""));
}

// Files that vendors and users published.
struct Sample {
  const char* file;
  int32_t gpus_per_switch;
  int32_t ranks;
  int64_t gpu_gb_per_s_x10;  // over NVLink or xGMI, out of each GPU
  int32_t nics;
  size_t warnings;
};
constexpr Sample kSamples[] = {
    {"aws-p4d.xml", 0, 8, 0, 4, 2},        {"aws-p5.xml", 1, 8, 0, 32, 7},
    {"azure-ndv2.xml", 0, 8, 0, 1, 2},     {"azure-ndv4.xml", 0, 8, 0, 8, 2},
    {"azure-ncv4.xml", 0, 4, 0, 1, 4},  // its 12 NVLinks per GPU lead to the GPU itself
    {"oci-h100.xml", 0, 8, 3708, 16, 0},   {"dgx-a100.xml", 0, 8, 2400, 8, 0},
    {"mi300x.xml", 0, 8, 3360, 2, 0},      {"8a100-4cx6.xml", 0, 8, 2400, 5, 0},
    {"rccl-8p-940.xml", 0, 8, 3360, 8, 0}, {"rccl-16p1h.xml", 0, 16, 2520, 8, 0},
    {"rccl-4p3l.xml", 0, 4, 720, 2, 0},    {"rccl-8p6l.xml", 0, 8, 1440, 1, 0},
};

TEST(NcclXml, FilesFoundInTheWild) {
  constexpr std::string_view kFolder = "data/nccl-topologies";
  const std::optional<std::string> folder = SharedData(kFolder);
  if (!folder) GTEST_SKIP() << SharedDataMissing(kFolder);
  for (const Sample& s : kSamples) {
    const StatusOr<std::string> text = ReadFile(*folder + "/" + s.file);
    ASSERT_TRUE(text.ok()) << text.status().message();
    LoadOptions options;
    if (s.gpus_per_switch > 0) options.gpus_per_switch = s.gpus_per_switch;
    const StatusOr<Topology> t = ReadNcclXml(*text, s.file, options);
    ASSERT_TRUE(t.ok()) << t.status().message();
    EXPECT_EQ(t->num_ranks(), s.ranks) << s.file;
    EXPECT_EQ(t->spec().warnings.size(), s.warnings) << s.file << "\n" << Join(t->spec().warnings, "\n");
    EXPECT_EQ(std::ranges::count(t->spec().nodes, NodeKind::kNic, &Node::kind), s.nics) << s.file;
    for (int32_t r = 0; r < t->num_ranks(); ++r) {
      int64_t out = 0, in = 0;
      const auto is_gpu_link = [&](NodeId other) {
        return t->IsGpu(other) || t->node(other).id == "nvswitch";
      };
      for (LinkId l : t->Out(t->NodeOf(Rank(r))))
        if (is_gpu_link(t->link(l).to)) out += t->link(l).bandwidth_bytes_per_s;
      for (LinkId l : t->In(t->NodeOf(Rank(r))))
        if (is_gpu_link(t->link(l).from)) in += t->link(l).bandwidth_bytes_per_s;
      EXPECT_EQ(out, s.gpu_gb_per_s_x10 * 100'000'000) << s.file << " rank " << r;
      EXPECT_EQ(in, out) << s.file << " rank " << r;
    }
  }
  const StatusOr<std::string> graph = ReadFile(*folder + "/azure-ncv4-graph.xml");
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(
      ReadNcclXml(*graph, "azure-ncv4-graph.xml").status().message(),
      "azure-ncv4-graph.xml:1:1: an NCCL graph file (<graphs>), not a topology; expected <system>; hint: "
      "NCCL_TOPO_DUMP_FILE writes one");
}

}  // namespace
}  // namespace xccl
