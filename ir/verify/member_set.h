// A set of members of a collective, as rule S6 needs one for each rank. Sets of copies have one member, and
// sums mostly have members in a row, so a set is a list of runs. A set of more runs than a bitset has words
// is a bitset. In both forms a set has at most twice the memory of a bitset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace xccl {

class MemberSet {
 public:
  // Members are 0..members-1. Requires: members >= 1.
  explicit MemberSet(int32_t members) : members_(members) {}

  int32_t size() const { return size_; }
  // Keeps the memory for later members.
  void Clear();
  // Cost: constant if members come in ascending order, else linear in the runs. Requires: not in the set.
  void Add(int32_t member);
  // The first common member. Cost: linear in the runs of both, or in the words of a bitset.
  std::optional<int32_t> Common(const MemberSet& other) const;
  // Adds the members of the other set. Requires: no common member. Cost: as Common.
  void Unite(const MemberSet& other);
  std::vector<int32_t> Members() const;
  // Sets of different forms can be equal.
  bool operator==(const MemberSet& other) const;

 private:
  struct Run {
    int32_t first, end;  // end is exclusive
    bool operator==(const Run&) const = default;
  };
  size_t words() const { return (static_cast<size_t>(members_) + 63) / 64; }
  bool IsBits() const { return !bits_.empty(); }
  bool Has(int32_t member) const {
    return (bits_[static_cast<size_t>(member) / 64] >> (member % 64) & 1) != 0;
  }
  void SetBits(const Run& run);
  // Chooses the form again after a change.
  void Settle();

  int32_t members_, size_ = 0;
  std::vector<Run> runs_, merged_;  // ascending, with gaps between runs; empty where bits_ is used
  std::vector<uint64_t> bits_;
};

}  // namespace xccl
