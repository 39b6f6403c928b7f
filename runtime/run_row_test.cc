#include "runtime/run_row.h"

#include <gtest/gtest.h>

#include <vector>

namespace xccl {
namespace {

TEST(FitNumber, LosesDecimalsBeforeItTakesAnExponent) {
  struct Case {
    double value;
    int width;
    const char* expected;
  };
  for (const Case& c :
       {Case{1.234, 7, "1.23"}, Case{12345.678, 7, "12345.7"}, Case{1234567.8, 7, "1234568"},
        Case{12345678.0, 7, "1.2e+07"}, Case{1234.5, 6, "1234.5"}, Case{12345678.0, 6, "1e+07"}})
    EXPECT_EQ(FitNumber(c.value, c.width), c.expected);
}

RunRow Row(int64_t size_bytes, bool in_place, double time_us, double busbw) {
  RunRow row;
  row.size_bytes = size_bytes;
  row.count = size_bytes / 4;
  row.in_place = in_place;
  row.time_us = time_us;
  row.algbw_gb_per_s = busbw / 2;
  row.busbw_gb_per_s = busbw;
  return row;
}

TEST(RunTable, LooksLikeNcclTests) {
  std::vector<RunRow> rows = {Row(1024, false, 8.5, 0.25), Row(1024, true, 7.25, 0.5),
                              Row(67108864, false, 123456.78, 1.5)};
  rows[0].predicted_us = 1.5;
  rows[2].wrong = 3;
  RunTableOptions options;
  options.title = "allreduce";
  options.ranks = "8 ranks as threads";
  options.op = ReduceOp::kSum;
  options.iterations = 20;
  options.warmup = 5;
  EXPECT_EQ(RunTableHead(options) + RunTableRows(rows, options) + RunTableEnd(rows, options),
            R"(# Collective test starting: allreduce
# 8 ranks as threads warmup iters: 5 iters: 20 validation: 1
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong  predicted
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)               (us)
        1024           256     float     sum      -1     8.50    0.12    0.25       0     7.25    0.25    0.50       0       1.50
    67108864      16777216     float     sum      -1   123457    0.75    1.50       3      N/A     N/A     N/A     N/A        N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.75 
#
# Collective test concluded: allreduce
)");
  options.predicted = "times on ring:8's links";
  EXPECT_NE(RunTableHead(options).find("validation: 1\n# predicted: times on ring:8's links\n#\n"),
            std::string::npos);
  options.warmup.reset();
  EXPECT_NE(RunTableHead(options).find("warmup iters: until times settle iters: 20 validation: 1\n"),
            std::string::npos);
  EXPECT_FALSE(AllRight(rows));
  EXPECT_TRUE(AllRight(std::span(rows).first(2)));
}

TEST(RunTable, SaysTheLargestSpreadOfItsRows) {
  std::vector<RunRow> rows = {Row(1024, false, 8, 0.25), Row(1024, true, 8, 0.25)};
  rows[0].sample_us = {8, 8, 8, 8, 8};
  rows[1].sample_us = {10, 9, 11, 9, 11};
  EXPECT_EQ(SpreadOf(rows[0]), 0.0);
  EXPECT_NEAR(*SpreadOf(rows[1]), 0.0831, 1e-4);
  EXPECT_NE(RunTableEnd(rows, {}).find(
                "# Spread of the times  : up to 8 % (standard error of the median of 5 samples)\n"),
            std::string::npos);
  for (RunRow& row : rows) row.sample_us.pop_back();  // as with --iters 4
  EXPECT_EQ(SpreadOf(rows[0]), std::nullopt);
  EXPECT_EQ(RunTableEnd(rows, {}).find("Spread"), std::string::npos);
}

}  // namespace
}  // namespace xccl
