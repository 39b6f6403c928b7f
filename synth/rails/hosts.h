// The hosts of a cluster with their ports and lanes.
// - Fabric: all nodes that belong to no host. GPUs of several hosts may share a switch beside their NICs, as
//   the trays of an NVL72 rack do. These hosts then count as one host, and the switch belongs to it.
// - Port: a cable from a host to the fabric and back, with the GPU that uses it and the links between them.
// - Lane: an equal share of a port. All hosts have equally many lanes. Lanes with one number lie on one rail
//   if the machine has rails.
// - Way: a part of a path, such as its links inside one host.
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
  NodeId node;                        // the cable's end in the host: a NIC, or the GPU itself
  NodeId fabric;                      // the cable's other end
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

// Returns the host of each node, numbered from 0 in the order of the file, or -1 for nodes of the fabric. A
// switch outside hosts belongs to a host if only GPUs have links to it and their hosts have NICs. If such
// switches would join all hosts, they belong to the fabric. Linear in nodes and links.
std::vector<int32_t> ScaleUpHosts(const Topology& topology);

// Finds the best ways between one GPU and the nodes of its host, through no other GPU. Wider ways are better;
// of equally wide ways the quickest is best.
class HostSearch {
 public:
  explicit HostSearch(const Topology& topology);
  // Searches from the GPU, or to the GPU if `backward`. Cost: the links of the host.
  void Run(Rank gpu, bool backward);
  bool Reaches(NodeId node) const { return stamp_[node.index()] == now_; }
  // Return the bandwidth of the best way, and its latency with overheads. Requires: Reaches(node).
  int64_t Width(NodeId node) const { return label_[node.index()].width; }
  int64_t Latency(NodeId node) const { return label_[node.index()].latency_ps; }
  // Returns the links of a best way in the order in which data pass them. `turn` chooses one of several
  // equally good ways. Requires: Reaches(node).
  std::vector<LinkId> Way(NodeId node, size_t turn) const;
  // Returns the total bandwidth of the GPU's links that are on best ways between the GPU and the ranks.
  // Requires: the ranks are on the GPU's host.
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

// Returns the links of a multicast from a GPU to `others` through one switch, the link to the switch first.
// If `backwards`, the copy will be played backwards, so the switch must add up instead. Takes the switch
// whose busiest link has the least load ÷ bandwidth. Returns nullopt if no such switch joins all ranks, or if
// there are no others. Cost: the links of the GPU's switches.
std::optional<std::vector<LinkId>> MulticastTo(const Topology& topology, Rank gpu,
                                               std::span<const Rank> others, bool backwards,
                                               std::span<const double> load);

// Returns the hosts of the members with their ports. The root's host comes first; the hosts after it in the
// file follow, and then those before it. Every port belongs to the member with the best way to it. Members
// with equally good ways share the ports evenly. Cost: linear in nodes and links, and for each member two
// searches of its host. Errors: kInvalidInput "ENGINE: ..." if all members are on one host, or if a host has
// no port.
StatusOr<std::vector<RailHost>> RailHosts(const Topology& topology, std::span<const Rank> members, Rank root,
                                          std::string_view engine);

// Returns the number of each host's group, by level and host. The hosts of a group are near each other.
// Groups are numbered from 0 in the order of their first hosts. The innermost level comes first: hosts that
// share a switch, or are joined by a chain of hosts that do. Each further level also joins groups over links
// between switches, first switches that are near hosts. Leaves out a level if it has one group, or as many
// groups as the level before. Near linear in nodes and links for each tier of switches.
std::vector<std::vector<int32_t>> HostGroups(const Topology& topology, std::span<const RailHost> hosts);

// A cut of the ports of all hosts into lanes of one bandwidth.
struct LaneCut {
  int32_t lanes = 0;
  int64_t bandwidth_bytes_per_s = 0;  // of a lane
};
// Returns the cuts with lanes of some port's bandwidth, or half of it, and at least two lanes on every host.
std::vector<LaneCut> LaneCuts(std::span<const RailHost> hosts);
// Gives every host the lanes of a cut. Lanes with one number are on ports whose nodes have the same id, if
// the hosts have such ports. Requires: a cut from LaneCuts(hosts).
void SetLanes(const Topology& topology, const LaneCut& cut, std::vector<RailHost>& hosts);

}  // namespace xccl
