// Disjoint sets of the numbers below n, which are joined and never parted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace xccl {

class UnionFind {
 public:
  explicit UnionFind(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }

  // The one member that stands for i's set. Cost: logarithmic, amortised.
  int32_t Find(int32_t i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int32_t& parent = parent_[static_cast<size_t>(i)];
      i = parent = parent_[static_cast<size_t>(parent)];
    }
    return i;
  }
  // b's representative stands for both. False: they were one set already.
  bool Join(int32_t a, int32_t b) {
    a = Find(a);
    b = Find(b);
    parent_[static_cast<size_t>(a)] = b;
    return a != b;
  }

 private:
  std::vector<int32_t> parent_;
};

}  // namespace xccl
