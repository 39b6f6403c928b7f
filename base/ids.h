// Dense typed ids: a Rank cannot be passed where a NodeId is meant. An id is an index into the vector that
// owns the values; absent is std::optional, never -1. IdVector is such a vector that only its own id type
// can index.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/check.h"

namespace xccl {

template <typename Tag>
struct TypedId {
  int32_t value = 0;

  constexpr TypedId() = default;
  // Requires: `v` fits 32 bits. The check costs nothing where the argument is an int32_t.
  constexpr explicit TypedId(int64_t v) : value(static_cast<int32_t>(v)) { XCCL_CHECK(value == v); }
  constexpr auto operator<=>(const TypedId&) const = default;
  constexpr size_t index() const { return static_cast<size_t>(value); }
};

using Rank = TypedId<struct RankTag>;      // participant 0..R-1 of a topology: its GPUs in document order
using NodeId = TypedId<struct NodeTag>;    // vertex of a topology
using LinkId = TypedId<struct LinkTag>;    // directed edge of a topology
using HostId = TypedId<struct HostTag>;    // machine of a topology
using ChunkId = TypedId<struct ChunkTag>;  // unit of routing of a collective
using PathId = TypedId<struct PathTag>;    // interned list of links of a schedule

// Every rank of a topology of `n` ranks, in order.
inline std::vector<Rank> AllRanks(int32_t n) {
  std::vector<Rank> ranks;
  for (int32_t r = 0; r < n; ++r) ranks.emplace_back(r);
  return ranks;
}

template <typename Id, typename T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(size_t size, const T& value = T()) : items_(size, value) {}
  IdVector(std::initializer_list<T> items) : items_(items) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  decltype(auto) operator[](Id id) { return items_[id.index()]; }
  decltype(auto) operator[](Id id) const { return items_[id.index()]; }
  int32_t size() const { return static_cast<int32_t>(items_.size()); }
  bool empty() const { return items_.empty(); }
  bool Has(Id id) const { return id.value >= 0 && id.index() < items_.size(); }
  Id push_back(T item) {
    items_.push_back(std::move(item));
    return Id(static_cast<int64_t>(items_.size()) - 1);
  }
  void resize(size_t size, const T& value = T()) { items_.resize(size, value); }
  void reserve(size_t size) { items_.reserve(size); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  const std::vector<T>& items() const { return items_; }
  std::vector<T>& items() { return items_; }
  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> items_;
};

}  // namespace xccl
