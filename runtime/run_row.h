// The result of running a collective: one row per size and mode, and nccl-tests' table made from rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/numbers.h"

namespace xccl {

// The most samples of a row. The spread of fewer samples is not shown, as it says little.
inline constexpr int32_t kSamples = 5;

struct RunRow {
  int64_t size_bytes = 0;  // the size that was run
  int64_t count = 0;       // elements of a rank's own share, as nccl-tests counts them
  bool in_place = false;
  double time_us = 0;                // one operation, mean over iterations and ranks
  double slowest_us = 0;             // time_us of the slowest rank
  std::vector<double> rank_us = {};  // time_us by rank; 0 for ranks that take no part
  // The iterations in up to kSamples equal parts, one after another: slowest_us of each part.
  std::vector<double> sample_us = {};
  double algbw_gb_per_s = 0;
  double busbw_gb_per_s = 0;
  std::optional<double> predicted_us;
  int64_t wrong = 0;          // elements that differ from what they must be, over all ranks
  int64_t out_of_bounds = 0;  // bytes written outside the buffers, elements of an input that must stay
};

struct RunTableOptions {
  std::string title;  // "allreduce", after "# Collective test starting: "
  std::string ranks;  // "8 ranks as threads"
  DataType type = DataType::kFloat;
  std::optional<ReduceOp> op;  // absent: "none"
  std::optional<Rank> root;    // absent: -1
  int32_t iterations = 0;
  std::optional<int32_t> warmup = 0;  // absent: until times settle
  std::string details = {};           // a line of its own; empty: none
  std::string predicted = {};         // says what the predicted times are for, likewise
};

// nccl-tests 2.19's table, with the predicted time as one more column, in three parts so that it can be
// printed as it grows. Rows as RunProgram returns them; the end sums up all of them.
std::string RunTableHead(const RunTableOptions& options);
std::string RunTableRows(std::span<const RunRow> rows, const RunTableOptions& options);
std::string RunTableEnd(std::span<const RunRow> all_rows, const RunTableOptions& options);
// The spread of the row's samples (base/spread.h); absent with fewer than kSamples samples.
std::optional<double> SpreadOf(const RunRow& row);
bool AllRight(std::span<const RunRow> rows);  // nothing wrong, nothing out of bounds

// A number in at most `width` characters: two decimals, then fewer, then an exponent.
std::string FitNumber(double value, int width);

}  // namespace xccl
