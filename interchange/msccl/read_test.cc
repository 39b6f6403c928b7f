#include "interchange/msccl/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "interchange/common/foreign.h"
#include "interchange/msccl/xml.h"
#include "ir/lower/testing/checked.h"
#include "ir/testing/check_runs.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

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

// The text with its first `from` after `after` replaced.
std::string Changed(std::string text, const std::string& from, const std::string& to,
                    const std::string& after = "") {
  const size_t at = text.find(from, text.find(after));
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// A right file: both ranks swap their chunks, out of place, and copy their own.
std::string Swap(const std::string& collective = "allgather") {
  std::string text =
      "<algo name=\"a\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"" +
      collective + "\" inplace=\"0\">\n";
  for (const std::string own : {"0", "1"}) {
    const std::string other = own == "0" ? "1" : "0";
    text += "<gpu id=\"" + own + "\" i_chunks=\"1\" o_chunks=\"2\" s_chunks=\"1\">\n";
    text += "<tb id=\"0\" send=\"" + other + "\" recv=\"" + other + "\" chan=\"0\">\n";
    for (const auto& [type, where] :
         {std::pair<std::string, std::string>{"s", own}, {"r", other}, {"cpy", own}})
      text += "<step s=\"0\" type=\"" + type + "\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"" + where +
              "\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n";
    text += "</tb></gpu>\n";
  }
  return text + "</algo>\n";
}

TEST(MscclReadTest, LimitsAndOneMore) {
  const StatusOr<Imported> right = ReadMscclXml(Swap(), {});
  ASSERT_TRUE(right.ok()) << right.status().message();
  CheckRuns(right->lowered);
  const auto wrong = [](const std::string& from, const std::string& to, const std::string& after = "") {
    return ReadMscclXml(Changed(Swap(), from, to, after), {.file = "a"}).status().message();
  };
  EXPECT_EQ(wrong(R"(ngpus="2")", R"(ngpus="1025")"), "a:1:1: ngpus=\"1025\"; expected 1..1024");
  EXPECT_EQ(wrong(R"(ngpus="2")", R"(ngpus="1024")"), "a:1:1: no gpu 2; expected 1024 of them");
  EXPECT_EQ(wrong(R"(loop="2")", R"(loop="32768")"), "a:1:1: nchunksperloop=\"32768\"; expected 1..32767");
  EXPECT_EQ(wrong(R"(loop="2")", R"(loop="32767")"),
            "a: nchunksperloop=\"32767\"; expected a multiple of 2 ranks for allgather");
  EXPECT_EQ(wrong(R"(chan="0")", R"(chan="256")"), "a:3:1: chan=\"256\"; expected 0..255");
  EXPECT_EQ(wrong(R"(nchannels="1")", ""), "a:1:1: nchannels=\"\"; expected 1..256");
  EXPECT_EQ(wrong(R"(nchannels="1")", R"(nchannels="257")"), "a:1:1: nchannels=\"257\"; expected 1..256");
  EXPECT_EQ(wrong(R"(nchannels="1")", R"(nchannels="256")"), "");
  EXPECT_EQ(
      wrong(R"(chan="0")", R"(chan="255")"),
      "a:11: rank 1 threadblock 0 step 1 begins connection 0->1 channel 0: 0 sends and 1 receives [P4]");
  EXPECT_EQ(wrong(R"(s_chunks="1")", R"(s_chunks="32768")"), "a:2:1: s_chunks=\"32768\"; expected 0..32767");
  EXPECT_EQ(wrong(R"(s_chunks="1")", R"(s_chunks="32767")"), "");
  EXPECT_EQ(wrong(R"(cnt="1")", R"(cnt="32768")"), "a:4:1: cnt=\"32768\"; expected 1..32767");
  EXPECT_EQ(wrong(R"(recv="1")", R"(recv="2")"), "a:3:1: recv=\"2\"; expected -1..1");
  EXPECT_EQ(wrong(R"(inplace="0")", R"(inplace="0" minBytes="-1")"),
            "a:1:1: minBytes=\"-1\"; expected 0..9223372036854775807");
  EXPECT_EQ(wrong(R"(inplace="0")", R"(inplace="0" minBytes="9" maxBytes="8")"),
            "a:1:1: minBytes=\"9\" and maxBytes=\"8\"; expected the second to be as large as the first");
}

TEST(MscclReadTest, EveryMessageNamesItsPlace) {
  const auto wrong = [](const std::string& from, const std::string& to, const std::string& after = "",
                        const std::string& collective = "allgather") {
    return ReadMscclXml(Changed(Swap(collective), from, to, after), {.file = "a"}).status().message();
  };
  EXPECT_EQ(ReadMscclXml("<plan/>", {.file = "a"}).status().message(), "a:1:1: <plan>; expected <algo>");
  EXPECT_EQ(wrong(R"(id="1")", R"(id="0")"), "a:8:1: a second gpu 0");
  EXPECT_EQ(wrong("<tb id=\"0\"", "<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\"/><tb id=\"0\""),
            "a:3:42: a second tb 0 of gpu 0");
  EXPECT_EQ(wrong(R"(type="s")", R"(type="ra")"),
            "a:4:1: type=\"ra\"; expected one of s, r, rcs, rrs, rrc, rrcs, cpy, re, nop");
  EXPECT_EQ(wrong(R"("Simple")", R"("simple")"),
            "a:1:1: proto=\"simple\"; expected one of Simple, LL, LL128");
  EXPECT_EQ(wrong(R"(coll="allgather")", R"(coll="gather")"),
            "a: coll=\"gather\"; expected allreduce, allgather, reduce_scatter, alltoall, broadcast, reduce "
            "or custom");
  EXPECT_EQ(wrong(R"(send="1")", R"(send="0")"),
            "a: rank 0 sends to itself on channel 0; expected another rank");
  EXPECT_EQ(wrong(R"(chan="0")", R"(chan="0" links="4,x")"),
            "a:3:1: links=\"4,x\"; expected numbers of links with commas between them");
  EXPECT_EQ(wrong(R"(srcbuf="i")", R"(srcbuf="s")"),
            "a:4: rank 0 threadblock 0 step 0 reads chunk 0 of its scratch, which nothing has written");
  EXPECT_EQ(wrong(R"(dstbuf="o" dstoff="1")", R"(dstbuf="o" dstoff="2")"),
            "a:5: rank 0 threadblock 0 step 1 has chunk 2 of its output, which ends before");
  EXPECT_EQ(wrong(R"(dstbuf="o" dstoff="1")", R"(dstbuf="o" dstoff="0")"),
            "a: rank 0 chunk 1 of its output is never written");
  EXPECT_EQ(wrong(R"(type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1")",
                  R"(type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0")"),
            "a: rank 0 chunk 0 of its output holds chunk 1; expected chunk 0");
  EXPECT_EQ(wrong(R"(type="r")", R"(type="rrc")"),
            "a:5: rank 0 threadblock 0 step 1 adds chunk 1 to chunk 0");
  // In an allreduce both chunks are of one part. Nobody adds anything.
  EXPECT_EQ(wrong("allreduce", "allreduce", "", "allreduce"),
            "a: rank 0 chunk 0 of its output holds the contributions of 0; expected those of 0, 1");
  EXPECT_EQ(
      wrong(R"(type="cpy" srcbuf="i" srcoff="0")", R"(type="re" srcbuf="o" srcoff="0")", "", "allreduce"),
      "a:6: rank 0 threadblock 0 step 2 reads chunk 0 of its output, which nothing has written");
  const std::string twice = Changed(Swap("allreduce"), R"(type="r")", R"(type="rrc")");
  EXPECT_EQ(ReadMscclXml(Changed(Changed(twice, R"(dstoff="1")", R"(dstoff="0")", "rrc"),
                                 R"(type="cpy" srcbuf="i")", R"(type="re" srcbuf="i")"),
                         {.file = "a"})
                .status()
                .message(),
            "a:6: rank 0 threadblock 0 step 2 adds a contribution to chunk 0 twice: those of ranks 0 to "
            "those of 0, 1");
  EXPECT_EQ(
      ReadMscclXml(Changed(Changed(Swap(), R"(inplace="0")", R"(inplace="1" outofplace="1")"),
                           R"(dstbuf="o" dstoff="1")", R"(dstbuf="i" dstoff="0")"),
                   {.file = "a"})
          .status()
          .message(),
      "a:5: rank 0 threadblock 0 step 1 writes its input; expected that a file for both in place and out of "
      "place only reads it");
}

