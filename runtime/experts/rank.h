// One rank's part of an expert plan's calls, over its own connections alone: threads, processes and hosts run
// it alike. The counts are nowhere known beforehand; each rank counts what it gets. Design: docs/dispatch.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/received.h"
#include "ir/numbers.h"
#include "runtime/endpoint.h"
#include "runtime/experts/loan.h"
#include "runtime/experts/messages.h"
#include "runtime/experts/rows.h"
#include "runtime/experts/wires.h"

namespace xccl::dispatch {

// A rank's own tokens.
struct OwnTokens {
  int32_t count = 0;
  std::span<const int32_t> experts;  // by token and position; -1: none
  std::span<const float> weights;    // likewise; empty: all are 1
};

// The rows that a rank gives to combine.
enum class Outputs : uint8_t {
  kWeighted,  // a row for each entry, which counts times the entry's weight
  kPlain,     // a row for each entry
  kOfRows,    // a row for each row received: the rank's experts have been added up
};

// Not thread-safe.
class ExpertRank {
 public:
  // Requires: the endpoint's wiring is that of the wires, which outlive this.
  ExpertRank(const ExpertWires& wires, Endpoint& endpoint);

  // Says where the rows go, once it is known how many come. An error fails the call on all ranks.
  using Placer = std::function<StatusOr<RowPlace>(Received& received)>;

  // Sends this rank's tokens and takes those that its experts need. All ranks call it with rows of as many
  // bytes, a multiple of 16. Errors: kInvalidInput for choices that do not fit the plan, and where ranks are
  // in different calls; kLimit where no rank makes progress for `limit`; the reason why another rank failed.
  StatusOr<Received> Dispatch(const OwnTokens& own, const RowSource& rows, const Placer& place,
                              std::chrono::nanoseconds limit);
  // Sends other rows of the same tokens on the same ways: the backward pass of combine.
  Status DispatchAgain(const Received& ways, const RowSource& rows, const RowPlace& place,
                       std::chrono::nanoseconds limit);
  // Sends expert outputs back and adds them up; `outputs` is said by `of`, in the order of Received. Writes a
  // row for each own token to `sums`; zeros where no expert was chosen. The order of sums, in float: a rank
  // adds its own experts' rows in the order of the token's positions, then the rows of the ranks below it in
  // ascending order, and rounds once. With Sums::kOnWay the ranks below are its branches; with Sums::kHome
  // they are, at home alone, all that the token needs. Errors: as Dispatch; kInvalidInput for a type other
  // than float, half and bfloat16.
  Status Combine(const Received& ways, DataType type, int64_t elements, Outputs of, const std::byte* outputs,
                 std::byte* sums, std::chrono::nanoseconds limit);

  const Sizes& sizes() const { return wires_.plan->sizes; }
  int32_t rank() const { return endpoint_.rank().value; }

 private:
  friend class DispatchPart;
  friend class CombinePart;

  StatusOr<Received> SendNew(const OwnTokens& own, const RowSource& rows, const Placer& place,
                             std::chrono::nanoseconds limit);
  Status SendAgain(const Received& ways, const RowSource& rows, const RowPlace& place,
                   std::chrono::nanoseconds limit);
  Status SendBytes(const Received& ways, const RowSource& rows, const RowPlace& place, int64_t from,
                   std::chrono::nanoseconds limit);
  // Begins to lend rows: what stands for each of them in messages.
  std::vector<Loan> Lend(const RowSource& rows, int32_t count);
  // Copies lent rows, by row received, and waits until all ranks have. Clears lends_ where one could not.
  Status Take(const Received& ways, const RowSource& rows, const std::vector<Loan>& loans,
              const RowPlace& place, std::chrono::nanoseconds limit);
  // Makes a call. Where it fails its rows are the caller's again once no rank reads them.
  Status End(const std::function<Status()>& call);
  // A connection's slots hold all rows of a rank that has as many tokens as there can be.
  bool FitSlots(int64_t row_bytes) const;
  int64_t BytesThatFit(int64_t header_bytes) const;  // of a row with such a header, a multiple of 16

  const ExpertWires& wires_;
  Endpoint& endpoint_;
  std::vector<int32_t> in_, out_;  // hops into and out of the rank, in dispatch's direction
  std::vector<int32_t> place_;     // of a hop among those
  BranchFinder finder_;
  std::vector<std::byte>
      arrived_;  // a call's rows as they come; kept, since fresh memory costs as a copy does
  Lender lender_;
  bool lends_;                // rows that do not fit slots stay where they are; equal on all ranks
  bool with_threads_ = true;  // other ranks' memory is this process's
  uint64_t calls_ = 0;
};

// A Placer that keeps rows of so many bytes in Received::rows.
ExpertRank::Placer KeepRowsOf(int64_t row_bytes);

// Errors: kInvalidInput for types that combine does not add.
Status CheckCombineType(DataType type);

}  // namespace xccl::dispatch
