#include "runtime/nccl/tuner/lookup.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace xccl::nccl_tuner {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// The meaning of a table: the rows are tried one by one.
const Row* FirstByTrial(const std::vector<Row>& rows, const Call& call, const Choices& choices) {
  for (const Row& row : rows)
    if (call.bytes >= row.min_bytes && call.bytes <= row.max_bytes &&
        (!row.pipe_ops || row.pipe_ops == call.pipe_ops) &&
        (!row.registered || row.registered == call.registered) &&
        choices[IndexOf(row.algorithm, row.protocol)])
      return &row;
  return nullptr;
}

// Few values, so that rows overlap, touch and repeat; the extremes among them.
int64_t SomeBytes(Random& random, int64_t values) {
  const auto value = static_cast<int64_t>(random.Below(static_cast<uint64_t>(values)));
  return random.Below(20) == 0 ? kMost - value : value;
}

Row SomeRow(Random& random, int64_t values) {
  Row row;
  row.min_bytes = SomeBytes(random, values);
  row.max_bytes = SomeBytes(random, values);
  if (row.min_bytes > row.max_bytes) std::swap(row.min_bytes, row.max_bytes);
  if (random.Below(3) == 0) row.pipe_ops = random.Below(3) + 1;
  if (random.Below(3) == 0) row.registered = random.Below(2) == 0;
  row.algorithm = static_cast<Algorithm>(random.Below(kNumAlgorithms));
  row.protocol = static_cast<Protocol>(random.Below(kNumProtocols));
  row.channels = static_cast<int>(random.Below(kMaxChannels)) + 1;
  return row;
}

Call SomeCall(Random& random, int64_t values) {
  Call call;
  call.bytes = SomeBytes(random, values + 1) - 1;  // -1 is what more than 2^63 bytes come to
  if (random.Below(3) != 0) call.pipe_ops = random.Below(4);
  if (random.Below(3) != 0) call.registered = random.Below(2) == 0;
  return call;
}

TEST(Lookup, FindsWhatTryingTheRowsInOrderFinds) {
  Random random(1);
  size_t found = 0;
  for (int table = 0; table < 1500; ++table) {
    const size_t size = table < 3 ? (kMaxRows >> table) : random.Below(30);
    const int64_t values = size > 30 ? 3000 : 1 + static_cast<int64_t>(random.Below(12));
    std::vector<Row> rows;
    for (size_t i = 0; i < size; ++i) rows.push_back(SomeRow(random, values));
    const Lookup lookup(rows);
    for (int i = 0; i < 200; ++i) {
      const Call call = SomeCall(random, values);
      // From one choice in eight to all.
      const uint64_t most = random.Next(), mask = random.Below(2) == 0 ? most : most & random.Next();
      const Choices choices = random.Below(4) == 0 ? ~Choices() : Choices(mask);
      const Row* expected = FirstByTrial(rows, call, choices);
      const Row* row = lookup.First(call, choices);
      ASSERT_EQ(row == nullptr, expected == nullptr) << "table " << table << ", call " << i;
      if (row == nullptr) continue;
      ASSERT_EQ(*row, *expected) << "table " << table << ", call " << i;
      ++found;
    }
  }
  EXPECT_GT(found, 30'000U);  // else the calls say little
}

TEST(Lookup, HasNothingToSayWithoutRows) {
  EXPECT_EQ(Lookup().First({.bytes = 1, .pipe_ops = 1, .registered = true}, ~Choices()), nullptr);
}

}  // namespace
}  // namespace xccl::nccl_tuner
