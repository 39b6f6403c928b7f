// Sharing out goods over the ports of one receiver as evenly as possible: the one optimisation problem of
// breadth-first broadcast. In: ports with a speed and a load that they have already, goods of several types,
// each with the ports that may take it. Out: whole units by (type, port) such that the sorted list of
// load ÷ speed, largest first, is least (so its first entry, the time of the receiver, is least too).
// Method: pour in, then move units along augmenting paths while that helps. Few types and ports are usual:
// goods that may take the same ports are one type.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xccl {

struct BalanceProblem {
  std::vector<double> base;     // by port: load before, in units; >= 0
  std::vector<double> speed;    // by port: > 0
  std::vector<int64_t> supply;  // by type: units; >= 0
  // Ports of type t: port[first[t] .. first[t + 1]), each once, at least one.
  std::vector<int32_t> first = {0};
  std::vector<int32_t> port;

  void AddType(int64_t units, std::span<const int32_t> ports);
};

// Units by entry of `port`. Deterministic; of equal choices the port listed first takes more.
// Cost: ports × Σ ports of types for every augmentation; none is needed where pouring in comes out even.
std::vector<int64_t> Balance(const BalanceProblem& problem);

}  // namespace xccl
