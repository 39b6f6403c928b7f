// The hosts of a cluster as its fabric sees them. Hosts whose GPUs a switch joins, beside their NICs, are one
// host here: the trays of a rack of NVL72. A port is a way out of a host and back over one cable to the
// fabric, with the GPU that uses it. The fabric is every other node that belongs to no host. A lane is an
// equal share of a port, and all hosts have equally many lanes. Lanes of one number lie on one rail where the
// machine has rails.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

struct Port {
  Rank gpu;
  NodeId node;                        // the host's last node: a NIC, or the GPU itself
  NodeId fabric;                      // the node outside, at the other end of the cable
  std::vector<LinkId> out;            // from the GPU to `fabric`
  std::vector<LinkId> in;             // from `fabric` to the GPU
  int64_t bandwidth_bytes_per_s = 0;  // if all ports of the host are used at once, in both directions
  int64_t latency_ps = 0;             // of `out` and `in` together, with overheads
};

struct RailHost {
  std::vector<Rank> gpus;  // members, ascending
  std::vector<Port> ports;
  std::vector<int32_t> lanes;  // by lane: index into `ports`; set by SetLanes
};

// Returns the host of each node, and of each switch that leads to GPUs of hosts with NICs alone, from 0 in
// the order of the file, or -1 for nodes of the fabric. Linear in nodes and links.
std::vector<int32_t> ScaleUpHosts(const Topology& topology);

// Finds the best ways from one GPU to the nodes of its host, or back, through no other GPU: the widest, of
// these the quickest.
class HostSearch {
 public:
  explicit HostSearch(const Topology& topology);
  // Searches from the GPU, or to the GPU if `backward`. Cost: the links of the host.
  void Run(Rank gpu, bool backward);
  bool Reaches(NodeId node) const { return stamp_[node.index()] == now_; }
  // The bandwidth of the best way, and its latency with overheads. Requires: Reaches(node).
  int64_t Width(NodeId node) const { return label_[node.index()].width; }
  int64_t Latency(NodeId node) const { return label_[node.index()].latency_ps; }
  // Returns the links of a best way in the order in which data pass them. Equally good ways take turns.
  // Requires: Reaches(node).
  std::vector<LinkId> Way(NodeId node, size_t turn) const;
  // The bandwidth of all links at the GPU that are on a best way to or from one of the ranks. Requires: ranks
  // of its host.
  int64_t BandwidthTo(std::span<const Rank> ranks);

 private:
  struct Label {
    int64_t width = 0, latency_ps = 0;
    int32_t hops = 0;
    bool operator==(const Label&) const = default;
    bool IsBetter(const Label& other) const;
  };
  NodeId Tail(LinkId l) const { return backward_ ? topology_->link(l).to : topology_->link(l).from; }
  NodeId Head(LinkId l) const { return backward_ ? topology_->link(l).from : topology_->link(l).to; }

  const Topology* topology_;
  std::vector<int32_t> host_;  // by node
  bool backward_ = false;
  NodeId source_;
  int32_t now_ = 0;
  std::vector<int32_t> stamp_;                  // by node: the last search that reached it
  std::vector<Label> label_;                    // by node
  std::vector<std::vector<LinkId>> last_link_;  // by node: the last links of its best ways
};

// Returns the links of a copy from a GPU to all others through one switch that multicasts, the link to the
// switch first; backwards, a switch that adds up, since the copy will be played so. Of several switches,
// takes the one whose links have the least load. Returns nullopt if no switch joins them, or there are no
// others. Cost: the links of the GPU's switches.
std::optional<std::vector<LinkId>> MulticastTo(const Topology& topology, Rank gpu,
                                               std::span<const Rank> others, bool backwards,
                                               std::span<const double> load);

// Returns the hosts of the members with their ports, the root's host first and the others in the order of the
// file after it. Every port belongs to the member with the best way to it; GPUs with equally good ways share
// the ports. Linear in nodes and links. Errors: kInvalidInput "ENGINE: ..." if all members are on one host,
// or if a host has no port.
StatusOr<std::vector<RailHost>> RailHosts(const Topology& topology, std::span<const Rank> members, Rank root,
                                          std::string_view engine);

// Returns the groups of hosts that switches make, the innermost level first: by level and host the number of
// its group, from 0 in the order of the groups' first hosts. Hosts of the first level share switches, or are
// joined by a chain of hosts that do; those of further levels are also joined by links between switches that
// are near hosts. Levels that have the groups of the level before, or one group, are left out. Near linear in
// nodes and links for each tier of switches.
std::vector<std::vector<int32_t>> HostGroups(const Topology& topology, std::span<const RailHost> hosts);

// A way to cut ports into lanes of one bandwidth.
struct LaneCut {
  int32_t lanes = 0;
  int64_t bandwidth_bytes_per_s = 0;  // of a lane
};
// Returns cuts with at least two lanes, of the host that has the fewest: each bandwidth of a port, and half.
std::vector<LaneCut> LaneCuts(std::span<const RailHost> hosts);
// Gives every host the lanes of a cut. Lanes of one number are on ports whose nodes have the same id, as far
// as hosts have such ports. Requires: a cut from LaneCuts(hosts).
void SetLanes(const Topology& topology, const LaneCut& cut, std::vector<RailHost>& hosts);

}  // namespace xccl
