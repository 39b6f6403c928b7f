#include "dispatch/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/files.h"

namespace xccl::dispatch {
namespace {

Sizes Small() { return {.ranks = 4, .experts = 16, .top_k = 3, .max_tokens = 500, .row_bytes = 64}; }

TEST(Sizes, RefusalsAreSentences) {
  const auto refusal = [](auto change) {
    Sizes sizes = Small();
    change(sizes);
    return CheckSizes(sizes).message();
  };
  EXPECT_TRUE(CheckSizes(Small()).ok());
  EXPECT_EQ(refusal([](Sizes& s) { s.experts = 17; }),
            "experts: 17 on 4 ranks; expected a multiple of 4; hint: --experts=20");
  EXPECT_EQ(refusal([](Sizes& s) { s.top_k = 17; }),
            "top-k: 17 of 16 experts; expected at most as many as there are experts; hint: --top-k=16");
  EXPECT_EQ(refusal([](Sizes& s) { s.top_k = 0; }), "top-k: 0; expected 1 to 64; hint: --top-k=1");
  EXPECT_EQ(refusal([](Sizes& s) { s.row_bytes = 100; }),
            "row bytes: 100; expected a multiple of 16; hint: --row=112B");
  EXPECT_EQ(refusal([](Sizes& s) { s.max_tokens = 0; }),
            "tokens: 0; expected 1 to 1048576; hint: --tokens=1");
}

TEST(DrawRouting, ExpertsAreDifferentAndFit) {
  for (const char* text : {"uniform", "zipf:1.0", "zipf:8"}) {
    const Sizes sizes = Small();
    const auto source = ReadRoutingSource(text, sizes);
    ASSERT_TRUE(source.ok());
    Random random(1);
    const Routing routing = DrawRouting(*source, sizes, random);
    EXPECT_TRUE(CheckRouting(routing, sizes).ok()) << text;
    EXPECT_EQ(routing.TokensOf(3), 500);
    EXPECT_EQ(std::ranges::count(routing.experts, -1), 0);
  }
}

// Without replacement, the first expert alone follows the weights: 1, 1/2, 1/3, ...
TEST(DrawRouting, FollowsZipfsLaw) {
  Sizes sizes = Small();
  sizes.max_tokens = 20000;
  const RoutingSource source{.kind = RoutingSource::Kind::kZipf, .exponent = 1};
  Random random(7);
  const Routing routing = DrawRouting(source, sizes, random);
  std::vector<double> count(sizes.experts);
  for (int64_t t = 0; t < routing.first_token.back(); ++t) ++count[routing.ExpertsOf(t)[0]];
  std::ranges::sort(count, std::greater());
  double sum = 0;
  for (int i = 1; i <= sizes.experts; ++i) sum += 1.0 / i;
  for (int i = 0; i < sizes.experts; ++i) {
    const double expected = 80000 / sum / (i + 1);
    EXPECT_NEAR(count[i], expected, 6 * std::sqrt(expected)) << i;
  }
}

// facts: uniform top-8 of 256, 64 ranks: a token needs 7.27 of 32 ranks and 3.61 of 4 hosts.
TEST(RanksOf, DistinctRanksAreThoseOfTheHypergeometricLaw) {
  const Sizes sizes{.ranks = 32, .experts = 256, .top_k = 8, .max_tokens = 2000, .row_bytes = 16};
  Random random(3);
  const Routing routing = DrawRouting({}, sizes, random);
  std::vector<int32_t> ranks;
  double sum = 0;
  for (int64_t t = 0; t < routing.first_token.back(); ++t) {
    RanksOf(routing.ExpertsOf(t), sizes, ranks);
    sum += static_cast<double>(ranks.size());
  }
  EXPECT_NEAR(sum / 64000, 7.27, 0.02);
}

TEST(RoutingFile, JsonAndCsvAgree) {
  const Sizes sizes{.ranks = 3, .experts = 6, .top_k = 2, .max_tokens = 2, .row_bytes = 16};
  const std::string json = testing::TempDir() + "/routing.json", csv = testing::TempDir() + "/routing.csv";
  ASSERT_TRUE(WriteFileAtomically(json, R"({"routing": [[[0, 5], [3]], [], [[-1, 2]]]})").ok());
  ASSERT_TRUE(WriteFileAtomically(csv, "0,0,5\n2,-1,2\n0,3\n").ok());
  const auto first = ReadRoutingSource(json, sizes), second = ReadRoutingSource(csv, sizes);
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(first->of_file, second->of_file);
  EXPECT_EQ(first->of_file.experts, (std::vector<int32_t>{0, 5, 3, -1, -1, 2}));
  EXPECT_EQ(first->of_file.first_token, (std::vector<int64_t>{0, 2, 2, 3}));
}

TEST(RoutingFile, RefusalsNameThePlace) {
  const Sizes sizes{.ranks = 2, .experts = 6, .top_k = 2, .max_tokens = 1, .row_bytes = 16};
  const std::string path = testing::TempDir() + "/r";
  const auto refusal = [&](std::string_view text) {
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    std::string message = ReadRoutingSource(path, sizes).status().message();
    if (const size_t at = message.find(path); at != std::string::npos) message.replace(at, path.size(), "F");
    return message;
  };
  EXPECT_EQ(refusal("0,1,1\n"), "F: rank 0, token 0: expert 1 twice; expected each at most once");
  EXPECT_EQ(refusal("0,1\n0,2\n"), "F: rank 0: 2 tokens; expected at most 1; hint: --tokens=2");
  EXPECT_EQ(refusal("0,1,2,3\n"), "F:1: rank 0, token 0: 3 experts; expected at most 2; hint: --top-k");
  EXPECT_EQ(refusal("{\"routing\": [[]]}"), "F: routing: 1 rank; expected 2");
  EXPECT_NE(refusal("5,1\n").find("F:1: rank"), std::string::npos);
  EXPECT_EQ(ReadRoutingSource("unifrm", sizes).status().message(),
            "routing 'unifrm': no such file; expected uniform, zipf:EXPONENT or a file; did you mean "
            "'uniform'?");
  EXPECT_EQ(ReadRoutingSource("zipf:9", sizes).status().message(),
            "routing 'zipf:9': expected an exponent from 0 to 8, as in zipf:1.0");
}

}  // namespace
}  // namespace xccl::dispatch
