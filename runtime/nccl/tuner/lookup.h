// Finds the row that decides a call without trying all rows: the answer is that of trying them in order.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/nccl/tuner/abi.h"
#include "runtime/nccl/tuner/table.h"

namespace xccl::nccl_tuner {

// A set of pairs of an algorithm and a protocol.
using Choices = std::bitset<kNumAlgorithms * kNumProtocols>;

constexpr size_t IndexOf(Algorithm algorithm, Protocol protocol) {
  return static_cast<size_t>(algorithm) * kNumProtocols + static_cast<size_t>(protocol);
}

// The rows of one collective. Threads may share it, since nothing changes it.
class Lookup {
 public:
  Lookup() = default;
  // Requires: at most kMaxRows rows. Cost: O(rows · log rows) time and memory in proportion to the rows.
  explicit Lookup(std::vector<Row> rows);

  bool empty() const { return rows_.empty(); }

  // The first row whose conditions on the call hold and whose choice is among the choices; nullptr if there
  // is none. A condition on what the call does not say does not hold. The collective is not looked at, nor
  // are nodes and ranks. Cost: O(log rows).
  const Row* First(const Call& call, const Choices& choices) const;

 private:
  struct Candidate {
    uint16_t row, choice;
    bool operator==(const Candidate&) const = default;
  };
  using Conditions = std::pair<std::optional<int64_t>, std::optional<bool>>;  // on pipe_ops and registered
  // The rows with the same conditions. Interval i holds the sizes from begins[i] to before begins[i + 1];
  // its candidates, in the order of the table, are those from ends[i - 1] (or 0) to before ends[i].
  struct Group {
    Conditions conditions;
    std::vector<int64_t> begins;
    std::vector<uint32_t> ends;
    std::vector<Candidate> candidates;
  };

  Group GroupOf(const Conditions& conditions, std::span<const uint16_t> rows) const;
  std::span<const Candidate> CandidatesFor(const Conditions& conditions, int64_t bytes) const;

  std::vector<Row> rows_;
  std::vector<Group> groups_;  // in ascending order of their conditions
};

}  // namespace xccl::nccl_tuner
