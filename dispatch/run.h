// Runs an expert plan on the CPU, a thread for each rank: dispatch and combine with the routes, messages and
// slots of the plan. The counts are nowhere known beforehand; each rank counts what it gets.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/routing.h"
#include "ir/numbers.h"

namespace xccl::dispatch {

// Tokens that one rank's dispatch saw: those it needs, and those it only passes on. They are in the order of
// (home, token), so the same choices give the same order at every run.
struct Seen {
  std::vector<int32_t> homes, tokens;
  std::vector<int32_t> experts;  // by token seen and position, as in Routing
  std::vector<float> weights;    // likewise
  std::vector<int32_t> rows;     // by token seen: its row in Received::rows, or -1 where it is passed on

  size_t size() const { return homes.size(); }
};

// One rank's end of a dispatch, and the handle of the combine that belongs to it.
struct Received {
  std::vector<std::byte> rows;          // row_bytes for each row, by (home, token); own tokens are among them
  std::vector<int32_t> rows_of_home;    // by rank
  std::vector<int32_t> rows_of_expert;  // by local expert
  std::vector<int32_t> first_of_expert;  // sums of rows_of_expert before each; one more at the end
  // Entries by local expert, then row: where the input of each expert's computation is.
  std::vector<int32_t> row_of_entry;
  std::vector<float> weight_of_entry;
  Seen seen;
};

// Rows of one rank, one after another.
using Rows = std::vector<std::byte>;

class ExpertTeam {
 public:
  // Threads wait for work until the team ends. `patience`: a call in which no rank makes progress for so long
  // fails. Requires: the plan is proved and outlives the team. Errors: kInvalidInput for stages that do not
  // rise with the depth; kSystem.
  static StatusOr<std::unique_ptr<ExpertTeam>> Create(const ExpertPlan& plan,
                                                      std::chrono::nanoseconds patience);
  virtual ~ExpertTeam() = default;

  // rows: by rank, row_bytes for each of its tokens. Errors: kInvalidInput where the routing or the rows do
  // not fit; kSystem where no rank makes progress.
  virtual StatusOr<std::vector<Received>> Dispatch(const Routing& routing, std::span<const Rows> rows) = 0;

  // Sends expert outputs back and adds them up. outputs: by rank, a row of the type for each of its entries,
  // in their order; all rows have `elements` elements. Returns, by rank, a row for each of its tokens; zeros
  // where no expert was chosen. Order of sums, in float: a rank adds weight × row of its own experts in the
  // order of the token's positions, then the rows of the ranks below it in ascending order, and rounds once.
  // With Sums::kOnWay the ranks below are its branches; with Sums::kHome they are, at home alone, all that
  // the token needs.
  virtual StatusOr<std::vector<Rows>> Combine(std::span<const Received> received, DataType type,
                                              int64_t elements, std::span<const Rows> outputs) = 0;

 protected:
  ExpertTeam() = default;
};

}  // namespace xccl::dispatch
