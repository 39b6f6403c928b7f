// Two facts that MSCCL XML files do not state: the sizes at which executors end them, and their root.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "interchange/common/foreign.h"
#include "interchange/msccl/read.h"
#include "interchange/msccl/xml.h"
#include "ir/lower/testing/checked.h"
#include "ir/testing/programs.h"

namespace xccl {
namespace {

std::string Step(int32_t s, const std::string& type, int32_t offset, int32_t count) {
  return fmt::format(
      "      <step s=\"{}\" type=\"{}\" srcbuf=\"i\" srcoff=\"{}\" dstbuf=\"o\" dstoff=\"{}\" cnt=\"{}\" "
      "depid=\"-1\" "
      "deps=\"-1\" hasdep=\"0\"/>\n",
      s, type, 0, offset, count);
}

// Two ranks send each other all that they have, `count` chunks, before they receive: an allgather.
std::string Swap(int32_t count, const std::string& protocol, const std::string& sizes) {
  std::string text = fmt::format(
      "<algo name=\"swap\" proto=\"{}\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"2\" coll=\"allgather\" "
      "inplace=\"0\" {}>\n",
      protocol, 2 * count, sizes);
  for (int32_t r = 0; r < 2; ++r) {
    text += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"0\">\n", r, count,
                        2 * count);
    text += fmt::format("    <tb id=\"0\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", 1 - r, 1 - r);
    text += Step(0, "s", r * count, count) + Step(1, "r", (1 - r) * count, count) + "    </tb>\n";
    text += "    <tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n" + Step(0, "cpy", r * count, count);
    text += "    </tb>\n  </gpu>\n";
  }
  return text + "</algo>\n";
}

// Simple has two messages under way: four chunks are so many while two of them go at a time, 1 MiB each at
// most.
TEST(MscclSizesTest, EndWhereExecutorsWouldHang) {
  struct Case {
    const char* what;
    int32_t count;
    const char *protocol, *sizes;
    int64_t max_bytes;
    const char* warning;
  };
  const std::vector<Case> all = {
      {"no chunk waits", 2, "Simple", "", 0, ""},
      {"four at once", 4, "Simple", "", 8 << 20,
       "a.xml:4: rank 0 threadblock 0 step 0 waits in a circle above 8MiB: executors then move fewer than 2 "
       "chunks at a time, and have 2 such messages under way on a connection in protocol simple (with NCCL's "
       "buffers); sizes end there"},
      {"bounded as those of RCCL", 4, "Simple", "minBytes=\"0\" maxBytes=\"8388608\"", 8 << 20, ""},
      {"bounded too high", 4, "Simple", "minBytes=\"0\" maxBytes=\"8388609\"", 8 << 20,
       "a.xml:4: rank 0 threadblock 0 step 0 waits in a circle above 8MiB: executors then move fewer than 2 "
       "chunks at a time, and have 2 such messages under way on a connection in protocol simple (with NCCL's "
       "buffers); sizes end there"},
      {"never", 4, "Simple", "minBytes=\"8388609\" maxBytes=\"0\"", 0,
       "a.xml:4: rank 0 threadblock 0 step 0 waits in a circle at every size that the file is for: it has 2 "
       "messages under way at most"},
      {"five at once", 5, "Simple", "", 10 * ((2 << 20) / 3), nullptr},
      {"LL has eight", 8, "LL", "", 0, ""},
      {"nine in LL", 9, "LL", "", 18 * (32 << 10) / 2, nullptr},
  };
  for (const Case& one : all) {
    SCOPED_TRACE(one.what);
    const StatusOr<Imported> read = ReadMscclXml(Swap(one.count, one.protocol, one.sizes), {.file = "a.xml"});
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->max_bytes, one.max_bytes);
    if (one.warning == nullptr) continue;
    EXPECT_EQ(read->warnings,
              *one.warning == '\0' ? std::vector<std::string>() : std::vector<std::string>{one.warning});
  }
}

// The steps' chunks are taken one by one, which is too much for files of very many.
TEST(MscclSizesTest, FilesOfTooManyChunksSayNothing) {
  std::string text = Swap(16'000, "LL", "");
  std::string more;
  for (int32_t s = 1; s < 530; ++s) more += Step(s, "cpy", 16'000, 16'000);
  text.insert(text.rfind("    </tb>"), more);
  const StatusOr<Imported> read = ReadMscclXml(text, {.file = "a.xml"});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->max_bytes, 0);
  EXPECT_EQ(
      read->warnings.back(),
      "a.xml: 8560000 chunks in all steps; expected 8388608 at most to say whether large ones wait in a "
      "circle");
}

// The writer takes exactly the sizes that the reader found to be safe.
TEST(MscclSizesTest, SafeSizesCanBeWrittenAgain) {
  const StatusOr<Imported> read = ReadMscclXml(Swap(4, "Simple", ""), {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto write = [&](int64_t max_bytes) {
    return WriteMscclXml(read->lowered.program, read->lowered.collective, {.max_bytes = max_bytes});
  };
  EXPECT_FALSE(write(0).ok());
  EXPECT_FALSE(write(read->max_bytes + 1).ok());
  const StatusOr<MscclXml> again = write(read->max_bytes);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_NE(again->text.find("maxBytes=\"8388608\""), std::string::npos) << again->text;
}

TEST(MscclSizesTest, RootsAreFound) {
  const Topology mesh = FullMesh(4);
  int32_t files = 0;
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce})
    for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
      const Collective collective = MakeCollective(kind, 4).WithChunks(3);  // root 2
      const std::optional<Schedule> schedule = HandSchedule(algorithm, collective, mesh);
      if (!schedule) continue;
      const StatusOr<LoweredProgram> lowered = LowerFoldedChecked(*schedule, collective, mesh);
      ASSERT_TRUE(lowered.ok()) << lowered.status().message();
      for (const bool in_place : {false, true}) {
        const StatusOr<MscclXml> xml =
            WriteMscclXml(lowered->program, lowered->collective,
                          {.target = MscclTarget::kMsccl, .in_place = in_place && lowered->program.in_place});
        ASSERT_TRUE(xml.ok()) << xml.status().message();
        const StatusOr<Imported> read = ReadMscclXml(xml->text, {});
        ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << xml->text;
        EXPECT_EQ(read->lowered.collective.spec().root, Rank(2));
        const StatusOr<Imported> other = ReadMscclXml(xml->text, {.root = Rank(1)});
        EXPECT_FALSE(other.ok());
        ++files;
      }
    }
  EXPECT_GE(files, 8);
}

// A file that is wrong whatever its root is says which one was taken.
TEST(MscclSizesTest, ErrorsNameTheRoot) {
  std::string text = Swap(1, "Simple", "");
  text.replace(text.find("allgather"), 9, "broadcast");
  EXPECT_EQ(
      ReadMscclXml(text, {.file = "a.xml"}).status().message(),
      "a.xml:13: rank 1 threadblock 0 step 0 has chunk 0 of its input, which ends before; hint: --root, "
      "which no file of these formats says; rank 0 was taken");
}

}  // namespace
}  // namespace xccl
