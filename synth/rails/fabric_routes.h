// Finds shortest ways of streams through the fabric: the nodes that belong to no host, and the links between
// them. Streams with several equally short ways share the links about evenly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/graph/grouped.h"
#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

// Data that flows from one node of the fabric to another. All streams carry equally much.
struct Stream {
  NodeId from, to;
};

class FabricRoutes {
 public:
  // `fastest` is the most bytes per second at which a message enters or leaves the fabric. A message
  // therefore holds a faster link of the fabric as long as a link of that bandwidth (docs/ir.md, section 5).
  // Requires that `topology` outlives the FabricRoutes.
  FabricRoutes(const Topology& topology, int64_t fastest);
  // Returns for each stream the links of a way with the fewest hops, or nullopt if there is no way. No chain
  // of exchanges between two switches (see the .cc file) would make a busy link less busy. If every leaf
  // switch is joined alike to every spine switch, the numbers of streams on a leaf's links to spines differ
  // by at most one. Cost: a search over the fabric for each destination, the links of the nodes on shortest
  // ways for each stream, and about the streams of two switches for each exchange.
  std::vector<std::optional<std::vector<LinkId>>> Ways(std::span<const Stream> streams);
  // Returns the time for which `load` holds a link of the fabric: the load ÷ the link's bytes per second,
  // which count up to `fastest`. Returns 0 for other links.
  double HeldFor(LinkId link, double load) const {
    const Link& l = topology_->link(link);
    if (number_[l.from.index()] < 0 || number_[l.to.index()] < 0) return 0;
    return load / static_cast<double>(std::min(l.bandwidth_bytes_per_s, fastest_));
  }

 private:
  // Two successive links of a stream's way: `up` to a node, and `down` from that node.
  struct Middle {
    size_t stream = 0, hop = 0;  // `up` is way[hop], `down` is way[hop + 1]
    LinkId up, down;
  };

  const std::vector<int32_t>& DistancesTo(NodeId to);
  std::optional<std::vector<LinkId>> Way(const Stream& stream);
  double Held(LinkId l, int32_t more) const {
    return HeldFor(l, static_cast<double>(std::ssize(users_[l.index()]) + more));
  }
  std::optional<LinkId> LeastHeld(NodeId from, NodeId to) const;
  std::optional<Middle> MiddleAt(size_t stream, LinkId link, bool is_up) const;
  std::optional<Middle> Instead(const Middle& old, NodeId node) const;
  void Move(const Middle& from, const Middle& to);
  bool Exchange(Middle old, NodeId node, bool is_up);
  bool Relieve(LinkId link);

  const Topology* topology_;
  int64_t fastest_;
  std::vector<int32_t> number_;                                 // by node: its number in the fabric, or -1
  Grouped<LinkId> out_, in_;                                    // by number: fabric links, sorted by head
  std::vector<int32_t> place_;                                  // scratch of Way, by number; -1 between calls
  std::unordered_map<int32_t, std::vector<int32_t>> distance_;  // by destination, then number; -1: no way
  std::vector<std::optional<std::vector<LinkId>>> ways_;        // by stream
  std::vector<std::vector<size_t>> users_;                      // by link: streams that pass it
};

}  // namespace xccl
