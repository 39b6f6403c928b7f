// Shares units of data out over the ports of one receiver as evenly as possible: the one optimisation problem
// of breadth-first broadcast. In: ports, each with a speed and a load that it has already; and types of
// units, each with the ports that its units may take. Out: a whole number of units for each (type, port). The
// sorted list of load ÷ speed, largest first, is least; its first entry is the receiver's time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xccl {

struct BalanceProblem {
  std::vector<double> base;     // by port: the load that it has already, in units; >= 0
  std::vector<double> speed;    // by port: > 0
  std::vector<int64_t> supply;  // by type: units; >= 0
  // Ports of type t: port[first[t] .. first[t + 1]), each once, at least one.
  std::vector<int32_t> first = {0};
  std::vector<int32_t> port;

  void AddType(int64_t units, std::span<const int32_t> ports);
};

// Returns the units of each entry of `port`. Deterministic; among equal choices the port listed first takes
// more. Cost: each augmentation takes ports × the entries of `port`. None is needed where filling up to one
// level leaves the ports even.
std::vector<int64_t> Balance(const BalanceProblem& problem);

}  // namespace xccl