const std::string kNoWait = R"(depid="-1" deps="-1")";

std::string Step(const std::string& type, const std::string& src, const std::string& dst,
                 const std::string& wait = kNoWait, const std::string& count = "1") {
  const auto operand = [](const std::string& prefix, const std::string& text) {
    return prefix + "buf=\"" + text.substr(0, 1) + "\" " + prefix + "off=\"" + text.substr(1) + "\" ";
  };
  return "<step s=\"0\" type=\"" + type + "\" " + operand("src", src) + operand("dst", dst) + "cnt=\"" +
         count + "\" " + wait + " hasdep=\"1\"/>\n";
}

// An allgather of two chunks a rank: one threadblock sends, one copies and one receives. `steps` gives those
// of the three from the rank's own first chunk of output and the other rank's.
template <typename Steps>
std::string TwoChunks(const Steps& steps) {
  std::string text =
      "<algo name=\"a\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"4\" ngpus=\"2\" "
      "coll=\"allgather\" inplace=\"0\">\n";
  for (const int own : {0, 1}) {
    const std::string peer = std::to_string(1 - own);
    const std::vector<std::string> of = steps(2 * own, 2 * (1 - own));
    text += "<gpu id=\"" + std::to_string(own) + "\" i_chunks=\"2\" o_chunks=\"4\" s_chunks=\"1\">\n";
    text += "<tb id=\"0\" send=\"" + peer + "\" recv=\"-1\" chan=\"0\">\n" + of[0] + "</tb>\n";
    text += "<tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n" + of[1] + "</tb>\n";
    text += "<tb id=\"2\" send=\"-1\" recv=\"" + peer + "\" chan=\"0\">\n" + of[2] + "</tb></gpu>\n";
  }
  return text + "</algo>\n";
}

