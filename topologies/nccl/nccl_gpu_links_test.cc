// GPUs' links, NICs and hosts of dumps that contradict themselves or leave something out, and the tables of
// architectures.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "topologies/nccl/nccl_constants.h"
#include "topologies/nccl/nccl_dumps_for_tests.h"

namespace xccl {
namespace {

// Each text is made from the description of a file that the reader had wrong.
TEST(NcclXml, LinksOfGpus) {
  const auto gpu = [](int rank, int sm, std::string_view links) {
    return fmt::format(R"(<pci busid="0000:0{0}:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" )"
                       R"(link_width="16"><gpu dev="{0}" sm="{1}" rank="{0}" gdr="1">{2}</gpu></pci>)",
                       rank, sm, links);
  };
  const auto link = [](std::string_view target, int count, std::string_view tclass) {
    return fmt::format(R"(<nvlink target="{}" count="{}" tclass="{}"/>)", target, count, tclass);
  };
  // The links of GPU `own` to each of `gpus` GPUs.
  const auto to_all = [&](int own, int gpus, int count, std::string_view tclass) {
    std::string links;
    for (int g = 0; g < gpus; ++g)
      if (g != own) links += link(fmt::format("0000:0{}:00.0", g), count, tclass);
    return links;
  };
  const auto all = [&](int gpus, int sm, int count, std::string_view tclass) {
    std::string text;
    for (int g = 0; g < gpus; ++g) text += gpu(g, sm, to_all(g, gpus, count, tclass));
    return System(text);
  };
  const auto xgmi = [](int own, int other, std::string_view gcn) {
    return fmt::format(R"(<pci busid="0000:0{}:00.0" class="0x030000" link_speed="16 GT/s" link_width="16">)"
                       R"(<gpu dev="{}" sm="96" {} rank="{}" gdr="1"><xgmi target="0000:0{}:00.0" count="1" )"
                       R"(tclass="0x030000"/></gpu></pci>)",
                       own, own, gcn, own, other);
  };
  struct Case {
    const char* name;
    std::string text;
    LoadOptions options;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"rows of an NVSwitch's class whose targets are GPUs lead to the switch",
       all(3, 90, 9, "0x068000"),
       {},
       "0--nvswitch 370.8GB/s 300ns\n"
       "1--nvswitch 370.8GB/s 300ns\n"
       "2--nvswitch 370.8GB/s 300ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "2--numa0 48GB/s 500ns\n"},
      {"more NVLinks than the GPU has are counted as what it has",
       System(gpu(0, 70, link("0000:01:00.0", 12, "0x030200")) +
              gpu(1, 70, link("0000:00:00.0", 12, "0x030200"))),
       {},
       "0--1 120GB/s 600ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:100: 12 NVLinks, but an sm70 GPU has 6; counted as 6 in all (2 times)\n"},
      {"all NVLinks to each of several GPUs is an NVSwitch",
       all(3, 90, 18, "0x030200"),
       {},
       "0--nvswitch 370.8GB/s 300ns\n"
       "1--nvswitch 370.8GB/s 300ns\n"
       "2--nvswitch 370.8GB/s 300ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "2--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:100: 36 NVLinks, but an sm90 GPU has 18; counted as 18 in all (3 times)\n"},
      {"links to the NVSwitch, too many in all",
       all(4, 90, 18, "0x068000"),
       {},
       "0--nvswitch 370.8GB/s 300ns\n"
       "1--nvswitch 370.8GB/s 300ns\n"
       "2--nvswitch 370.8GB/s 300ns\n"
       "3--nvswitch 370.8GB/s 300ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "2--numa0 48GB/s 500ns\n"
       "3--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:100: 54 NVLinks, but an sm90 GPU has 18; counted as 18 in all (4 times)\n"},
      {"half of a GPU's NVLinks are lost",
       System(gpu(0, 90, link("fffffff:ff:ff.0", 9, "0x068000")) +
              gpu(1, 90, link("fffffff:ff:ff.0", 18, "0x068000"))),
       {},
       "0--nvswitch 185.4GB/s 300ns\n"
       "1--nvswitch 370.8GB/s 300ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:100: 185.4GB/s to an NVSwitch, to which others of its kind have 370.8GB/s\n"},
      {"NVLinks of a GPU that has none",
       all(2, 89, 4, "0x030200"),
       {},
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:100: 4 NVLinks, but an sm89 GPU has none; left out (2 times)\n"},
      {"one GPU without links beside two with them",
       System(gpu(0, 80, link("0000:01:00.0", 4, "0x030200")) +
              gpu(1, 80, link("0000:00:00.0", 4, "0x030200")) + gpu(2, 80, "")),
       {},
       "0--1 80GB/s 600ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "2--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:492: a GPU without NVLink, while others of its kind have it\n"},
      {"an sm that is not known",
       System(gpu(0, 95, to_all(0, 2, 4, "0x030200")) + gpu(1, 95, to_all(1, 2, 4, "0x030200"))),
       {},
       "0--1 82.4GB/s 600ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:187: sm=\"95\" is no architecture that is known here; 20.6GB/s an NVLink, as NCCL "
       "assumes "
       "(2 times)\n"},
      {"an sm after all that are known keeps the NVLinks that it lists",
       System(gpu(0, 130, link("fffffff:ff:ff.0", 36, "0x068000")) +
              gpu(1, 130, link("fffffff:ff:ff.0", 36, "0x068000")) + gpu(2, 130, "")),
       {},
       "0--nvswitch 1443.6GB/s 300ns\n"
       "1--nvswitch 1443.6GB/s 300ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "2--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:187: sm=\"130\" is no architecture that is known here; 40.1GB/s an NVLink, as NCCL "
       "assumes (3 times)\n"
       "! dir/box.xml:1:502: a GPU without NVLink, while others of its kind have it\n"},
      {"so does an sm between those that have none",
       System(gpu(0, 102, to_all(0, 2, 2, "0x030200")) + gpu(1, 102, to_all(1, 2, 2, "0x030200"))),
       {},
       "0--1 80.2GB/s 600ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:187: sm=\"102\" is no architecture that is known here; 40.1GB/s an NVLink, as NCCL "
       "assumes (2 times)\n"},
      {"a C2C is no link between GPUs",
       System(gpu(0, 100, R"(<c2c bw="44712" count="5"/>)") +
              gpu(1, 100, link("fffffff:ff:ff.0", 18, "0x068000") + R"(<c2c bw="44712" count="5"/>)")),
       {},
       "0--numa0 223.56GB/s 600ns\n"
       "1--numa0 223.56GB/s 600ns\n"
       "1--nvswitch 721.8GB/s 300ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:100: a GPU without NVLink, while others of its kind have it\n"},
      {"nor is an NVLink to the CPU",
       System(gpu(0, 70, link("0000:cc:00.0", 3, "0x068001")) +
              gpu(1, 70, link("0000:02:00.0", 3, "0x030200")) +
              gpu(2, 70, link("0000:01:00.0", 3, "0x030200"))),
       {},
       "1--2 60GB/s 600ns\n"
       "0--numa0 60GB/s 600ns\n"
       "0--numa0 48GB/s 500ns\n"
       "1--numa0 48GB/s 500ns\n"
       "2--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:100: a GPU without NVLink, while others of its kind have it\n"},
      {"xGMI without gcn, as RCCL wrote it",
       System(xgmi(0, 1, "") + xgmi(1, 0, "")),
       {},
       "0--1 24GB/s 600ns\n"
       "0--numa0 24GB/s 500ns\n"
       "1--numa0 24GB/s 500ns\n"
       "! dir/box.xml:1:100: xgmi, but no gcn; 24GB/s a link assumed, as RCCL does; hint: --gpu-arch=gfx90a "
       "(2 times)\n"},
      {"xGMI without gcn, and a flag", System(xgmi(0, 1, "") + xgmi(1, 0, "")), Arch("gfx90a"),
       "0--1 36GB/s 600ns\n"
       "0--numa0 24GB/s 500ns\n"
       "1--numa0 24GB/s 500ns\n"},
      {"parts of a GPU share its NVLinks and its C2C",
       System(
           R"(<pci busid="0000:00:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="2">)"
           R"(<gpu dev="0" sm="107" mlopart="0" rank="0"><nvlink target="fffffff:ff:ff.0" count="36" tclass="0x068000"/>)"
           R"(<c2c bw="56376" count="7"/></gpu>)"
           R"(<gpu dev="0" sm="107" mlopart="1" rank="1"><nvlink target="fffffff:ff:ff.0" count="36" tclass="0x068000"/>)"
           R"(<c2c bw="56376" count="7"/></gpu></pci>)"),
       {},
       "shared-00--numa0 394632MB/s 600ns\n"
       "0--nvswitch 721.8GB/s 300ns\n"
       "1--nvswitch 721.8GB/s 300ns\n"
       "shared-00--numa0 12GB/s 500ns\n"
       "0--shared-00 2618GB/s 0ns\n"
       "1--shared-00 2618GB/s 0ns\n"},
      {"parts of GPUs with links between them",
       System(
           R"(<pci busid="0000:00:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="2">)"
           R"(<gpu dev="0" sm="100" mlopart="0" rank="0"><nvlink target="0000:02:00.0" count="18" tclass="0x030200"/></gpu>)"
           R"(<gpu dev="0" sm="100" mlopart="1" rank="1"><nvlink target="0000:02:00.0" count="18" tclass="0x030200"/></gpu></pci>)" +
           gpu(2, 100, link("0000:00:00.0", 18, "0x030200"))),
       {},
       "0--2 360.9GB/s 600ns\n"
       "1--2 360.9GB/s 600ns\n"
       "shared-00--numa0 12GB/s 500ns\n"
       "0--shared-00 2618GB/s 0ns\n"
       "1--shared-00 2618GB/s 0ns\n"
       "2--numa0 48GB/s 500ns\n"},
      {"one rank is left of those that shared a GPU",
       System(
           R"(<pci busid="0000:00:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">)"
           R"(<gpu dev="0" sm="80" rank="0"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/></gpu>)"
           R"(<gpu dev="0" sm="80"/></pci>)" +
           gpu(2, 80, link("0000:00:00.0", 4, "0x030200"))),
       {},
       "0--2 80GB/s 600ns\n0--numa0 24GB/s 500ns\n2--numa0 48GB/s 500ns\n"
       "! dir/box.xml:1:187: ranks are not 0..1; renumbered in their order\n"
       "! dir/box.xml:1:282: a <gpu> without rank among others with one; left out, as NCCL does\n"},
      {"ranks that share a GPU share its links",
       System(
           R"(<pci busid="0000:00:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">)"
           R"(<gpu dev="0" sm="80" rank="0"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/></gpu>)"
           R"(<gpu dev="0" sm="80" rank="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/></gpu></pci>)" +
           gpu(2, 80, link("0000:00:00.0", 4, "0x030200"))),
       {},
       "2--shared-00 80GB/s 600ns\n"
       "shared-00--numa0 24GB/s 500ns\n"
       "0--shared-00 5000GB/s 0ns\n"
       "1--shared-00 5000GB/s 0ns\n"
       "2--numa0 48GB/s 500ns\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(Read(c.text, c.options), c.expected) << c.name;
}

// The partitions of an AMD device are functions of one slot. Dumps list its links once, or with each
// partition, and name any of the other device's partitions.
TEST(NcclXml, PartitionsOfOneDeviceShareItsLinks) {
  const auto dump = [](int listing, int named) {
    std::string text;
    for (int device = 0; device < 2; ++device)
      for (int p = 0; p < 3; ++p) {
        std::string links;
        for (int other = 0; other < 2 && p < listing; ++other)
          for (int q = 0; q < named; ++q)
            if (device != other || p != q)
              links +=
                  fmt::format(R"(<xgmi target="0000:{}0:00.{}" count="1" tclass="0x120000"/>)", other + 2, q);
        text += fmt::format(
            R"(<pci busid="0000:{}0:00.{}" class="0x120000" link_speed="32.0 GT/s PCIe" )"
            R"(link_width="16"><gpu dev="{}" sm="94" gcn="gfx942" rank="{}" gdr="1">{}</gpu></pci>)",
            device + 2, p, device * 3 + p, device * 3 + p, links);
      }
    return System(text);
  };
  const std::string expected =
      "shared-20--shared-30 48GB/s 600ns\n"
      "shared-20--numa0 48GB/s 500ns\n"
      "0--shared-20 5000GB/s 0ns\n"
      "1--shared-20 5000GB/s 0ns\n"
      "2--shared-20 5000GB/s 0ns\n"
      "shared-30--numa0 48GB/s 500ns\n"
      "3--shared-30 5000GB/s 0ns\n"
      "4--shared-30 5000GB/s 0ns\n"
      "5--shared-30 5000GB/s 0ns\n";
  for (const int listing : {1, 2, 3})
    for (const int named : {1, 3}) EXPECT_EQ(Read(dump(listing, named)), expected) << listing << " " << named;
}

TEST(NcclXml, NicsAndCpus) {
  constexpr const char* kNic =
      R"(<nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" gdr="1"/></nic>)";
  const std::string second_cpu = R"(</cpu><cpu numaid="1" arch="x86_64" vendor="AuthenticAMD">)";
  const auto per_switch = [](int gpus) {
    LoadOptions options;
    options.gpus_per_switch = gpus;
    return options;
  };
  struct Case {
    const char* name;
    std::string text;
    LoadOptions options;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"one NIC under two CPUs",
       System(Card(0) + kNic + second_cpu + Card(1) + kNic),
       {},
       "0--numa0 24GB/s 500ns\n"
       "mlx5_0--numa0 25GB/s 0ns\n"
       "1--numa1 24GB/s 500ns\n"
       "numa0--numa1 16GB/s 500ns\n"
       "! dir/box.xml:1:519: net mlx5_0 is listed before with the same dev, port and guid; one NIC, where it "
       "is listed first\n"},
      {"a NIC of the same name with another guid",
       System(Card(0) + kNic +
              R"(<nic><net name="mlx5_0" dev="1" speed="200000" port="1" guid="0x2"/></nic>)"),
       {},
       "0--numa0 24GB/s 500ns\n"
       "mlx5_0--numa0 25GB/s 0ns\n"
       "mlx5_0-2--numa0 25GB/s 0ns\n"},
      {"a nic without net",
       System(Card(0) + R"(<pci busid="0000:60:00.0" class="0x020000"><nic/></pci><nic></nic>)" + kNic),
       {},
       "0--numa0 24GB/s 500ns\n"
       "mlx5_0--numa0 25GB/s 0ns\n"
       "! dir/box.xml:1:280: a <nic> without <net>, so without a name and a speed (2 times)\n"},
      {"GPUs by flag under CPUs, where there is no switch",
       System(R"(<pci busid="0000:60:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"/>)" +
              second_cpu +
              R"(<pci busid="0000:61:00.0" class="0x020000" link_speed="8.0 GT/s PCIe" link_width="16"/>)"),
       per_switch(2),
       "nic-60--numa0 24GB/s 500ns\n"
       "nic-61--numa1 12GB/s 500ns\n"
       "0--numa0 24GB/s 500ns\n"
       "1--numa0 24GB/s 500ns\n"
       "2--numa1 12GB/s 500ns\n"
       "3--numa1 12GB/s 500ns\n"
       "numa0--numa1 16GB/s 500ns\n"
       "! dir/box.xml:1:1: 4 GPUs that the file does not list, 2 on each <cpu>, as --gpus-per-switch says\n"
       "! dir/box.xml:1:1: no <gpu> elements, so no NVLinks: only PCIe joins the GPUs (the library's "
       "machines have both)\n"
       "! dir/box.xml:1:100: a NIC without <net>, so without a speed; that of its PCIe link assumed (2 "
       "times)\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(Read(c.text, c.options), c.expected) << c.name;
}

// Two DGX-like hosts in one file: busids repeat, and each host keeps its own links and its own NVSwitch.
TEST(NcclXml, HostsNumberTheirOwnBuses) {
  const auto host = [](std::string_view hash, int rank, std::string_view arch, std::string_view sm,
                       std::string_view links) {
    std::string text = fmt::format(R"(<cpu numaid="0" host_hash="{}" arch="{}">)", hash, arch);
    for (int g = 0; g < 2; ++g)
      text += fmt::format(R"(<pci busid="0000:0{}:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" )"
                          R"(link_width="16"><gpu dev="{}" sm="{}" rank="{}">)",
                          g, g, sm, rank + g) +
              fmt::format(fmt::runtime(links), 1 - g) + "</gpu></pci>";
    return text + "</cpu>";
  };
  const auto hosts = [&](std::string_view arch, std::string_view sm, std::string_view links) {
    return "<system version=\"1\">" + host("0xa", 0, arch, sm, links) + host("0xb", 2, arch, sm, links) +
           "</system>";
  };
  EXPECT_EQ(Read(hosts("x86_64", "80", R"(<nvlink target="0000:0{}:00.0" count="4" tclass="0x030200"/>)")),
            "h0/0--h0/1 80GB/s 600ns\n"
            "h1/0--h1/1 80GB/s 600ns\n"
            "h0/0--h0/numa0 24GB/s 500ns\n"
            "h0/1--h0/numa0 24GB/s 500ns\n"
            "h1/0--h1/numa0 24GB/s 500ns\n"
            "h1/1--h1/numa0 24GB/s 500ns\n");
  EXPECT_EQ(Read(hosts("x86_64", "80", R"(<nvlink target="fffffff:ff:ff.0" count="12" tclass="0x068000"/>)")),
            "h0/0--h0/nvswitch 240GB/s 300ns\n"
            "h0/1--h0/nvswitch 240GB/s 300ns\n"
            "h1/0--h1/nvswitch 240GB/s 300ns\n"
            "h1/1--h1/nvswitch 240GB/s 300ns\n"
            "h0/0--h0/numa0 24GB/s 500ns\n"
            "h0/1--h0/numa0 24GB/s 500ns\n"
            "h1/0--h1/numa0 24GB/s 500ns\n"
            "h1/1--h1/numa0 24GB/s 500ns\n");
  EXPECT_EQ(Read(hosts("arm64", "90", R"(<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>)")),
            "h0/0--nvswitch 370.8GB/s 300ns\n"
            "h0/1--nvswitch 370.8GB/s 300ns\n"
            "h1/0--nvswitch 370.8GB/s 300ns\n"
            "h1/1--nvswitch 370.8GB/s 300ns\n"
            "h0/0--h0/numa0 24GB/s 500ns\n"
            "h0/1--h0/numa0 24GB/s 500ns\n"
            "h1/0--h1/numa0 24GB/s 500ns\n"
            "h1/1--h1/numa0 24GB/s 500ns\n");
}

TEST(NcclConstants, Tables) {
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("sm100")), 40'100'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("sm_121")), 40'100'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("sm90")), 20'600'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("sm86")), 12'000'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("sm80")), 20'000'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("sm60")), 18'000'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("gfx90a")), 36'000'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(*ParseGpuArch("gfx942")), 48'000'000'000);
  EXPECT_EQ(GpuLinkBytesPerS(GpuArchOfGcn("908")), 24'000'000'000);
  for (const auto& [vendor, device, arch] :
       {std::tuple(0x10de, 0x1db5, "sm70"), std::tuple(0x10de, 0x1eb8, "sm75"),
        std::tuple(0x10de, 0x20b0, "sm80"), std::tuple(0x10de, 0x2237, "sm86"),
        std::tuple(0x10de, 0x2330, "sm90"), std::tuple(0x10de, 0x2342, "sm90"),
        std::tuple(0x10de, 0x26b9, "sm89"), std::tuple(0x10de, 0x27b8, "sm89"),
        std::tuple(0x10de, 0x2901, "sm100"), std::tuple(0x1002, 0x740c, "gfx90a"),
        std::tuple(0x1002, 0x74a1, "gfx942")})
    EXPECT_EQ(ToString(GpuArchOfPci(static_cast<uint16_t>(vendor), static_cast<uint16_t>(device)).value()),
              arch);
  EXPECT_FALSE(GpuArchOfPci(0x15b3, 0x20b0).has_value());
  const auto nvlinks = [](const char* arch) { return NvlinksOf(*ParseGpuArch(arch)); };
  EXPECT_EQ(nvlinks("sm60"), 4);
  EXPECT_EQ(nvlinks("sm70"), 6);
  EXPECT_EQ(nvlinks("sm80"), 12);
  EXPECT_EQ(nvlinks("sm86"), 4);
  EXPECT_EQ(nvlinks("sm89"), 0);
  EXPECT_EQ(nvlinks("sm95"), std::nullopt);
  EXPECT_EQ(nvlinks("sm130"), std::nullopt);
  EXPECT_EQ(nvlinks("sm121"), 0);
  EXPECT_EQ(nvlinks("sm103"), 18);
  EXPECT_EQ(nvlinks("sm52"), 0);
  EXPECT_EQ(nvlinks("gfx942"), std::nullopt);
  struct Case {
    const char* text;
    int64_t per_lane;
    bool known, present;
  };
  for (const Case& c :
       {Case{"16 GT/s", 1'500'000'000, true, true}, Case{"16.0 GT/s PCIe", 1'500'000'000, true, true},
        Case{"2.5 GT/s", 187'500'000, true, true}, Case{"64.0 GT/s PCIe", 6'000'000'000, true, true},
        Case{"32 GT/s PCIe/s", 3'000'000'000, false, true}, Case{"", 750'000'000, false, false},
        Case{"Unknown speed", 750'000'000, false, false}}) {
    const PcieSpeed speed = ParsePcieSpeed(c.text);
    EXPECT_EQ(speed.bytes_per_s_per_lane, c.per_lane) << c.text;
    EXPECT_EQ(speed.known, c.known) << c.text;
    EXPECT_EQ(speed.present, c.present) << c.text;
  }
  const auto cpu = [](const char* arch, const char* vendor, int32_t family, int32_t model) {
    return CpuLinkOf(CpuModel{arch, vendor, family, model}).bytes_per_s;
  };
  EXPECT_EQ(cpu("x86_64", "GenuineIntel", 6, 79), 6'000'000'000);
  EXPECT_EQ(cpu("x86_64", "GenuineIntel", 6, 85), 10'000'000'000);
  EXPECT_EQ(cpu("x86_64", "GenuineIntel", 6, 143), 22'000'000'000);
  EXPECT_EQ(cpu("x86_64", "GenuineIntel", 6, 207), 40'000'000'000);
  EXPECT_EQ(cpu("x86_64", "AuthenticAMD", 23, 49), 16'000'000'000);
  EXPECT_EQ(cpu("ppc64", "", 0, 0), 32'000'000'000);
  EXPECT_EQ(cpu("arm64", "", 0, 0), 6'000'000'000);
  EXPECT_EQ(cpu("x86_64", "  Shanghai  ", 7, 0x5b), 9'000'000'000);
  EXPECT_FALSE(CpuLinkOf(CpuModel{}).known);
}

}  // namespace
}  // namespace xccl
