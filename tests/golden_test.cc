// Compares plan files of small cases, and the code emitted from them, byte for byte. After an intended
// change, this command rewrites them; review the difference before you commit it:
//   XCCL_GOLDEN_DIR=$PWD/tests/golden bazel run //tests:golden_test
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/testing/command.h"

namespace xccl {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> arguments;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"allgather-torus-ring", {"torus:2x2", "-c", "allgather", "-e", "ring"}},
      {"allreduce-nvswitch-ring", {"nvswitch:4", "-c", "allreduce", "-e", "ring", "-s", "1MiB"}},
      {"allreduce-nvswitch-one-shot",
       {"nvswitch:8", "-c", "allreduce", "-e", "direct", "-s", "8KiB", "--machine", "hopper"}},
      {"allreduce-nvls-multicast",
       {"nvswitch:4@multicast=true,reduce=true", "-c", "allreduce", "-e", "multicast", "--chunks", "4"}},
      {"broadcast-dgx1-tree", {"dgx1", "-c", "broadcast", "--root", "3", "-e", "tree", "-s", "64KiB"}},
      {"alltoall-full-mesh-direct", {"full-mesh:4", "-c", "alltoall", "-e", "direct"}},
      {"allgather-fat-tree-greedy", {"fat-tree:k=2", "-c", "allgather", "-e", "greedy"}},
  };
  return cases;
}

TEST(Golden, PlanFilesAreTheSameBytes) {
  const std::string here = std::filesystem::current_path().string();
  const char* const rewrite = std::getenv("XCCL_GOLDEN_DIR");
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const std::string made = testing::TempDir() + "/" + c.name + ".plan.json";
    std::vector<std::string> arguments = {"plan"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    arguments.insert(arguments.end(), {"--verify-passes", "-o", made});
    const Said said = Command(here + "/cli/xccl-synth", arguments, here).Wait();
    ASSERT_EQ(said.code, 0) << said.err;
    const std::string text = WholeFile(made);
    ASSERT_FALSE(text.empty());
    if (rewrite != nullptr) {
      std::ofstream(std::string(rewrite) + "/" + c.name + ".plan.json", std::ios::binary) << text;
      continue;
    }
    EXPECT_TRUE(text == WholeFile("tests/golden/" + c.name + ".plan.json"))
        << "the plan file changed; see the head of golden_test.cc";
  }
}

// The code emitted from the plan files: CUDA for all, host code for one.
TEST(Golden, EmittedTextIsTheSameBytes) {
  const std::string here = std::filesystem::current_path().string();
  const char* const rewrite = std::getenv("XCCL_GOLDEN_DIR");
  for (const Case& c : Cases()) {
    for (const std::string target : {"cuda", "host"}) {
      if (target == "host" && c.name != "allreduce-nvswitch-ring") continue;
      SCOPED_TRACE(c.name + " " + target);
      const std::string file = c.name + (target == "cuda" ? ".cu.txt" : ".host.txt");
      const std::string made = testing::TempDir() + "/" + file;
      const Said said =
          Command(here + "/cli/xccl-synth",
                  {"emit", "tests/golden/" + c.name + ".plan.json", "--to", target, "-o", made}, here)
              .Wait();
      ASSERT_EQ(said.code, 0) << said.err;
      const std::string text = WholeFile(made);
      ASSERT_FALSE(text.empty());
      if (rewrite != nullptr) {
        std::ofstream(std::string(rewrite) + "/" + file, std::ios::binary) << text;
        continue;
      }
      EXPECT_TRUE(text == WholeFile("tests/golden/" + file))
          << "the text changed; see the head of golden_test.cc";
    }
  }
}

}  // namespace
}  // namespace xccl
