// Every number of a dump, in every spelling that NCCL reads, that it takes for 0, or that is out of range.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <clocale>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/nccl/nccl_dumps_for_tests.h"

namespace xccl {
namespace {

constexpr std::string_view kDump =
    R"(<system version="1"><cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">)"
    R"(<pci busid="0000:01:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="16 GT/s" link_width="8">)"
    R"(<gpu dev="2" sm="70" rank="0" gdr="1"><nvlink target="0000:02:00.0" count="3" tclass="0x030200"/>)"
    R"(<c2c bw="43125" count="9"/></gpu></pci>)"
    R"(<pci busid="0000:02:00.0" class="0x030200" link_speed="16 GT/s" link_width="16">)"
    R"(<gpu dev="1" sm="70" rank="1" gdr="1"><nvlink target="0000:01:00.0" count="3" tclass="0x030200"/></gpu></pci>)"
    R"(<pci busid="0000:03:00.0" class="0x020000" link_speed="16 GT/s" link_width="4"><nic>)"
    R"(<net name="a" dev="5" speed="20000" port="7" rail="11" plane="12" guid="0x1" maxconn="13" gdr="1" net="1"/>)"
    R"(</nic></pci></cpu><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">)"
    R"(<nic><net name="b" dev="4" speed="30000" port="7" gdr="0" latency="2.75"/></nic></cpu></system>)";

struct Attribute {
  const char* name;
  const char* text;  // as it stands in the dump, for the first time
};
constexpr Attribute kIntegers[] = {
    {"numaid", "1"}, {"familyid", "6"}, {"modelid", "143"}, {"link_width", "8"}, {"dev", "2"},
    {"sm", "70"},    {"rank", "0"},     {"gdr", "0"},       {"count", "3"},      {"bw", "43125"},
    {"count", "9"},  {"dev", "5"},      {"speed", "20000"}, {"port", "7"},       {"rail", "11"},
    {"plane", "12"}, {"maxconn", "13"}, {"net", "1"}};

std::string With(const Attribute& attribute, std::string_view text) {
  std::string dump(kDump);
  const std::string old = fmt::format(" {}=\"{}\"", attribute.name, attribute.text);
  const size_t at = dump.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return dump.replace(at, old.size(), fmt::format(" {}=\"{}\"", attribute.name, text));
}

// The links that are read, and the warnings.
std::pair<std::string, std::string> LinksAndWarnings(const std::string& dump) {
  const std::string all = Read(dump);
  const size_t warnings = all.find("! ");
  return {all.substr(0, warnings), warnings == std::string::npos ? "" : all.substr(warnings)};
}

TEST(NcclAttributes, IntegersInEverySpelling) {
  const auto [plain, no_warning] = LinksAndWarnings(std::string(kDump));
  EXPECT_EQ(no_warning, "");
  EXPECT_NE(plain.find("2--1 60GB/s"), std::string::npos) << plain;
  for (const Attribute& attribute : kIntegers) {
    const int value = std::stoi(attribute.text);
    struct Spelling {
      std::string text;
      bool plain;
    };
    for (const Spelling& spelling :
         {Spelling{fmt::format(" {}", value), true}, Spelling{fmt::format("{}\t ", value), true},
          Spelling{fmt::format("+{}", value), true}, Spelling{fmt::format("{:#x}", value), true},
          Spelling{fmt::format("0X{:X}", value), true}, Spelling{fmt::format("0{:o}", value), false},
          Spelling{fmt::format("{}x", value), false}, Spelling{fmt::format("{}.0", value), false},
          Spelling{fmt::format("{} lanes", value), false}}) {
      SCOPED_TRACE(fmt::format("{}=\"{}\"", attribute.name, spelling.text));
      const auto [links, warnings] = LinksAndWarnings(With(attribute, spelling.text));
      EXPECT_EQ(links, plain);
      // Nothing is made of maxconn.
      if (attribute.name == std::string("maxconn")) continue;
      const std::string warning = fmt::format("is no plain number; read as {}", value);
      EXPECT_EQ(warnings.find(warning) != std::string::npos, !spelling.plain) << warnings;
    }
  }
}

TEST(NcclAttributes, EmptyNumbersAndTextsAreZeroOrAbsent) {
  for (const Attribute& attribute : kIntegers)
    for (const char* text : {"", " ", "none", "x1"}) {
      SCOPED_TRACE(fmt::format("{}=\"{}\"", attribute.name, text));
      const StatusOr<Topology> topology = ReadNcclXml(With(attribute, text), "box.xml");
      if (attribute.name == std::string("bw")) {
        EXPECT_EQ(topology.status().message(), "box.xml:1:308: c2c: no bw; expected the MB/s of one link");
      } else if (attribute.name == std::string("sm")) {
        EXPECT_EQ(
            topology.status().message(),
            "box.xml:1:100: gpu: nvlink, but no sm; expected the GPU's architecture; hint: --gpu-arch=sm90");
      } else {
        EXPECT_TRUE(topology.ok()) << topology.status().message();
      }
    }
}

