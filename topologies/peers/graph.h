// A machine as tools for graphs write it (GraphML, node-link JSON, Graphviz): nodes and edges with named
// attributes. The readers of the three formats fill in a PeerGraph; GraphTopology finds out which nodes are
// GPUs and what the links' numbers are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

using GraphAttributes = std::map<std::string, std::string, std::less<>>;

// Defaults stand in each node and edge, so that a short text may ask for more than the memory there is: the
// readers count the bytes of copies that the text does not have, up to this limit.
inline constexpr int64_t kMostCopiedBytes = int64_t{256} << 20;
int64_t BytesOf(const GraphAttributes& attributes);

struct GraphNode {
  std::string id;  // unique; networkx writes its tuples as "(0, 'GPU', 3)"
  GraphAttributes attributes;
};

struct GraphEdge {
  size_t from = 0, to = 0;  // into PeerGraph::nodes
  bool both = false;        // it stands for a link in each direction
  GraphAttributes attributes;
};

struct PeerGraph {
  std::string name;
  std::string format;  // "GraphML"
  GraphAttributes attributes;
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  std::vector<std::string> warnings;
};

// Attributes that are read, the first that is there:
// nodes: `kind`, `type` or `role` (gpu, switch, nic, cpu), else words of the id, such as "leaf-3"; `host`,
//   else the first member of a tuple, or what stands before a '/'; `name`; `multicast`, `reduce`;
// edges: `bandwidth`, `capacity`, `rate`, `speed`, `bw`, `weight`, `label`; `latency`, `delay` or `alpha`;
//   `overhead`. A number without a unit counts --link's bandwidth, or GB/s with a warning, if it is no weight
//   or label; 0 means no link;
// the graph: `source`, `arch`, `hosts` (their order).
// Where GPUs are told, other nodes are switches; where none are, all nodes of no known kind are GPUs.
// Errors: kInvalidInput "FILE: ...".
StatusOr<Topology> GraphTopology(const PeerGraph& graph, std::string_view file, const LoadOptions& options);

}  // namespace xccl
