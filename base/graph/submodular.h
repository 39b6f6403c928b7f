// Sets where a submodular function is below zero. A function of sets is submodular if an element adds no more
// to a larger set: capacities of cuts and what joined sources can bring are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace xccl {

struct NegativeSetSearch {
  int32_t elements = 0;
  // The values of the first one, two, … elements of an order of all. The empty set has 0. Values are best
  // near one.
  std::function<std::vector<double>(std::span<const int32_t> order)> values_along;
  std::vector<int32_t> first_order;    // to begin with
  double tolerance = 1e-10;            // sets not below minus this are not looked for
  std::function<bool()> stopped = {};  // asked before each order; true ends the search
};

// A set below minus the tolerance, in ascending order; absent if there is none, or if the search was stopped.
// Cost: values_along() a few times where no set is near zero, mostly not more often than there are elements.
std::optional<std::vector<int32_t>> FindNegativeSet(const NegativeSetSearch& search);

}  // namespace xccl
