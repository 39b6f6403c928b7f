#include "pipeline/nccl/book.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/collective.h"
#include "ir/known_machines.h"
#include "runtime/plan_book.h"
#include "topologies/load/load.h"

namespace xccl::nccl {
namespace {

TuneRequest Request(const Topology& topology, std::vector<CollectiveKind> kinds, std::vector<int64_t> sizes) {
  TuneRequest request;
  for (const CollectiveKind kind : kinds) {
    CollectiveSpec spec;
    spec.kind = kind;
    spec.ranks = AllRanks(topology.num_ranks());
    if (IsRooted(kind)) spec.root = Rank(0);
    request.collectives.push_back(Collective::Create(std::move(spec)).value());
  }
  request.sizes_bytes = std::move(sizes);
  request.pipeline.machine = MachineOfArch(topology.gpu_arch());
  return request;
}

TEST(NcclBook, HasExactlyWhatPaysOff) {
  const Topology topology = LoadTopology("dgx-a100").value();
  const TuneRequest request =
      Request(topology, {CollectiveKind::kAllreduce, CollectiveKind::kBroadcast}, {1024, 65536, 64 << 20});
  constexpr double kGain = 1.2;
  const Book book = MakeBook(topology, request, kGain).value();
  ASSERT_EQ(book.rows.size(), 6U);
  const PlanBook index{"", book.entries};
  int kept = 0;
  for (const BookRow& row : book.rows) {
    EXPECT_EQ(row.kept, row.nccl.us >= kGain * row.ours.predicted_us);
    kept += row.kept;
    PlanQuery query;
    query.collective = row.ours.root ? CollectiveKind::kBroadcast : CollectiveKind::kAllreduce;
    query.ranks = 8;
    query.root = row.ours.root;
    query.size_bytes = row.ours.size_bytes;
    EXPECT_EQ(FindPlan(index, query).has_value(), row.kept) << row.ours.collective << row.ours.size_bytes;
  }
  EXPECT_GE(kept, 1);
  // Nothing is known beyond the last size.
  PlanQuery larger;
  larger.ranks = 8;
  larger.size_bytes = 1 << 30;
  EXPECT_FALSE(FindPlan(index, larger));
  for (const PlanBookEntry& entry : book.entries) EXPECT_TRUE(entry.max_bytes.has_value());
}

TEST(NcclBook, IsEmptyWhereNothingGainsEnough) {
  const Topology topology = LoadTopology("dgx-a100").value();
  const Book book =
      MakeBook(topology, Request(topology, {CollectiveKind::kAllgather}, {1024, 1 << 20}), 1e6).value();
  EXPECT_TRUE(book.entries.empty());
  EXPECT_TRUE(book.plans.empty());
  EXPECT_TRUE(book.steering.empty());
}

// Rows for the tuner are for this machine's communicator, and read back.
TEST(NcclBook, SteersWhereTheSimulationSaysSo) {
  const Topology topology = LoadTopology("dgx-a100").value();
  const TuneRequest request =
      Request(topology, {CollectiveKind::kAllreduce}, {1 << 10, 1 << 14, 1 << 18, 1 << 22});
  const Book book = MakeBook(topology, request, 1).value();
  for (const nccl_tuner::Row& row : book.steering) {
    EXPECT_EQ(row.nodes, 1);
    EXPECT_EQ(row.ranks, 8);
    EXPECT_LE(row.min_bytes, row.max_bytes);
  }
  EXPECT_EQ(nccl_tuner::ReadTable(nccl_tuner::WriteTable(book.steering), "t").value(), book.steering);
}

TEST(NcclBook, RefusesWhatNcclHasNoModelOf) {
  const Topology topology = LoadTopology("dgx-a100").value();
  EXPECT_EQ(
      MakeBook(topology, Request(topology, {CollectiveKind::kAlltoall}, {1024}), 1.1).status().message(),
      "alltoall: NCCL has no model of its time; expected broadcast, reduce, allgather, reduce_scatter or "
      "allreduce");
}

}  // namespace
}  // namespace xccl::nccl
