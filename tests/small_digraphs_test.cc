// Every strongly connected digraph on up to four GPUs, every collective, every engine.
#include <gtest/gtest.h>

#include "ir/time_model.h"
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
  size_t part = 0, parts = 1;  // takes every parts-th digraph, so that shards divide them
};

std::string NameOf(const Row& row) {
  return std::to_string(row.ranks) + "ranks" + std::to_string(row.size_bytes) + "bytes" +
         std::string(ToString(row.model)) + (row.chunks ? std::to_string(*row.chunks) + "chunks" : "") +
         (row.parts > 1 ? "part" + std::to_string(row.part) : "");
}
void PrintTo(const Row& row, std::ostream* out) { *out << NameOf(row); }

class SmallDigraphs : public ::testing::TestWithParam<Row> {};

TEST_P(SmallDigraphs, EveryCollectiveByEveryEngine) {
  const Row& row = GetParam();
  if (row.chunks && !LongRun()) GTEST_SKIP() << "only with XCCL_LONG=1";
  const std::vector<Topology> digraphs = StronglyConnectedDigraphs(row.ranks);
  for (size_t i = row.part; i < digraphs.size(); i += row.parts) {
    const Topology& topology = digraphs[i];
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
                         ::testing::Values(Row{1, 1 << 20, TimeModel::kPipelined, std::nullopt, 0, 1},
                                           Row{2, 1 << 20, TimeModel::kPipelined, std::nullopt, 0, 1},
                                           Row{2, 100, TimeModel::kBlocking, std::nullopt, 0, 1},
                                           Row{3, 1 << 20, TimeModel::kPipelined, std::nullopt, 0, 1},
                                           Row{3, 1000, TimeModel::kBlocking, std::nullopt, 0, 1},
                                           Row{4, 1 << 20, TimeModel::kPipelined, std::nullopt, 0, 4},
                                           Row{4, 1 << 20, TimeModel::kPipelined, std::nullopt, 1, 4},
                                           Row{4, 1 << 20, TimeModel::kPipelined, std::nullopt, 2, 4},
                                           Row{4, 1 << 20, TimeModel::kPipelined, std::nullopt, 3, 4},
                                           Row{4, 1000, TimeModel::kBlocking, 3, 0, 1},
                                           Row{4, 64 << 20, TimeModel::kBlocking, 1, 0, 1},
                                           Row{3, 64 << 20, TimeModel::kPipelined, 2, 0, 1},
                                           Row{2, 7, TimeModel::kPipelined, 5, 0, 1}),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace xccl::testing
