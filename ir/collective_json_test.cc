#include "ir/collective_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace xccl {
namespace {

std::string Written(const Collective& collective) {
  std::ostringstream out;
  JsonWriter writer(out);
  WriteCollectiveJson(collective, writer);
  writer.Finish();
  return out.str();
}

StatusOr<Collective> Read(std::string_view text, int32_t num_ranks) {
  StatusOr<JsonDocument> document = JsonDocument::Parse(text, "f");
  if (!document.ok()) return document.status();
  return ReadCollectiveJson(document->root(), num_ranks);
}

std::vector<Collective> Samples() {
  std::vector<Collective> samples;
  for (CollectiveKind kind : AllNamedCollectives()) {
    CollectiveSpec spec;
    spec.kind = kind;
    spec.ranks = {Rank(3), Rank(0), Rank(2)};
    if (IsRooted(kind)) spec.root = Rank(2);
    if (kind == CollectiveKind::kAllgatherv || kind == CollectiveKind::kReduceScatterv)
      spec.counts = {5, 0, 7};
    if (kind == CollectiveKind::kAlltoallv) spec.counts = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    if (kind == CollectiveKind::kSendrecv) spec.pairs = {{Rank(3), Rank(0)}, {Rank(0), Rank(2)}};
    samples.push_back(Collective::Create(spec).value());
    samples.push_back(samples.back().WithChunks(3));
  }
  CollectiveSpec custom;
  custom.kind = CollectiveKind::kCustom;
  custom.ranks = {Rank(0), Rank(1)};
  custom.custom_name = "a \"name\"";
  custom.custom_weights = {2, 1};
  custom.pre = {
      {Rank(0), PartId(0), {Rank(0)}}, {Rank(1), PartId(0), {Rank(1)}}, {Rank(1), PartId(1), {Rank(1)}}};
  custom.post = {{Rank(0), PartId(0), {Rank(0), Rank(1)}}, {Rank(0), PartId(1), {Rank(1)}}};
  samples.push_back(Collective::Create(custom).value());
  samples.push_back(samples.back().WithWeights({{1, 2, 3}, {0, 9}}));
  return samples;
}

TEST(CollectiveJson, ReadsWhatItWrites) {
  for (const Collective& collective : Samples()) {
    const std::string text = Written(collective);
    const StatusOr<Collective> read = Read(text, 4);
    ASSERT_TRUE(read.ok()) << read.status().message() << text;
    EXPECT_TRUE(*read == collective) << text;
    EXPECT_EQ(Written(*read), text);
  }
}

TEST(CollectiveJson, Text) {
  EXPECT_EQ(Written(Samples().back()), R"({
 "name":"a \"name\"",
 "ranks":[0,1],
 "root":null,
 "parts":[3,2],
 "weights":[1,2,3,0,9],
 "part_sizes":[2,1],
 "pre":[
  {"rank":0,"part":0,"contributions":[0]},
  {"rank":1,"part":0,"contributions":[1]},
  {"rank":1,"part":1,"contributions":[1]}
 ],
 "post":[
  {"rank":0,"part":0,"contributions":[0,1]},
  {"rank":0,"part":1,"contributions":[1]}
 ]
}
)");
}

TEST(CollectiveJson, Defaults) {
  const Collective all = Read(R"({"name": "allgather"})", 4).value();
  EXPECT_EQ(all.num_members(), 4);
  EXPECT_EQ(all.num_chunks(), 4);
}

TEST(CollectiveJson, ManyPartsOfOneChunkAreNotListed) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAlltoall;
  spec.ranks = AllRanks(1024);
  const Collective pairs = Collective::Create(std::move(spec)).value();
  const std::string text = Written(pairs);
  EXPECT_LT(text.size(), 10'000U);
  EXPECT_TRUE(Read(text, 1024).value() == pairs);
  const Collective cut = pairs.WithChunks(2);
  EXPECT_TRUE(Read(Written(cut), 1024).value() == cut);
}

