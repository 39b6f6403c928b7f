// Turns trees between hosts (synth/forest/folded_hosts.h) into trees between the ranks of the machine. A tree
// enters a host at one GPU, spreads inside, and leaves from the GPU whose cable is the least loaded. The
// trees of a packing then share the cables of a host, and the parallel paths between two switches, in
// proportion to the rates of cables and paths. Rates and numbers of cables may differ from host to host.
//
// Source of the prices: the price of a link grows with a power of its load, as in online routing of virtual
// circuits (Aspnes, Azar, Fiat, Plotkin and Waarts, 1997).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "synth/common/tree_grower.h"
#include "synth/forest/folded_hosts.h"
#include "topologies/topology.h"

namespace xccl::forest {

// An arc of a tree on the folded machine: its nodes from the host that sends to the host that receives.
using HostArc = std::vector<NodeId>;

struct UnfoldedArc {
  Rank from, to;
  int32_t depth = 0;          // arcs from the root to `to`
  std::vector<LinkId> links;  // from `from` to `to`, through no other GPU
};

// The loads that all trees put on the links of a machine. The unfolders of a machine and of its reverse share
// one LinkLoads.
struct LinkLoads {
  std::vector<double> s_per_byte;    // by link: seconds for each byte of the collective
  double aim_s_per_byte = 0;         // the load that the busiest link will have if the trees are dealt evenly
  double latency_s_per_byte_ps = 0;  // the price of a picosecond, as time for a byte of the collective
};

class Unfolder {
 public:
  // `machine` is the machine or its reverse, and `folded` is the folded form of one of the two. All three
  // arguments must outlive the unfolder.
  Unfolder(const Topology& machine, const FoldedHosts& folded, LinkLoads& loads);

  // Unfolds one tree that carries `share` of all bytes from `root` to all ranks, and adds it to the loads.
  // `arcs`: parents first, from the root's host to all other hosts. Returns the arcs, parents first, or
  // nullopt if the GPUs of a host do not reach each other inside it, or the cables of two hosts do not meet.
  // Cost: for each arc the links between the switches that it passes, and one tree inside each host.
  std::optional<std::vector<UnfoldedArc>> Unfold(Rank root, std::span<const HostArc> arcs, double share);

 private:
  // A cable between a host and a place outside.
  struct Port {
    LinkId cable;
    NodeId outside;  // the cable's node outside the host
    std::vector<NearGpu> gpus;
  };
  struct Inside {
    Topology topology;          // the host's nodes and the links between them
    std::vector<LinkId> link;   // by link of `topology`
    std::vector<Rank> rank;     // by rank of `topology`
    std::vector<Rank> members;  // all ranks of `topology`
    std::optional<TreeGrower> grower = {};
  };
  struct Label {
    double price = 0;
    int64_t round = 0;  // the search that set the label
    LinkId via;
    const Port* port = nullptr;  // the port at which the path leaves the host
    size_t gpu = 0;              // where the path begins: index into port->gpus
  };

  void AddInside(Rank host);
  double PriceOf(LinkId l) const;
  double PriceOf(std::span<const LinkId> path) const;
  bool Enter(Rank gpu, int32_t depth);
  bool Cross(const HostArc& arc);
  void LeaveTo(Rank host, NodeId place);
  void GoOnTo(NodeId place);
  void Add(Rank from, Rank to, std::vector<LinkId> links);
  void Offer(NodeId node, const Label& label);

  const Topology& machine_;
  const FoldedHosts& folded_;
  LinkLoads& loads_;
  std::vector<std::vector<Port>> out_, in_;  // by host
  std::deque<Inside> inside_;                // by host
  std::vector<Label> label_;                 // by node
  std::vector<NodeId> reached_;              // nodes that the present search reached in its last place
  int64_t round_ = 0;
  // State of the tree that is being unfolded.
  double share_ = 0;
  std::vector<int32_t> depth_;  // by rank; -1: not in the tree
  std::vector<UnfoldedArc> made_;
};

}  // namespace xccl::forest
