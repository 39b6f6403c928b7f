// Where a machine's ranks stand close together, and the paths between ranks. A domain is a set of ranks that
// reach each other without a NIC: the GPUs of a host, or of a rack with one NVLink switch. Rows for several
// ranks of one domain cross the fabric once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl::dispatch {

struct Domains {
  std::vector<int32_t> of_rank;               // numbered in the order of their lowest ranks
  std::vector<std::vector<int32_t>> members;  // by domain, ascending
  std::vector<int32_t> place;                 // by rank: its index among its domain's members

  int32_t size() const { return static_cast<int32_t>(members.size()); }
};

// Two ranks share a domain if links join them without a NIC and without a link that leaves a host whose GPUs
// reach each other inside it.
Domains FindDomains(const Topology& topology);

// Paths from GPU to GPU through no other GPU. The cost of a path is the time of one message of a given size
// on it, each link counted by itself: latency, overhead and bytes.
class Paths {
 public:
  // Cost: ranks × links; memory: ranks². Ends without all paths where the deadline will have passed by then.
  Paths(const Topology& topology, int64_t message_bytes, const Deadline& deadline = Deadline());

  // Seconds that all paths would take, where the deadline leaves less.
  std::optional<double> too_long_s() const { return too_long_s_; }

  // kForeverPs where there is no path, 0 from a rank to itself.
  int64_t Cost(int32_t from, int32_t to) const { return cost_[static_cast<size_t>(from) * ranks_ + to]; }
  bool Joins(int32_t from, int32_t to) const;

  // A path of least cost. Among several it follows the links that are fullest with the bytes of earlier calls
  // last, and adds `bytes` to its own. Fast where calls with the same `from` come one after another.
  // Requires: Joins(from, to), from != to.
  std::vector<LinkId> Take(int32_t from, int32_t to, int64_t bytes);
  // A path to `to` that comes in by the NIC of the path to `by`, where that NIC leads to `to` through no GPU
  // and no other NIC; else as Take.
  std::vector<LinkId> TakeByNicOf(int32_t by, int32_t from, int32_t to, int64_t bytes);

 private:
  void Search(NodeId from);
  std::vector<LinkId> Walk(NodeId from, NodeId to);  // does not count the bytes
  void Load(const std::vector<LinkId>& path, int64_t bytes);

  const Topology& topology_;
  int32_t ranks_;
  std::vector<int64_t> link_ps_;
  std::vector<int64_t> cost_;
  NodeId searched_ = NodeId(-1);   // the node that `distance_` is from
  std::vector<int64_t> distance_;  // by node
  std::vector<double> load_ps_;    // by link
  std::optional<double> too_long_s_;
};

}  // namespace xccl::dispatch
