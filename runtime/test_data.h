// Inputs whose result is exact in every order of reduction, so that outputs are compared bit by bit; and
// distinct between ranks, parts and places, so that data in the wrong place is found. The idea is nccl-tests'
// verifiable inputs; the patterns are our own (the .cc explains them, type by type).
//
// Element i of part p of contributor r is table_r[place(p, i)]: a table of a prime number of values,
// read with a rotation that differs for every part and for every lap through the table. The expected sum is
// such a table too, so filling and checking cost one memcpy or memcmp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/sizes.h"

namespace xccl {

class TestData {
 public:
  // Tables for everything that the pre- and postconditions mention, short ones where the largest part, of
  // `largest_part` elements, is small. Immutable afterwards. Errors: kInvalidInput where the expected value
  // is not defined (avg of a user-defined collective).
  static StatusOr<TestData> Create(const Collective& collective, DataType type, ReduceOp op,
                                   int64_t largest_part);

  // Fills a rank's input buffer. Requires: `input` is as large as the rank's input parts at `sizes`.
  void Fill(const CollectiveSizes& sizes, Rank rank, std::byte* input) const;
  // The number of elements of a rank's output that are not, bit for bit, what they should be.
  int64_t CountWrong(const CollectiveSizes& sizes, Rank rank, const std::byte* output) const;
  // The number of elements of a rank's input that differ from what Fill wrote.
  int64_t CountChanged(const CollectiveSizes& sizes, Rank rank, const std::byte* input) const;

 private:
  struct Piece {
    PartId part;
    int32_t table = 0;
  };
  TestData(const Collective& collective, DataType type, ReduceOp op)
      : collective_(&collective), type_(type), op_(op), element_bytes_(SizeOf(type)) {}
  int32_t TableOf(const std::vector<Rank>& contributions, bool complete);
  std::vector<std::byte> MakeTable(const std::vector<Rank>& contributions, bool complete);
  int64_t Differences(const CollectiveSizes& sizes, const std::vector<Piece>& pieces,
                      const std::byte* data) const;

  const Collective* collective_;  // outlives this
  DataType type_;
  ReduceOp op_;
  int64_t element_bytes_;
  int64_t table_elements_ = 0;  // prime, so that no power of two falls on its laps
  std::map<std::pair<std::vector<Rank>, bool>, int32_t> table_ids_;
  std::vector<std::vector<std::byte>> tables_;
  std::map<Rank, std::vector<Piece>> inputs_, outputs_;
};

}  // namespace xccl
