// Measures the network of hosts by running messages between their ranks: the cost of a message, the bytes
// that each host sends and receives per second, and which hosts share links. The result is a topology.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program on all ranks at an nccl-tests size and checks it: microseconds of one operation, by rank.
using MeasureRanks =
    std::function<StatusOr<std::vector<double>>(const LoweredProgram& lowered, int64_t size_bytes)>;

struct MeasuredLink {
  double alpha_us = 0;      // one way, of a message of kSmallBytes (programs.h)
  double overhead_us = 0;   // the cost of one more message
  double bytes_per_us = 0;  // with a large message
};

struct MeasuredHosts {
  std::vector<int32_t> host_of;    // by rank
  std::vector<std::string> names;  // by host
  MeasuredLink inside;             // between two ranks of one host; zeros where each has one
  MeasuredLink between;            // between hosts; its rate is the best pair's
  std::vector<double> out, in;     // bytes per us, by host: its best flow
  std::vector<int32_t> leaf;       // by host; hosts of different leaves share links
  std::vector<double> up, down;    // bytes per us, by leaf, to and from all other leaves
  double several = 0;  // the rate of several flows through one NIC ÷ that of one flow; 0: one rank
  std::vector<std::string> notices;  // rates that a star of leaves does not explain
};

// `hosts`: by rank. One message at a time, then the rounds of a tournament between hosts, in either
// direction: half of the hosts send, each to another. Hosts that reach each other at full rate in these
// rounds are of one leaf. Cost: 2 × hosts measurements of about 0.3 s. Requires: two ranks or more.
StatusOr<MeasuredHosts> MeasureHosts(const std::vector<int32_t>& hosts, std::vector<std::string> names,
                                     const MeasureRanks& measure);

// Hosts with a switch for their ranks and a NIC, joined by a switch, or by leaves and a spine.
StatusOr<Topology> TopologyOf(const MeasuredHosts& measured, const std::string& source);

}  // namespace xccl
