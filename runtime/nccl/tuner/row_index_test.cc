#include "runtime/nccl/tuner/row_index.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/random.h"

namespace xccl::nccl_tuner {
namespace {

const Row* FirstByScan(const std::vector<Row>& rows, const Call& call, const auto& suits) {
  for (const Row& row : rows)
    if (Applies(row, call) && suits(row)) return &row;
  return nullptr;
}

Row RandomRow(Random& random) {
  Row row;
  row.min_bytes = static_cast<int64_t>(random.Below(40));
  row.max_bytes = row.min_bytes + static_cast<int64_t>(random.Below(20));
  if (random.Below(4) == 0) row.max_bytes = std::numeric_limits<int64_t>::max();
  if (random.Below(3) == 0) row.pipe_ops = static_cast<int64_t>(random.Below(3));
  if (random.Below(3) == 0) row.registered = random.Below(2) == 0;
  if (random.Below(3) == 0) row.chunk_bytes = kChunkUnitBytes;
  row.algorithm = static_cast<Algorithm>(random.Below(3));
  row.protocol = static_cast<Protocol>(random.Below(2));
  row.channels = static_cast<int>(1 + random.Below(60));
  return row;
}

TEST(RowIndex, FindsWhatAScanFinds) {
  Random random(1);
  for (int table = 0; table < 400; ++table) {
    std::vector<Row> rows;
    for (size_t count = random.Below(40); rows.size() < count;) rows.push_back(RandomRow(random));
    const RowIndex index(rows);
    for (int call = 0; call < 200; ++call) {
      Call asked = {static_cast<int>(Collective::kAllreduce), static_cast<int64_t>(random.Below(70)), {}, {}};
      if (random.Below(2) == 0) asked.pipe_ops = static_cast<int64_t>(random.Below(3));
      if (random.Below(2) == 0) asked.registered = random.Below(2) == 0;
      const uint64_t offered = random.Below(64);
      const bool chunked = random.Below(3) == 0;
      const auto suits = [&](const Row& row) {
        const int choice = static_cast<int>(row.algorithm) * 2 + static_cast<int>(row.protocol);
        return (offered >> choice & 1) != 0 && (!chunked || row.chunk_bytes);
      };
      const Row* const scanned = FirstByScan(rows, asked, suits);
      const Row* const found = index.First(asked, suits);
      ASSERT_EQ(scanned == nullptr, found == nullptr);
      if (found == nullptr) continue;
      ASSERT_EQ(*found, *scanned);
    }
  }
}

TEST(RowIndex, IsEmptyWithoutRows) {
  const auto any = [](const Row&) { return true; };
  EXPECT_EQ(RowIndex().First({}, any), nullptr);
  EXPECT_EQ(RowIndex(std::vector<Row>()).First({}, any), nullptr);
}

}  // namespace
}  // namespace xccl::nccl_tuner