void CheckOrdered(const std::string& right, const std::string& race, const std::string& message) {
  const StatusOr<Imported> read = ReadMscclXml(right, {});
  ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << right;
  CheckRuns(read->lowered);
  EXPECT_EQ(ReadMscclXml(race, {.file = "a"}).status().message(), message);
}

// The program that is proved has a slot for every value, the file has one cell for both.
TEST(MscclReadTest, ACellThatIsUsedAgainWaitsForItsReaders) {
  const auto receives = [](const std::string& wait) {
    return TwoChunks([&](int own, int other) -> std::vector<std::string> {
      return {Step("s", "i0", "o0") + Step("s", "i1", "o0"),
              Step("cpy", "i0", "o" + std::to_string(own), kNoWait, "2") +
                  Step("cpy", "s0", "o" + std::to_string(other), R"(depid="2" deps="0")") +
                  Step("cpy", "s0", "o" + std::to_string(other + 1), R"(depid="2" deps="1")"),
              Step("r", "s0", "s0") + Step("r", "s0", "s0", wait)};
    });
  };
  CheckOrdered(receives(R"(depid="1" deps="1")"), receives(kNoWait),
               "a:14: rank 0 threadblock 2 step 1 writes scratch slot 0, which is read by threadblock 1 "
               "instruction 1; nothing orders the two [P6]");
  const auto copies = [](const std::string& wait) {
    return TwoChunks([&](int own, int other) -> std::vector<std::string> {
      return {
          Step("s", "s0", "o0", R"(depid="1" deps="0")") + Step("s", "s0", "o0", R"(depid="1" deps="2")"),
          Step("cpy", "i0", "s0") + Step("cpy", "i0", "o" + std::to_string(own), kNoWait, "2") +
              Step("cpy", "i1", "s0", wait),
          Step("r", "o0", "o" + std::to_string(other)) + Step("r", "o0", "o" + std::to_string(other + 1))};
    });
  };
  CheckOrdered(copies(R"(depid="0" deps="0")"), copies(kNoWait),
               "a:10: rank 0 threadblock 1 step 2 writes scratch slot 0, which is read by threadblock 0 "
               "instruction 0; nothing orders the two [P6]");
}

