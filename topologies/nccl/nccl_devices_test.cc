// Devices of dumps that are not what they seem: display adapters, merged NICs, bridges with pcilinks, devices
// without a class; and files whose root stands behind other text.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "topologies/nccl/nccl_dumps_for_tests.h"

namespace xccl {
namespace {

TEST(NcclXml, DevicesThatAreNotWhatTheySeem) {
  const auto device = [](int bus, std::string_view pci_class, std::string_view vendor, int lanes = 16) {
    return fmt::format(R"(<pci busid="0000:{:02x}:00.0" class="{}" vendor="{}" link_speed="32.0 GT/s PCIe" )"
                       R"(link_width="{}"/>)",
                       bus, pci_class, vendor, lanes);
  };
  struct Case {
    const char* name;
    std::string text;
    LoadOptions options;
    std::string expected;
  };
  const std::string no_links =
      "! dir/box.xml:1:1: no <gpu> elements, so no NVLinks: only PCIe joins the GPUs (the library's machines "
      "have both)\n";
  const std::vector<Case> cases = {
      {"the display adapter of a management controller is no rank",
       System(device(3, "0x030000", "0x1a03", 1) + device(0x11, "0x030200", "0x10de") +
              device(0x21, "0x030200", "0x10de")),
       {},
       "0--numa0 48GB/s 500ns\n1--numa0 48GB/s 500ns\n" + no_links +
           "! dir/box.xml:1:100: a display adapter of vendor 0x1a03, which is no GPU here; left out\n"},
      {"one that states no vendor may be",
       System(device(3, "0x030000", "") + device(0x11, "0x030200", "0x10de")),
       {},
       "0--numa0 48GB/s 500ns\n1--numa0 48GB/s 500ns\n" + no_links +
           "! dir/box.xml:1:100: a display adapter without a vendor, taken for a GPU like the others\n"},
      {"nor that of a CPU",
       System(device(3, "0x030000", "0x8086") + device(0x11, "0x038000", "0x1002") +
              device(0x21, "0x030200", " 0X1002")),
       {},
       "0--numa0 48GB/s 500ns\n1--numa0 48GB/s 500ns\n" + no_links +
           "! dir/box.xml:1:100: a display adapter of vendor 0x8086, which is no GPU here; left out\n"},
      {"other vendors' GPUs where there are no others",
       System(device(3, "0x030000", "0x102b") + device(0x11, "0x030200", "0x8086") +
              device(0x21, "0x030200", "0x8086")),
       {},
       "0--numa0 48GB/s 500ns\n1--numa0 48GB/s 500ns\n" + no_links +
           "! dir/box.xml:1:100: a display adapter of vendor 0x102b, which is no GPU here; left out\n"},
      {"GPUs by their bus ids, in the order of the flag",
       System(R"(<pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/></cpu><cpu numaid="1" arch="arm64">)"
              R"(<pci busid="0000:00:1A.0"/>)"),
       BusIds("0000:00:1a.0,00:16.0,"),
       "1--numa0 12GB/s 500ns\nnic-00.17.0--numa0 12GB/s 500ns\n0--numa1 12GB/s 500ns\n"
       "numa0--numa1 6GB/s 500ns\n" +
           no_links +
           "! dir/box.xml:1:100: a PCI device without link_speed; 8 GT/s assumed, as NCCL does (3 times)\n"
           "! dir/box.xml:1:127: a device without class; taken for a NIC\n"
           "! dir/box.xml:1:127: a NIC without <net>, so without a speed; that of its PCIe link assumed\n"},
      {"bus ids of a file that lists its GPUs", System(Card(0)), BusIds("0000:00:00.0"),
       "0--numa0 24GB/s 500ns\n"
       "! dir/box.xml:1:1: the file lists its GPUs; --gpu-busids=0000:00:00.0 has no effect\n"},
      {"NICs that NCCL has merged are not counted again",
       System(
           Card(0) +
           R"(<pci busid="0000:1c:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"><nic>)"
           R"(<net name="mlx5_0" dev="0" speed="100000" port="1" gdr="1" net="0" gin="1"/></nic></pci>)"
           R"(<pci busid="0000:1d:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"><nic>)"
           R"(<net name="mlx5_1" dev="1" port="1" net="0x0" rma="1"/>)"
           R"(<net name="mlx5_2" dev="3" port="2" net="0"/></nic></pci>)"
           R"(<nic><net name="mlx5_0+mlx5_1" dev="2" speed="200000" port="1" gdr="1" net="1" coll="0"/></nic>)"),
       {},
       "0--numa0 24GB/s 500ns\nmlx5_0+mlx5_1--numa0 25GB/s 0ns\n"},
      {"a bridge with one device and a pcilink stays",
       System(R"(<pci busid="0000:0a:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">)"
              R"(<pcilink target="0000:0b:00.0"/>)" +
              Card(0) +
              R"(</pci><pci busid="0000:0b:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">)" +
              Card(1) +
              R"(</pci><pci busid="0000:0c:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">)" +
              Card(2) + R"(<pcilink target="0000:0d:00.0"/></pci>)"),
       {},
       "pci-0a--numa0 48GB/s 500ns\n0--pci-0a 24GB/s 500ns\npci-0b--numa0 48GB/s 500ns\n"
       "1--pci-0b 24GB/s 500ns\n2--numa0 24GB/s 500ns\npci-0a->pci-0b 5000GB/s 500ns\n"
       "! dir/box.xml:1:795: a pcilink to 0000:0d:00.0, which is no other switch of this file; left out\n"},
      {"an architecture of AMD's that is not known",
       System(R"(<pci busid="0000:00:00.0" class="0x038000" link_speed="16 GT/s">)"
              R"(<gpu dev="0" gcn="gfx1300" rank="0"/></pci>)"),
       {},
       "0--numa0 24GB/s 500ns\n! dir/box.xml:1:164: gcn=\"gfx1300\" is no architecture that is known here; "
       "24GB/s "
       "an xGMI link, as RCCL assumes\n"},
      {"a pcilink of the lower level of a Broadcom chip",
       System(
           R"(<pci busid="0000:0a:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0100" link_speed="32 GT/s" link_width="16">)"
           R"(<pci busid="0000:0b:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x1100" link_speed="32 GT/s" link_width="16">)"
           R"(<pcilink target="0000:0c:00.0"/><pcilink target="0000:0a:00.0"/>)" +
           Card(0) +
           R"(</pci></pci><pci busid="0000:0c:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">)" +
           Card(1) + "</pci>"),
       {},
       "pci-0a--numa0 48GB/s 500ns\n0--pci-0a 24GB/s 500ns\npci-0c--numa0 48GB/s 500ns\n"
       "1--pci-0c 24GB/s 500ns\npci-0a->pci-0c 5000GB/s 500ns\n"},
      {"what is not known inside a device",
       System(
           R"(<pci busid="0000:00:00.0" class="0x030200" link_speed="16 GT/s"><apu/><gpu dev="0" sm="89" rank="0"/></pci>)"
           R"(<pci busid="0000:01:00.0" class="0x020000" link_speed="16 GT/s"><nic><gin/><net name="a" dev="0" speed="8000"/>)"
           R"(</nic></pci><pci busid="0000:02:00.0" class="0x010802"><disk/></pci>)"),
       {},
       "0--numa0 24GB/s 500ns\na--numa0 1GB/s 500ns\n"
       "! dir/box.xml:1:164: unknown element <apu> left out\n"
       "! dir/box.xml:1:276: unknown element <gin> left out\n"
       "! dir/box.xml:1:373: unknown element <disk> left out\n"},
      {"a CPU of no NUMA node does not take the name of node 0",
       System(Card(0) + R"(</cpu><cpu numaid="-1" arch="x86_64" vendor="AuthenticAMD">)" + Card(1)),
       {},
       "0--numa0 24GB/s 500ns\n1--cpu 24GB/s 500ns\nnuma0--cpu 16GB/s 500ns\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(Read(c.text, c.options), c.expected) << c.name;
}

// A DOCTYPE, the prefix of a namespace and a log before the root do not hide what a file is.
TEST(NcclXml, RootsBehindOtherText) {
  const std::string plain = System(Card(0));
  const std::string links = Read(plain);
  EXPECT_EQ(Read("<!DOCTYPE system [<!ELEMENT system (cpu*)> <!ENTITY e '>'>]>" + plain), links);
  const std::string prefixed =
      R"(<n:system version="1" xmlns:n="urn:x"><n:cpu numaid="0" arch="arm64"><n:pci busid="0000:00:00.0" )"
      R"(link_speed="16 GT/s"><n:gpu dev="0" sm="89" rank="0"/></n:pci></n:cpu></n:system>)";
  EXPECT_EQ(Read(prefixed), links);
  EXPECT_EQ(Read("NCCL INFO a < b\n" + plain), "dir/box.xml:1:14: malformed XML: '<' that starts no tag");
  EXPECT_EQ(Read("NCCL INFO\n" + plain),
            "dir/box.xml:1:1: text beside <system>; expected nothing but comments");
}

}  // namespace
}  // namespace xccl
