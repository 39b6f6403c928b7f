// A full set is one run in any case, because most sums end full and are compared then.
#include "ir/verify/member_set.h"

#include <algorithm>

namespace xccl {

void MemberSet::Clear() {
  size_ = 0;
  runs_.clear();
  bits_.clear();
}

void MemberSet::SetBits(const Run& run) {
  for (int32_t m = run.first; m < run.end;) {
    if (m % 64 == 0 && run.end - m >= 64) {
      bits_[static_cast<size_t>(m) / 64] = ~uint64_t{0};
      m += 64;
    } else {
      bits_[static_cast<size_t>(m) / 64] |= uint64_t{1} << (m % 64);
      ++m;
    }
  }
}

void MemberSet::Settle() {
  if (size_ == members_) {
    bits_.clear();
    runs_.assign(1, {0, members_});
  } else if (!IsBits() && runs_.size() > words()) {
    bits_.assign(words(), 0);
    for (const Run& run : runs_) SetBits(run);
    runs_.clear();
  }
}

void MemberSet::Add(int32_t member) {
  ++size_;
  if (IsBits()) {
    SetBits({member, member + 1});
  } else if (!runs_.empty() && runs_.back().end == member) {
    ++runs_.back().end;
  } else if (runs_.empty() || runs_.back().end < member) {
    runs_.push_back({member, member + 1});
  } else {
    const auto after = std::ranges::upper_bound(runs_, member, {}, &Run::first);
    const bool joins_before = after != runs_.begin() && std::prev(after)->end == member;
    const bool joins_after = after->first == member + 1;
    if (joins_before && joins_after) {
      std::prev(after)->end = after->end;
      runs_.erase(after);
    } else if (joins_before) {
      ++std::prev(after)->end;
    } else if (joins_after) {
      --after->first;
    } else {
      runs_.insert(after, {member, member + 1});
    }
  }
  Settle();
}

std::optional<int32_t> MemberSet::Common(const MemberSet& other) const {
  if (IsBits() && other.IsBits()) {
    for (size_t w = 0; w < words(); ++w)
      if (const uint64_t both = bits_[w] & other.bits_[w]; both != 0)
        return static_cast<int32_t>(w) * 64 + __builtin_ctzll(both);
    return std::nullopt;
  }
  if (other.IsBits()) return other.Common(*this);
  if (IsBits()) {
    for (const Run& run : other.runs_)
      for (int32_t m = run.first; m < run.end; ++m)
        if (Has(m)) return m;
    return std::nullopt;
  }
  for (auto a = runs_.begin(), b = other.runs_.begin(); a != runs_.end() && b != other.runs_.end();) {
    const int32_t first = std::max(a->first, b->first);
    if (first < std::min(a->end, b->end)) return first;
    ++(a->end < b->end ? a : b);
  }
  return std::nullopt;
}

void MemberSet::Unite(const MemberSet& other) {
  size_ += other.size_;
  if (other.IsBits() && !IsBits()) {
    bits_ = other.bits_;
    for (const Run& run : runs_) SetBits(run);
    runs_.clear();
  } else if (other.IsBits()) {
    for (size_t w = 0; w < words(); ++w) bits_[w] |= other.bits_[w];
  } else if (IsBits()) {
    for (const Run& run : other.runs_) SetBits(run);
  } else {
    merged_.clear();
    const auto add = [&](const Run& run) {
      if (!merged_.empty() && merged_.back().end == run.first)
        merged_.back().end = run.end;
      else
        merged_.push_back(run);
    };
    auto a = runs_.begin();
    for (const Run& run : other.runs_) {
      for (; a != runs_.end() && a->first < run.first; ++a) add(*a);
      add(run);
    }
    for (; a != runs_.end(); ++a) add(*a);
    runs_.swap(merged_);
  }
  Settle();
}

std::vector<int32_t> MemberSet::Members() const {
  std::vector<int32_t> members;
  for (int32_t m = 0; IsBits() && m < members_; ++m)
    if (Has(m)) members.push_back(m);
  for (const Run& run : runs_)
    for (int32_t m = run.first; m < run.end; ++m) members.push_back(m);
  return members;
}

bool MemberSet::operator==(const MemberSet& other) const {
  if (size_ != other.size_) return false;
  if (IsBits() == other.IsBits()) return runs_ == other.runs_ && bits_ == other.bits_;
  if (IsBits()) return other == *this;
  return std::ranges::all_of(runs_, [&](const Run& run) {
    for (int32_t m = run.first; m < run.end; ++m)
      if (!other.Has(m)) return false;
    return true;
  });
}

}  // namespace xccl
