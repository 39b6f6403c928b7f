// Tests the examples of docs/topologies.md: every XML block has the counts stated below it, and every short
// form of the table and every name of the library section loads. Tests that docs/machines.md has the library.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "base/files.h"
#include "topologies/load/load.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

std::string Document(const std::string& file = "docs/topologies.md") {
  const StatusOr<std::string> text = ReadFile(file);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

TEST(TopologiesDocument, XmlBlocksHaveTheCountsUnderThem) {
  const std::string document = Document();
  int blocks = 0;
  for (size_t at = document.find("```xml\n"); at != std::string::npos;
       at = document.find("```xml\n", at + 1)) {
    const size_t first = at + 7, last = document.find("```\n", first);
    ASSERT_NE(last, std::string::npos);
    const StatusOr<Topology> topology = ReadNativeXml(document.substr(first, last - first), "topologies.md");
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    const size_t counts = last + 4;
    EXPECT_EQ(document.substr(counts, document.find('\n', counts) - counts),
              fmt::format("({} ranks, {} hosts, {} nodes, {} links)", topology->num_ranks(),
                          topology->num_hosts(), topology->num_nodes(), topology->num_links()));
    ++blocks;
  }
  EXPECT_EQ(blocks, 5);
}

TEST(TopologiesDocument, ShortFormsOfTheTableLoad) {
  const std::string document = Document();
  const std::regex row("\n\\| `([a-z-]+:[^`]+)` \\|");
  int forms = 0;
  for (std::sregex_iterator match(document.begin(), document.end(), row), end; match != end;
       ++match, ++forms) {
    const StatusOr<Topology> topology = LoadTopology((*match)[1].str());
    EXPECT_TRUE(topology.ok()) << topology.status().message();
  }
  EXPECT_EQ(forms, 10);
}

TEST(TopologiesDocument, NamesTheLibrary) {
  const std::string document = Document();
  for (const std::string& name : LibraryNames()) {
    if (name.starts_with("rail-")) continue;  // the document lists these as a range
    EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name;
  }
}

// hint: tools/machines makes the page anew.
TEST(MachinesDocument, HasEveryMachineOfTheLibraryAsItIs) {
  const std::string document = Document("docs/machines.md");
  for (const std::string& name : LibraryNames()) {
    const StatusOr<Topology> topology = LoadTopology(name);
    ASSERT_TRUE(topology.ok()) << topology.status().message();
    EXPECT_NE(document.find(fmt::format("\n| [{0}](#{0}) | {1} | {2} | {3}", name, topology->num_ranks(),
                                        topology->num_hosts(), topology->gpu_arch())),
              std::string::npos)
        << name;
    EXPECT_NE(document.find(fmt::format("\n## {}\n\n{}\n", name, topology->spec().source)), std::string::npos)
        << name;
    EXPECT_NE(document.find(fmt::format("(pictures/machines/{}.svg)", name)), std::string::npos) << name;
    EXPECT_NE(
        Document(fmt::format("docs/pictures/machines/{}.svg", name)).find(fmt::format("<title>{}, ", name)),
        std::string::npos);
  }
}

}  // namespace
}  // namespace xccl
