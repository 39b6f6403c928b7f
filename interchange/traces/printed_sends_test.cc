#include "interchange/traces/printed_sends.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

namespace xccl {
namespace {

// As ForestColl prints tuples: "12" as a text would come before "2".
TEST(ForestCollXml, RanksAreInTheOrderOfTheNumbersInTheirNames) {
  const PrintedSends printed = ReadForestCollXml(R"xml(<Algo nchunkspernode="3">
  <tree root="(0, 'GPU', 12)" index="0" nchunks="3" height="1">
    <send src="(0, 'GPU', 12)" dst="(0, 'GPU', 2)" path="(0, 'GPU', 12),(0, 'GPU', 2)"/>
  </tree>
  <tree root="(0, 'GPU', 2)" index="0" nchunks="1" height="1">
    <send src="(0, 'GPU', 2)" dst="(0, 'GPU', 12)" path="(0, 'GPU', 2),(-1, 'IB', 0),(0, 'GPU', 12)"/>
  </tree>
  <tree root="(0, 'GPU', 2)" index="1" nchunks="2" height="1">
    <send src="(0, 'GPU', 2)" dst="(0, 'GPU', 12)" path="(0, 'GPU', 2),(0, 'GPU', 12)"/>
  </tree>
</Algo>
)xml",
                                                 "t.xml")
                                   .value();
  EXPECT_EQ(printed.tool, "forestcoll");
  EXPECT_EQ(printed.ranks, 2);
  EXPECT_EQ(printed.weights, (std::vector<std::vector<int64_t>>{{1, 2}, {3}}));
  ASSERT_EQ(printed.sends.size(), 3U);
  EXPECT_EQ(printed.sends[0].src, Rank(1));
  EXPECT_EQ(printed.sends[0].dst, Rank(0));
  EXPECT_EQ(printed.sends[0].chunk, ChunkId(2));
  EXPECT_EQ(printed.sends[0].line, 3);
  EXPECT_EQ(printed.sends[1].chunk, ChunkId(0));
  EXPECT_EQ(printed.sends[2].chunk, ChunkId(1));
  EXPECT_FALSE(printed.links_in_order);
}

std::string TreeError(const std::string& trees) {
  return ReadForestCollXml("<Algo>\n" + trees + "</Algo>\n", "t.xml").status().message();
}

TEST(ForestCollXml, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(ReadForestCollXml("<algo/>", "t.xml").status().message(), "t.xml:1:1: <algo>; expected <Algo>");
  EXPECT_EQ(TreeError(""), "t.xml:1:1: no <tree>");
  EXPECT_EQ(TreeError("<tree nchunks='1'/>"), "t.xml:2:1: a tree without root=\"...\"");
  EXPECT_EQ(TreeError("<tree root='0' nchunks='0'/>"), "t.xml:2:1: nchunks=\"0\"; expected 1..1073741824");
  EXPECT_EQ(TreeError("<tree root='0' nchunks='1'>\n<send src='0' dst='1'/></tree>"),
            "t.xml:3:1: dst=\"1\"; expected the root of a tree");
  const std::string one = "<tree root='1' nchunks='1'/>";
  EXPECT_EQ(TreeError("<tree root='0' nchunks='1'>\n<send src='1' dst='1'/></tree>" + one),
            "t.xml:3:1: a send to its own sender");
  EXPECT_EQ(TreeError("<tree root='0' nchunks='1'>\n<send src='1' dst='0'/></tree>" + one),
            "t.xml:3:1: a send to the root of its tree");
  EXPECT_EQ(
      TreeError("<tree root='0' nchunks='1'>\n<send src='0' dst='1'/>\n<send src='0' dst='1'/></tree>" + one),
      "t.xml:4:1: dst=\"1\" is reached twice, in line 3 too");
}

std::string Csv(const std::string& chunks, const std::string& rows) {
  return fmt::format(
      "NPUs Count,2\nLinks Count,2\nChunks Count,{}\nChunk Size,1048576,B\n"
      "SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks\n{}",
      chunks, rows);
}

// Chunks are dealt to the ranks in turn: 0 and 2 begin at rank 0.
TEST(TacosCsv, ChunksBeginAtTheRanksInTurn) {
  const PrintedSends printed =
      ReadTacosCsv(Csv("4", "0,1,500,50,2,0\r\n1,0,500,50,1,3\r\n"), "t.csv").value();
  EXPECT_EQ(printed.tool, "tacos");
  EXPECT_EQ(printed.weights, (std::vector<std::vector<int64_t>>{{1, 1}, {1, 1}}));
  ASSERT_EQ(printed.sends.size(), 4U);
  EXPECT_EQ(printed.sends[0].chunk, ChunkId(1));
  EXPECT_EQ(printed.sends[0].line, 6);
  EXPECT_EQ(printed.sends[1].chunk, ChunkId(0));
  EXPECT_EQ(printed.sends[2].chunk, ChunkId(2));
  EXPECT_EQ(printed.sends[3].chunk, ChunkId(3));
  EXPECT_TRUE(printed.links_in_order);
}

std::string CsvError(const std::string& chunks, const std::string& rows) {
  return ReadTacosCsv(Csv(chunks, rows), "t.csv").status().message();
}

TEST(TacosCsv, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(ReadTacosCsv("NPUs Count,1\n", "t.csv").status().message(),
            "t.csv:1: 'NPUs Count,1'; expected 'NPUs Count,' and 2..65536");
  EXPECT_EQ(ReadTacosCsv("NPUs Count,2\nLinks Count,2\nChunks Count,2\nSize\n", "t.csv").status().message(),
            "t.csv:4: expected 'Chunk Size,...'");
  EXPECT_EQ(CsvError("1000000000", ""),
            "t.csv:3: 'Chunks Count,1000000000'; expected 'Chunks Count,' and 1..9");
  EXPECT_EQ(CsvError("3", ""), "t.csv:3: Chunks Count 3; expected a multiple of the 2 NPUs");
  EXPECT_EQ(CsvError("2", "0,1,500\n"),
            "t.csv:6: '0,1,500'; expected source, destination, latency, bandwidth and chunks or None");
  EXPECT_EQ(CsvError("2", "0,2,500,50,None\n"), "t.csv:6: destination '2'; expected 0..1");
  EXPECT_EQ(CsvError("2", "1,1,500,50,None\n"), "t.csv:6: a link from 1 to itself; expected another end");
  EXPECT_EQ(CsvError("2", "0,1,500,50,2\n"), "t.csv:6: chunk '2'; expected 0..1");
  EXPECT_EQ(CsvError("2", "0,1,500,50,1\n"), "t.csv:6: chunk 1 to rank 1, which begins with it");
  EXPECT_EQ(CsvError("2", "0,1,500,50,0\n0,1,500,50,0\n"), "t.csv:7: chunk 0 to rank 1 twice, in line 6 too");
  EXPECT_EQ(CsvError("2", "0,1,500,50,0\n1,0,500,50,1\n1,0,500,50,None\n"),
            "t.csv:8: a line after the last of 2 links");
}

}  // namespace
}  // namespace xccl