// Chunks of a part may differ by an element. The second one's place in the output holds a first one here.
TEST(MscclReadTest, OutputHoldsAnotherChunkForAWhile) {
  const auto through = [](const std::string& wait) {
    return TwoChunks([&](int own, int other) -> std::vector<std::string> {
      const std::string last = "o" + std::to_string(other + 1);
      return {Step("s", last, "o0", R"(depid="1" deps="0")") + Step("s", "i1", "o0"),
              Step("cpy", "i0", last) + Step("cpy", "i0", "o" + std::to_string(own), kNoWait, "2"),
              Step("r", "o0", "o" + std::to_string(other)) + Step("r", "o0", last, wait)};
    });
  };
  CheckOrdered(through(R"(depid="0" deps="0")"), through(kNoWait),
               "a:13: rank 0 threadblock 2 step 1 writes output slot 3, which is written by threadblock 1 "
               "instruction 0; nothing orders the two [P6]");
}

TEST(MscclReadTest, PathsOfTheFileAreKept) {
  const StatusOr<Imported> read =
      ReadMscclXml(Changed(Swap(), R"(chan="0")", R"(chan="0" links="4,17")"), {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::vector<Connection>& connections = read->lowered.program.connections;
  ASSERT_EQ(connections.size(), 2U);
  EXPECT_EQ(connections[0].path, (std::vector<LinkId>{LinkId(4), LinkId(17)}));
  EXPECT_TRUE(connections[1].path.empty());
}

// Blanks, line breaks, other orders of attributes and elements, and single quotes say the same.
TEST(MscclReadTest, TheFormOfTheTextIsFree) {
  std::string text = Swap();
  const StatusOr<Imported> plain = ReadMscclXml(text, {});
  text = Changed(text, R"(<algo name="a" proto="Simple")",
                 "<?xml version='1.0'?>\n<algo\n\tproto='Simple'   name = \"a\"");
  text = Changed(text, R"(s="0" type="s" srcbuf="i")", R"(srcbuf="i" type="s" s="7" unknown="1")");
  text = Changed(text, "<tb id=\"0\"", "<!-- a note --><copy i_off=\"0\"/>\r\n<tb id=\"0\"");
  const StatusOr<Imported> read = ReadMscclXml(text, {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->lowered, plain->lowered);
  EXPECT_EQ(ReadMscclXml(Changed(Swap(), R"( depid="-1")", ""), {.file = "a"}).status().message(),
            "a:4:1: depid=\"\"; expected -1..0");
  EXPECT_EQ(ReadMscclXml(Changed(Swap(), R"( hasdep="0")", ""), {.file = "a"}).status().message(),
            "a:4:1: hasdep=\"\"; expected 0..1");
}

TEST(MscclReadTest, SaysWhatExecutorsWouldRefuse) {
  std::string good = Swap();
  for (size_t at = 0, s = 0; (at = good.find("s=\"0\" type", at)) != std::string::npos; ++at, s = (s + 1) % 3)
    good.replace(at + 3, 1, std::to_string(s));
  const auto warnings = [](const std::string& text) {
    const StatusOr<Imported> read = ReadMscclXml(text, {.file = "a"});
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read.ok() ? read->warnings : std::vector<std::string>();
  };
  EXPECT_THAT(warnings(good), testing::IsEmpty());
  EXPECT_THAT(warnings("<!-- <?\t'&' -->\n" + good), testing::IsEmpty());
  const struct {
    std::string from, to, warning;
  } cases[] = {
      {"<algo", "<?xml version=\"1.0\"?>\n<algo",
       "a:1: <?xml ?> at the beginning; the executors' parsers refuse it"},
      {"<gpu", "\t<gpu", "a:2: a tab; the executors' parsers refuse it"},
      {" send", "\nsend", "a:3: a tag of several lines; the executors' parsers refuse it"},
      {"\"Simple\"", "'Simple'", "a:1: single quotes; the executors' parsers expect double ones"},
      {"name=\"a\"", "name=\"a&amp;b\"", "a:1: an entity; the executors' parsers take it as it is written"},
      {"chan=\"0\"", "chan=\"0\"" + std::string(13, ' '),
       "a:3: more than 16 attributes or blanks in a tag; the executors' parsers have no room"},
      {"s=\"1\" type", "s=\"5\" type",
       "a:5: s=\"5\" out of order; the executors, as is done here, count steps by their place in the file"},
  };
  for (const auto& each : cases)
    EXPECT_THAT(warnings(Changed(good, each.from, each.to)), testing::ElementsAre(each.warning));
  std::string channels = good;
  for (size_t at = 0; (at = channels.find("chan=\"0\"", at)) != std::string::npos; ++at)
    channels.replace(at + 6, 1, "1");
  EXPECT_THAT(warnings(channels),
              testing::ElementsAre("a: chan=\"1\" with nchannels=\"1\"; the executors make 1"));
}

// A step with several waits has nops before it, and a wait of its own.
TEST(MscclReadTest, SaysWhatChainsOfNopsExecutorsRefuse) {
  const std::string nop = Step("nop", "i0", "o0", R"(depid="1" deps="0")");
  const auto with = [&](const std::string& wait) {
    return TwoChunks([&](int own, int other) -> std::vector<std::string> {
      const std::string mine = "o" + std::to_string(own), others = "o" + std::to_string(other);
      return {nop + Step("s", "i0", mine, wait, "2"), Step("cpy", "i0", mine, kNoWait, "2"),
              Step("r", "i0", others, kNoWait, "2")};
    });
  };
  const auto warns = [](const std::string& text) {
    const StatusOr<Imported> read = ReadMscclXml(text, {.file = "a"});
    EXPECT_TRUE(read.ok()) << read.status().message();
    return std::ranges::count(
        read->warnings,
        "a:5: a step with depid=\"-1\" after a nop that waits; the executors refuse the file");
  };
  EXPECT_EQ(warns(with(kNoWait)), 1);
  EXPECT_EQ(warns(with(R"(depid="1" deps="0")")), 0);
}

// SCCL writes reduce_scatter, Azure's tools reducescatter; hasdep and nops as msccl-tools writes them.
TEST(MscclReadTest, BothSpellingsOfReduceScatter) {
  for (const char* coll : {"reduce_scatter", "reducescatter"}) {
    std::string text =
        std::string(
            "<algo name=\"rs\" proto=\"LL128\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"") +
        coll + "\" inplace=\"0\" redop=\"sum\">\n";
    for (const std::string own : {"0", "1"}) {
      const std::string other = own == "0" ? "1" : "0";
      text += "<gpu id=\"" + own +
              "\" i_chunks=\"2\" o_chunks=\"1\" s_chunks=\"1\"><tb id=\"0\" send=\"-1\" recv=\"" + other +
              "\" chan=\"0\">\n<step s=\"0\" type=\"r\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" "
              "cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>\n"
              "</tb><tb id=\"1\" send=\"" +
              other + "\" recv=\"-1\" chan=\"0\">\n<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"" + other +
              "\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n"
              "<step s=\"1\" type=\"cpy\" srcbuf=\"i\" srcoff=\"" +
              own +
              "\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"/>\n"
              "</tb><tb id=\"2\" send=\"-1\" recv=\"-1\" chan=\"0\">\n"
              "<step s=\"0\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" "
              "depid=\"0\" deps=\"0\" hasdep=\"0\"/>\n"
              "<step s=\"1\" type=\"re\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
              "depid=\"1\" deps=\"1\" hasdep=\"0\"/>\n"
              "</tb></gpu>\n";
    }
    const StatusOr<Imported> read = ReadMscclXml(text + "</algo>", {});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->name, "rs");
    EXPECT_EQ(read->lowered.program.protocol, Protocol::kLl128);
    CheckRuns(read->lowered);
  }
}

// Rank 0 sends a chunk to rank 1, which keeps it or adds its own; o_chunks and the place are given.
std::string Custom(const std::string& type, const std::string& where) {
  return R"(<algo name="a" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="custom" inplace="1">
<gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0"><tb id="0" send="1" recv="-1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
<gpu id="1" i_chunks="2" o_chunks="3" s_chunks="0"><tb id="0" send="-1" recv="0" chan="0">
<step s="0" type=")" +
         type + R"(" srcbuf="i" srcoff="0" dstbuf="o" )" + where +
         R"( cnt="2" depid="-1" deps="-1" hasdep="0"/></tb></gpu></algo>)";
}

TEST(MscclReadTest, CustomFilesAreWhatTheyDo) {
  const StatusOr<Imported> sends = ReadMscclXml(Custom("r", R"(dstoff="0")"), {});
  ASSERT_TRUE(sends.ok()) << sends.status().message();
  const CollectiveSpec& copied = sends->lowered.collective.spec();
  EXPECT_EQ(copied.kind, CollectiveKind::kCustom);
  EXPECT_EQ(copied.pre.size(), 4U);  // two chunks of two ranks
  EXPECT_EQ(copied.post,
            (std::vector<TableEntry>{{Rank(1), PartId(0), {Rank(0)}}, {Rank(1), PartId(1), {Rank(0)}}}));
  CheckRuns(sends->lowered);
  const StatusOr<Imported> adds = ReadMscclXml(Custom("rrc", R"(dstoff="0")"), {});
  ASSERT_TRUE(adds.ok()) << adds.status().message();
  const std::vector<Rank> both = {Rank(0), Rank(1)};
  EXPECT_EQ(adds->lowered.collective.spec().post,
            (std::vector<TableEntry>{{Rank(1), PartId(0), both}, {Rank(1), PartId(1), both}}));
  CheckRuns(adds->lowered);
  EXPECT_EQ(ReadMscclXml(Custom("r", R"(dstoff="1")"), {.file = "c.xml"}).status().message(),
            "c.xml: rank 1 chunk 1 of its output comes after one that nothing has written; expected no gaps");
  // Rank 1 has rank 0's second chunk before its first.
  std::string swapped = Custom("r", R"(dstoff="0")");
  for (const auto& [from, to] :
       {std::pair("srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"2\" depid=\"-1\" deps=\"-1\" "
                  "hasdep=\"0\"/></tb></gpu>\n",
                  "srcoff=\"1\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n"
                  "<step s=\"1\" type=\"s\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
                  "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/></tb></gpu>\n"),
        {"dstoff=\"0\" cnt=\"2\"", "dstoff=\"0\" cnt=\"1\""},
        {"hasdep=\"0\"/></tb></gpu></algo>",
         "hasdep=\"0\"/>\n<step s=\"1\" type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\" "
         "cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/></tb></gpu></algo>"}}) {
    const size_t at = swapped.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    swapped.replace(at, std::string(from).size(), to);
  }
  EXPECT_EQ(ReadMscclXml(swapped, {.file = "c.xml"}).status().message(),
            "c.xml: rank 1 chunk 1 of its output holds part 0 of the inputs, after part 1; expected them in "
            "ascending order, as a collective of one's own has them");
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
        "sccl_dgx1_broadcast_6_3_3", "sccl_dgx1_reducescatter_1_2_2", "custom_collective_1"}) {
    const StatusOr<std::string> text = ReadFile(at + "/" + name + ".xml");
    ASSERT_TRUE(text.ok()) << text.status().message();
    const StatusOr<Imported> read = ReadMscclXml(*text, {.file = name});
    EXPECT_TRUE(read.ok()) << read.status().message();
    if (read.ok()) CheckRuns(read->lowered);
  }
  // Two threadblocks of rank 9 receive into one chunk of scratch.
  const StatusOr<std::string> next = ReadFile(at + "/alltonext_fwd_3nodes.xml");
  EXPECT_EQ(ReadMscclXml(*next, {.file = "n.xml"}).status().message(),
            "n.xml:145: rank 9 threadblock 0 step 0 writes scratch slot 0, which is written by threadblock 4 "
            "instruction 0; nothing orders the two [P6]");
  const StatusOr<std::string> composed = ReadFile(at + "/sccl_ring4_allreduce_composed.xml");
  EXPECT_EQ(ReadMscclXml(*composed, {.file = "c.xml"}).status().message(),
            "c.xml:23: rank 0 threadblock 2 step 0 reads chunk 2 of its scratch, which nothing has written");
}

}  // namespace
}  // namespace xccl
