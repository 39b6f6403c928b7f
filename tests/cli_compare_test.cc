// xccl-synth compare from outside.
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/cli.h"

namespace xccl {
namespace {

TEST_F(Cli, ComparesOnFailedMachines) {
  const Words words = {"compare", "torus:3x3", "-c",       "allgather",  "--sizes",
                       "1MiB",    "--engines", "ring,bfb", "--failures", "3"};
  const std::string text = Out(words);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "allgather on torus:3x3 with 1 of its cables failed, 3 draws: 9 ranks, pipelined model");
  Words json = words;
  json.emplace_back("--json");
  const Json rows = Json::parse(Out(json));
  ASSERT_GE(rows.size(), 2U);
  for (const Json& row : rows) {
    EXPECT_GE(row["ratio"], 1.0);
    EXPECT_GE(row["worst_ratio"], row["ratio"]);
    EXPECT_EQ(row["draws"], 3);
    EXPECT_LE(row["planned"], 3);
  }
  EXPECT_EQ(
      Run({"compare", "ring:4", "-c", "allgather", "--failures", "2", "--failed-cables", "2"}).err,
      "xccl-synth: ring:4 with 2 of its 4 cables failed: none of 100 draws left all ranks within reach\n");
  EXPECT_EQ(Run({"compare", "ring:1", "-c", "allgather", "--failures", "2"}).err,
            "xccl-synth: ring:1: no cables that could fail\n");
  EXPECT_EQ(Run({"compare", "ring:4", "-c", "allgather", "--failed-cables", "2"}).code, 2);
}

TEST_F(Cli, CompareNamesEnginesForOtherCollectivesInOneLine) {
  const std::string all = Out({"compare", "ring:3", "-c", "alltoall", "--sizes", "1KiB", "--engines", "all"});
  EXPECT_NE(all.find("\nleft out: ring, tree, "), std::string::npos) << all;
  EXPECT_NE(all.find(", bfb, forest: not for alltoall\n"), std::string::npos) << all;
  EXPECT_NE(all.find(" smt "), std::string::npos) << all;
  EXPECT_EQ(all.find("does not serve"), std::string::npos) << all;
  const std::string most = Out({"compare", "ring:3", "-c", "alltoall", "--sizes", "1KiB"});
  EXPECT_EQ(most.find("smt"), std::string::npos) << most;
  // An engine that the user named gives its own reason.
  const std::string ring =
      Out({"compare", "ring:3", "-c", "alltoall", "--sizes", "1KiB", "--engines", "ring,direct"});
  EXPECT_NE(ring.find("\nleft out: ring: does not serve alltoall; it serves allreduce, "), std::string::npos)
      << ring;
}

}  // namespace
}  // namespace xccl
