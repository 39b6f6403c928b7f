// Runs a fuzz target on the files of its corpus (the arguments) and on seeded changes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "tests/fuzz/fuzz.h"
#include "tests/testing/mutate_text.h"

namespace xccl::testing {
namespace {

std::vector<std::string> corpus;

TEST(Corpus, IsRead) {
  ASSERT_FALSE(corpus.empty());
  for (const std::string& text : corpus) FuzzOne(text);
}

TEST(Corpus, ChangesAreReadOrRefused) {
  constexpr int kChanges = 400;  // in all
  Random random(1);
  for (int change = 0; change < kChanges; ++change) {
    std::string text = corpus[random.Below(corpus.size())];
    for (uint64_t more = random.Below(4) + 1; more > 0; --more) text = MutateText(text, random);
    FuzzOne(text);
  }
}

}  // namespace
}  // namespace xccl::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  std::vector<std::string> files(argv + 1, argv + argc);
  std::ranges::sort(files);
  for (const std::string& file : files) xccl::testing::corpus.push_back(xccl::ReadFile(file).value());
  return RUN_ALL_TESTS();
}
