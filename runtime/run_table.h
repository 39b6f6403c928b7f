// The table of `xccl-synth run`, whatever the ranks run on: the cases, the memory of a rank before and after
// an operation, and one row per case made from the ranks' results. A driver (runtime/cpu/run_program.h,
// runtime/cuda/run_program.h) does for each of its ranks and each case: lay out memory, fill, warm up, time,
// fill again, run once more, check.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "ir/sizes.h"
#include "runtime/host/host_memory.h"
#include "runtime/run_row.h"
#include "runtime/test_data.h"

namespace xccl {

struct RunOptions {
  std::vector<int64_t> sizes_bytes = {64LL << 20};  // nccl-tests' sizes
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int32_t iterations = 20;
  std::optional<int32_t> warmup = 5;  // operations before the first that is timed; absent: until times settle
  bool processes = false;             // a process for every rank; else all ranks are of one
  bool in_place = true;               // rows in place as well, where the program can
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);  // without progress on any rank
  // A simulation's time for a size; absent where there is none.
  std::function<std::optional<int64_t>(int64_t size_bytes)> predicted_ps = {};
};

// One rank's result in one case.
struct RankResult {
  double seconds = 0;                          // one operation, mean over iterations
  std::array<double, kSamples> sample_s = {};  // one operation, mean over a sample's iterations (SampleOf)
  double warm_s = 0;                           // one operation, mean over a round of warming up
  int64_t wrong = 0;                           // elements of its output
  int64_t out_of_bounds = 0;                   // as RunRow
};

// Where a rank's input and output lie in one allocation of `bytes` bytes. Everything else in it is guard; in
// place they overlap as the collective says.
struct RunLayout {
  int64_t input_at = 0, input_bytes = 0;
  int64_t output_at = 0, output_bytes = 0;
  int64_t bytes = 0;
  bool overlaps = false;  // in place, where this rank has such a form
};

// Safe from any thread and, for results, from processes that are forked after Create.
class RunTable {
 public:
  struct Case {
    CollectiveSizes sizes;
    bool in_place = false;
  };
  // `ranks`: those that report a result for every case. Errors: kInvalidInput for a result that is not
  // defined (avg of a user-defined collective), or without enough memory. Program and collective outlive the
  // table. Requires: the program verifies.
  static StatusOr<RunTable> Create(const Program& program, const Collective& collective,
                                   const RunOptions& options, std::vector<Rank> ranks);

  // The options given, but a collective that only moves data has the operator sum, so that nothing is scaled.
  const RunOptions& options() const { return options_; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  // In order of size, out of place before in place; none in place for kinds or programs that have no such
  // mode.
  const std::vector<Case>& cases() const { return cases_; }

  RunLayout LayoutOf(const Case& now, Rank rank) const;
  // Guard everywhere, poison in the output, then the input. Requires: memory.size() == LayoutOf().bytes.
  void Fill(const Case& now, Rank rank, std::span<std::byte> memory) const;
  // Counts the elements and bytes that are wrong after an operation.
  void Check(const Case& now, Rank rank, std::span<const std::byte> memory, RankResult& result) const;

  RankResult& ResultOf(size_t index, Rank rank) const {
    const size_t ranks = static_cast<size_t>(program_->ranks.size());
    return results_.As<RankResult>(cases_.size() * ranks)[index * ranks + rank.index()];
  }
  // Iterations are timed in samples: sample i is the iterations from FirstOf(i) to FirstOf(i + 1).
  int32_t num_samples() const { return std::clamp(options_.iterations, 1, kSamples); }
  int32_t FirstOf(int32_t sample) const {
    return static_cast<int32_t>(int64_t{std::max(1, options_.iterations)} * sample / num_samples());
  }
  // The largest warm_s of a case. Ranks have written theirs before, to memory that all of them share.
  double SlowestWarm(size_t index) const;
  std::vector<RunRow> Rows() const;  // by case
  // Ranks that are processes of several hosts give each other their results. `all_gather`: all ranks give a
  // blob, and get those of all, by rank.
  using AllGather = std::function<StatusOr<std::vector<std::string>>(std::string_view mine)>;
  Status Share(Rank own, const AllGather& all_gather) const;

 private:
  RunTable(const Program& program, const Collective& collective, RunOptions options, std::vector<Rank> ranks,
           std::vector<Case> cases, TestData data, HostMemory results);
  RunRow RowOf(size_t index) const;

  const Program* program_;
  const Collective* collective_;
  RunOptions options_;
  std::vector<Rank> ranks_;
  std::vector<Case> cases_;
  TestData data_;
  HostMemory results_;  // [case][rank of the program]
};

// Ranks that hold data or forward it.
std::vector<Rank> ActiveRanks(const Program& program, const Collective& collective);

}  // namespace xccl
