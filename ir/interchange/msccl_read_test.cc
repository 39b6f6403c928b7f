#include "ir/interchange/msccl_read.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "ir/interchange/foreign.h"
#include "ir/interchange/msccl_xml.h"
#include "ir/interpret/interpret.h"
#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

// Runs on numbers, out of place and in place, to what the collective requires.
void CheckRuns(const LoweredProgram& read) {
  for (const bool in_place : {false, true}) {
    if (in_place && !read.program.in_place) continue;
    const InterpretOptions options{.size_bytes = 9216, .in_place = in_place};
    const auto inputs = ExactInputs(read.program, read.collective, options);
    const auto expected = ExpectedOutputs(read.program, read.collective, inputs, options);
    const auto outputs = Interpret(read.program, read.collective, inputs, options);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    for (const Rank r : read.collective.ranks()) ASSERT_EQ((*outputs)[r.index()], expected[r.index()]);
  }
}

TEST(MscclReadTest, ProgramsComeBackAsTheyWere) {
  const Topology mesh = FullMesh(4);
  int32_t programs = 0;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAlltoall, CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
      const Collective collective = MakeCollective(kind, 4).WithChunks(3);
      const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, mesh);
      if (!schedule) continue;
      const StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
      ASSERT_TRUE(lowered.ok()) << lowered.status().message();
      for (const MscclTarget target : {MscclTarget::kMsccl, MscclTarget::kExecutor}) {
        const bool in_place = target == MscclTarget::kMsccl && lowered->program.in_place;
        const StatusOr<MscclXml> xml =
            WriteMscclXml(lowered->program, lowered->collective, {.target = target, .in_place = in_place});
        if (!xml.ok()) continue;
        const StatusOr<Imported> read = ReadMscclXml(xml->text, {.root = Rank(2)});
        ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << xml->text;
        ++programs;
        CheckRuns(read->lowered);
      }
    }
  }
  EXPECT_GE(programs, 24);
}

// Two ranks swap their data: an allgather.
std::string Allgather(const std::string& step_of_rank_1) {
  return R"(<algo name="a" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1">
  <!-- only output is named in place -->
  <gpu id="0" i_chunks="0" o_chunks="2" s_chunks="0">
    <copy i_off="0" o_off="0"/>
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="0" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      )" +
         step_of_rank_1 +
         R"(
      <step s="1" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>)";
}
std::string Send(const std::string& attributes) {
  return R"(<step s="0" type="s" dstbuf="o" dstoff="1" )" + attributes + "/>";
}

TEST(MscclReadTest, FilesForInPlaceAloneRunOutOfPlaceToo) {
  const StatusOr<Imported> read =
      ReadMscclXml(Allgather(Send(R"(srcbuf="o" srcoff="1" cnt="1" depid="-1" deps="-1" hasdep="0")")), {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->lowered.program.ranks[Rank(0)].threadblocks.size(), 2U);  // one copies
  CheckRuns(read->lowered);
}

TEST(MscclReadTest, NamesTheFirstThingThatIsWrong) {
  const auto wrong = [](const std::string& attributes) {
    return ReadMscclXml(Allgather(Send(attributes)), {.file = "a.xml"}).status().message();
  };
  EXPECT_EQ(wrong(R"(srcbuf="o" srcoff="1" cnt="0" depid="-1" deps="-1" hasdep="0")"),
            "a.xml:12:7: cnt=\"0\"; expected 1..32767");
  EXPECT_EQ(wrong(R"(srcbuf="x" srcoff="1" cnt="1" depid="-1" deps="-1" hasdep="0")"),
            "a.xml:12:7: srcbuf=\"x\"; expected one of i, o, s");
  EXPECT_EQ(wrong(R"(srcbuf="o" srcoff="2" cnt="1" depid="-1" deps="-1" hasdep="0")"),
            "a.xml:12: rank 1 threadblock 0 step 0 has chunk 2 of its output, which ends before");
  EXPECT_EQ(wrong(R"(srcbuf="o" srcoff="0" cnt="1" depid="-1" deps="-1" hasdep="0")"),
            "a.xml:12: rank 1 threadblock 0 step 0 reads chunk 0 of its output, which nothing has written");
  EXPECT_EQ(wrong(R"(srcbuf="o" srcoff="1" cnt="1" depid="0" deps="1" hasdep="0")"),
            "a.xml:12: rank 1 threadblock 0 step 0 waits for step 1 of threadblock 0; expected hasdep=\"1\" "
            "there or later");
  EXPECT_EQ(wrong(R"(srcbuf="o" srcoff="1" cnt="1" depid="1" deps="1" hasdep="0")"),
            "a.xml:12:7: depid=\"1\"; expected -1..0");
  EXPECT_EQ(ReadMscclXml("<algo/>", {}).status().message(), "plan:1:1: ngpus=\"\"; expected 1..1024");
  EXPECT_EQ(ReadMscclXml("", {}).status().message(), "plan:1:1: no element; expected <algo>");
}

// Made by msccl-tools and SCCL; ../shared/data/msccl/README.md says which are right.
TEST(MscclReadTest, ReadsWhatOtherToolsWrote) {
  const char* folder = std::getenv("XCCL_MSCCL_SAMPLES");
  const std::string at = folder != nullptr ? folder : "../shared/data/msccl";
  if (!ReadFile(at + "/README.md").ok())
    GTEST_SKIP() << "no files in " << at << "; XCCL_MSCCL_SAMPLES names the folder";
  for (const char* name :
       {"allgather_pcie_4gpu", "allgather_recdbl_8gpu", "allgather_ring_8gpu_LL128",
        "allreduce_allpairs_v2_8gpu_i2_LL", "allreduce_hier_4gpu_x2nodes_auto", "allreduce_ncv4_4gpu",
        "allreduce_recdbl_halv_8gpu_LL", "allreduce_ring_8gpu_ch4_i2_Simple", "alltoall_allpairs_8gpu",
        "alltoall_two_step_2x8", "sccl_dgx1_allgather_2_2_3", "sccl_dgx1_alltoall_8_2_3",
        "sccl_dgx1_broadcast_6_3_3", "sccl_dgx1_reducescatter_1_2_2"}) {
    const StatusOr<std::string> text = ReadFile(at + "/" + name + ".xml");
    ASSERT_TRUE(text.ok()) << text.status().message();
    const StatusOr<Imported> read =
        ReadMscclXml(*text, {.file = name, .collective = CollectiveKind::kBroadcast});
    EXPECT_TRUE(read.ok()) << read.status().message();
    if (read.ok()) CheckRuns(read->lowered);
  }
  const StatusOr<std::string> composed = ReadFile(at + "/sccl_ring4_allreduce_composed.xml");
  EXPECT_EQ(ReadMscclXml(*composed, {.file = "c.xml"}).status().message(),
            "c.xml:23: rank 0 threadblock 2 step 0 reads chunk 2 of its scratch, which nothing has written");
  const StatusOr<std::string> custom = ReadFile(at + "/custom_collective_1.xml");
  EXPECT_EQ(ReadMscclXml(*custom, {.file = "c.xml"}).status().message(),
            "c.xml: coll=\"custom\" does not say what is right; expected allreduce, allgather, "
            "reduce_scatter, alltoall, broadcast or reduce");
}

}  // namespace
}  // namespace xccl