TEST(CollectiveJson, Errors) {
  const struct {
    std::string text, expected;
  } cases[] = {
      {R"({"name": "allgater"})", "f: name: no collective 'allgater'; did you mean 'allgather'?"},
      {R"({"name": "allgather", "rank": [0]})", "f: unknown key 'rank'; did you mean 'ranks'?"},
      {R"({"ranks": [0]})", "f: no key 'name'; expected one"},
      {R"({"name": "allgather", "ranks": [0, 4]})", "f: ranks: entry 1 is 4; expected 0..3"},
      {R"({"name": "allgather", "ranks": [1, 1]})",
       "f: allgather: rank 1 is given twice; expected each rank once"},
      {R"({"name": "broadcast", "root": 9})", "f: root: 9; expected 0..3"},
      {R"({"name": "broadcast"})", "f: broadcast: no root; hint: --root=0"},
      {R"({"name": "alltoallv", "counts": [1, 2]})", "f: alltoallv: 2 counts; expected 16 for 4 ranks"},
      {R"({"name": "allgatherv", "counts": [1, 2, -1, 4]})",
       "f: counts: entry 2 is -1; expected 0..9223372036854775807"},
      {R"({"name": "sendrecv", "pairs": [[0, 1], [2]]})", "f: pairs: entry 1 has 1 ranks; expected 2"},
      {R"({"name": "sendrecv", "pairs": [[0, 1], [0, 1]]})",
       "f: sendrecv: pair 0>1 is given twice; expected each pair once"},
      {R"({"name": "allgather", "parts": [1, 1, 1], "weights": [1, 1, 1]})",
       "f: parts: 3 entries; expected 4, the parts of the collective"},
      {R"({"name": "allreduce", "parts": [3], "weights": [1, 1]})",
       "f: weights: 2 entries; expected 3, the chunks of parts"},
      {R"({"name": "allreduce", "parts": [2000000000], "weights": [1, 1]})",
       "f: weights: 2 entries; expected 2000000000, the chunks of parts"},
      {R"({"name": "allreduce", "parts": [2], "weights": [0, 0]})",
       "f: weights: part 0 has only zeros; expected a weight above 0"},
      {R"({"name": "allreduce", "parts": [0], "weights": []})",
       "f: parts: entry 0 is 0; expected 1..2147483647"},
      {R"({"name": "allreduce", "parts": [1]})", "f: no key 'weights'; expected one"},
      {R"({"name": "allreduce", "weights": [-1, "x"]})",
       "f: weights: given without parts; expected both or neither"},
      {R"({"name": "allreduce", "counts": []})", "f: counts: no entries; expected one or more"},
      {R"({"name": "allreduce", "pairs": []})", "f: pairs: no entries; expected one or more"},
      {R"({"name": "allreduce", "part_sizes": [1]})",
       "f: part_sizes: given without pre and post; expected all three or none"},
      {R"({"name": "c", "pre": []})", "f: no key 'part_sizes'; expected one"},
      {R"({"name": "c", "part_sizes": [1], "pre": []})", "f: no key 'post'; expected one"},
      {R"({"name": "c", "part_sizes": [], "pre": [], "post": []})",
       "f: part_sizes: no parts; expected at least one"},
      {R"({"name": "c", "root": 0, "part_sizes": [1], "pre": [], "post": []})",
       "f: root: not for a user-defined collective; expected pre and post alone"},
      {R"({"name": "c", "part_sizes": [1], "pre": [{"rank": 0, "part": 0}], "post": []})",
       "f: pre[0]: no key 'contributions'; expected one"},
      {R"({"name": "c", "part_sizes": [1], "pre": [{"rank": 0, "part": 3, "contributions": [0]}], "post": []})",
       "f: c: precondition of rank 0 part 3: no such part; parts are 0..0"},
  };
  for (const auto& c : cases) {
    const StatusOr<Collective> read = Read(c.text, 4);
    ASSERT_FALSE(read.ok()) << c.text;
    EXPECT_EQ(read.status().message(), c.expected);
  }
}

TEST(CollectiveJson, RefusesMoreChunksThanWeightsAddUp) {
  for (const bool fits : {true, false}) {
    const int64_t chunks = kMostPartChunks + (fits ? 0 : 1);
    std::string text = R"({"name": "allreduce", "parts": [)" + std::to_string(chunks) + R"(], "weights": [1)";
    for (int64_t c = 1; c < chunks; ++c) text += ",1";
    const StatusOr<Collective> read = Read(text + "]}", 2);
    EXPECT_EQ(read.ok() ? "" : read.status().message(),
              fits ? "" : "f: parts: part 0 has 8388608 chunks; at most 8388607 are supported");
  }
}

TEST(CollectiveFile, NeedsBothTables) {
  const std::string path = testing::TempDir() + "/collective.json";
  const auto read = [&](std::string_view text) {
    std::ofstream(path) << text;
    return ReadCollectiveFile(path, 2);
  };
  EXPECT_EQ(read(R"({"name": "allgather"})").status().message(), path + ": no key 'pre'; expected one");
  EXPECT_EQ(read("{").status().message(),
            path + ":1:2: truncated: the text ends inside its value; expected the rest");
  const StatusOr<Collective> swap = read(R"({
    "name": "swap", "part_sizes": [1, 1],
    "pre": [{"rank": 0, "part": 0, "contributions": [0]}, {"rank": 1, "part": 1, "contributions": [1]}],
    "post": [{"rank": 1, "part": 0, "contributions": [0]}, {"rank": 0, "part": 1, "contributions": [1]}]})");
  ASSERT_TRUE(swap.ok()) << swap.status().message();
  EXPECT_EQ(swap->name(), "swap");
  EXPECT_EQ(swap->num_parts(), 2);
  EXPECT_EQ(ReadCollectiveFile(path + ".none", 2).status().message(),
            path + ".none: cannot read: No such file or directory");
}

}  // namespace
}  // namespace xccl
