// Distributes units of data over the ports of one receiver as evenly as possible. Breadth-first broadcast
// solves this problem once for each receiver and level (synth/bfb/receiver.h).
//
// Input: ports, each with a speed and an initial load; and types of units, each with the ports that may carry
// its units. Output: for each type, a whole number of units for each of its ports. The largest load ÷ speed
// of a port, the receiver's time, is as small as possible. If all speeds are equal and all loads are whole,
// the list of loads, largest first, is lexicographically least.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xccl {

struct BalanceProblem {
  std::vector<double> base;     // by port: the initial load in units; >= 0
  std::vector<double> speed;    // by port: units per time; > 0
  std::vector<int64_t> supply;  // by type: the units to distribute; >= 0
  // Type t may use the ports port[first[t]] to port[first[t + 1] - 1]: at least one, each listed once.
  std::vector<int32_t> first = {0};
  std::vector<int32_t> port;

  void AddType(int64_t units, std::span<const int32_t> ports);
};

// Returns the number of units for each entry of `port`. Deterministic: of equal choices, the port listed
// first takes more. Cost: each exchange takes up to ports × entries of `port`. No exchange is needed if the
// first filling leaves the ports even.
std::vector<int64_t> Balance(const BalanceProblem& problem);

}  // namespace xccl