TEST(NcclAttributes, ClassesInEverySpelling) {
  const auto [plain, no_warning] = LinksAndWarnings(std::string(kDump));
  for (const char* text : {" 0x030200", "0X030200", "030200", "0x30200"}) {
    EXPECT_EQ(LinksAndWarnings(With({"tclass", "0x030200"}, text)).first, plain) << text;
    EXPECT_EQ(LinksAndWarnings(With({"class", "0x030200"}, text)).first, plain) << text;
  }
  for (const char* text : {"0x068000", "0X068000 ", "68000", "068000"})
    EXPECT_NE(LinksAndWarnings(With({"tclass", "0x030200"}, text)).first.find("2--nvswitch"),
              std::string::npos)
        << text;
}

// No slot has more than 32 lanes. sysfs writes 0, 63 and 255 where it does not know.
TEST(NcclAttributes, WidthsThatNoSlotHas) {
  const auto card = [](std::string_view width) {
    return Read(System(
        fmt::format(R"(<pci busid="0000:01:00.0" class="0x030200" link_speed="16 GT/s" link_width="{}">)"
                    R"(<gpu dev="0" sm="89" rank="0"/></pci>)",
                    width)));
  };
  for (const char* width : {"63", "255", "33", "1024", "0xff", "-1", "-16", "99999999999999999999"})
    EXPECT_EQ(card(width),
              fmt::format("0--numa0 24GB/s 500ns\n! dir/box.xml:1:100: link_width=\"{}\"; 16 lanes "
                          "assumed, as NCCL does for 0\n",
                          width));
  for (const char* width : {"0", "", " ", "x16", "0x0", "Unknown"})
    EXPECT_EQ(
        card(width),
        fmt::format(
            "0--numa0 24GB/s 500ns\n! dir/box.xml:1:100: link_width=\"{}\"; 16 lanes assumed, as NCCL does\n",
            width));
  EXPECT_EQ(card("32"), "0--numa0 48GB/s 500ns\n");
  EXPECT_EQ(card("1"), "0--numa0 1.5GB/s 500ns\n");
  EXPECT_EQ(
      card("8x"),
      "0--numa0 12GB/s 500ns\n! dir/box.xml:1:100: link_width=\"8x\" is no plain number; read as 8, as NCCL "
      "does\n");
}

// The dump that NCCL writes in a virtual machine whose bus ids have no path in /sys.
TEST(NcclAttributes, NeitherSpeedNorWidth) {
  EXPECT_EQ(
      Read(
          R"(<system version="1"><cpu numaid="-1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">)"
          R"(<pci busid="0000:00:04.0" class="0x030200" link_speed="" link_width="">)"
          R"(<gpu dev="0" sm="70" rank="0" gdr="0"/></pci>)"
          R"(<pci busid="0000:00:0c.0" class="0x020000" link_speed="" link_width=""><nic>)"
          R"(<net name="eth0" dev="0" speed="-1" port="0" latency="0" gdr="0"/></nic></pci></cpu></system>)"),
      "0--cpu 12GB/s 500ns\neth0--cpu 1.25GB/s 500ns\n"
      "! dir/box.xml:1:100: link_width=\"\"; 16 lanes assumed, as NCCL does (2 times)\n"
      "! dir/box.xml:1:100: link_speed=\"\" is no PCIe speed; 8 GT/s assumed, as NCCL does (2 times)\n"
      "! dir/box.xml:1:292: net without speed; 10000 Mbit/s assumed, as NCCL does\n");
}

TEST(NcclAttributes, LatenciesInEveryLocale) {
  const std::string expected = LinksAndWarnings(std::string(kDump)).first;
  EXPECT_NE(expected.find("b--numa0 3.75GB/s 2.75us"), std::string::npos) << expected;
  for (const char* text : {" 2.75", "+2.75", "275e-2", "2.750000", "2.75us"})
    EXPECT_EQ(LinksAndWarnings(With({"latency", "2.75"}, text)).first, expected) << text;
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8"})
    if (std::setlocale(LC_ALL, locale) != nullptr) {
      EXPECT_EQ(LinksAndWarnings(std::string(kDump)).first, expected);
    }
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(LinksAndWarnings(With({"latency", "2.75"}, "2,75")).second,
            "! dir/box.xml:1:829: net: latency=\"2,75\" is no plain number; read as 2, as NCCL does\n");
}

TEST(NcclAttributes, OutOfRange) {
  const auto refused = [](const Attribute& attribute, std::string_view text) {
    return ReadNcclXml(With(attribute, text), "box.xml").status().message();
  };
  EXPECT_EQ(refused({"count", "3"}, "-1"),
            "box.xml:1:249: nvlink: count=\"-1\": expected a whole number from 0 to 1048576");
  EXPECT_EQ(refused({"numaid", "1"}, "0x7fffffff"),
            "box.xml:1:21: cpu: numaid=\"0x7fffffff\": expected a whole number up to 1048576");
  EXPECT_EQ(refused({"sm", "70"}, "1000000"),
            "box.xml:1:211: gpu: sm=\"1000000\": expected a whole number up to 100000");
}

}  // namespace
}  // namespace xccl
