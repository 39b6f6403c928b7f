// Measures the network between hosts by sending messages between their ranks: the cost of a message, the
// rates at which each host sends and receives, and which hosts share links. The result is a topology.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

// Runs a program on all ranks at a size (as nccl-tests counts it) and checks the results. Returns the
// microseconds of one operation, by rank.
using MeasureRanks =
    std::function<StatusOr<std::vector<double>>(const LoweredProgram& lowered, int64_t size_bytes)>;

struct MeasuredLink {
  double alpha_us = 0;      // one-way time of a message of kSmallBytes (programs.h)
  double overhead_us = 0;   // time that one more message adds
  double bytes_per_us = 0;  // rate of a large message
};

struct MeasuredHosts {
  std::vector<int32_t> host_of;    // by rank
  std::vector<std::string> names;  // by host
  MeasuredLink inside;             // between two ranks of one host; zeros if no host has two ranks
  MeasuredLink between;            // between the first ranks of hosts 0 and 1; zeros if there is one host
  std::vector<double> out, in;     // bytes per us, by host: rate of its fastest flow
  std::vector<int32_t> leaf;       // leaf switch of each host; flows between leaves share links
  std::vector<double> up, down;    // bytes per us, by leaf: to and from all others, the most in one round
  double several = 0;  // slowest of several flows between two hosts × their number ÷ rate of one; 0: unknown
  std::vector<std::string> notices;  // rates that the leaves do not explain
};

// Measures the hosts. `hosts` gives the host of each rank. First measures single messages. Then lets all
// hosts exchange data in the rounds of a tournament: in each round half of the hosts send, each to another
// host. Two hosts are on one leaf if they reach full rate with each other in all rounds. If such leaves do
// not explain all rates, all hosts are on one leaf, and `notices` say so. Cost: about 4 × hosts measurements
// of 0.3 s. Requires at least two ranks, and a rank on each host. Errors: those of `measure`.
StatusOr<MeasuredHosts> MeasureHosts(const std::vector<int32_t>& hosts, std::vector<std::string> names,
                                     const MeasureRanks& measure);

// Returns the measured hosts as a topology. A host has a GPU for each rank. A switch joins the GPUs if the
// host has several. If there are several hosts, each has one NIC; one switch, or leaf switches and a spine,
// join the NICs.
StatusOr<Topology> TopologyOf(const MeasuredHosts& measured, const std::string& source);

}  // namespace xccl
