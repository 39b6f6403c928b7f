// Every strongly connected digraph on up to four GPUs, every collective, every engine.
#include <gtest/gtest.h>

#include "tests/testing/check.h"
#include "tests/testing/collectives.h"
#include "tests/testing/topologies.h"

namespace xccl::testing {
namespace {

TEST(SmallDigraphs, AreAllThere) {
  // The number of strongly connected digraphs on n unlabelled nodes: OEIS A035512.
  EXPECT_EQ(StronglyConnectedDigraphs(1).size(), 1u);
  EXPECT_EQ(StronglyConnectedDigraphs(2).size(), 1u);
  EXPECT_EQ(StronglyConnectedDigraphs(3).size(), 5u);
  EXPECT_EQ(StronglyConnectedDigraphs(4).size(), 83u);
}

struct Row {
  int32_t ranks;
  int64_t size_bytes;
  TimeModel model;
  std::optional<int32_t> chunks;
};

std::string NameOf(const Row& row) {
  return std::to_string(row.ranks) + "ranks" + std::to_string(row.size_bytes) + "bytes" +
         std::string(ToString(row.model)) + (row.chunks ? std::to_string(*row.chunks) + "chunks" : "");
}
void PrintTo(const Row& row, std::ostream* out) { *out << NameOf(row); }

class SmallDigraphs : public ::testing::TestWithParam<Row> {};

TEST_P(SmallDigraphs, EveryCollectiveByEveryEngine) {
  const Row& row = GetParam();
  if (row.chunks && !LongRun()) GTEST_SKIP() << "only with XCCL_LONG=1";
  for (const Topology& topology : StronglyConnectedDigraphs(row.ranks)) {
    for (const Collective& collective : AllCollectives(row.ranks)) {
      SynthesisRequest request;
      request.topology = &topology;
      request.collective = &collective;
      request.size_bytes = row.size_bytes;
      request.model = row.model;
      request.limits.chunks = row.chunks;
      CheckAllEngines(request);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SmallDigraphs,
                         ::testing::Values(Row{1, 1 << 20, TimeModel::kPipelined, std::nullopt},
                                           Row{2, 1 << 20, TimeModel::kPipelined, std::nullopt},
                                           Row{2, 100, TimeModel::kBlocking, std::nullopt},
                                           Row{3, 1 << 20, TimeModel::kPipelined, std::nullopt},
                                           Row{3, 1000, TimeModel::kBlocking, std::nullopt},
                                           Row{4, 1 << 20, TimeModel::kPipelined, std::nullopt},
                                           Row{4, 1000, TimeModel::kBlocking, 3},
                                           Row{4, 64 << 20, TimeModel::kBlocking, 1},
                                           Row{3, 64 << 20, TimeModel::kPipelined, 2},
                                           Row{2, 7, TimeModel::kPipelined, 5}),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace xccl::testing
