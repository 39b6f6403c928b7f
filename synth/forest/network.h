// The machine as forest sees it: integer capacities and tree counts at the best rate, and of every capacity
// the links that it is made of.
//
// In the time of one tree unit a link of bandwidth b carries floor(U·b) units and a member of weight w sends
// w·k. U ÷ k is the time of a unit of weight: least where the worst cut is full. With the exact rate p ÷ q of
// that cut (ir/bounds/bound_cut.h), U = p and k = q, bandwidths and weights taken without common divisors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "synth/forest/graph.h"
#include "topologies/topology.h"

namespace xccl::forest {

// Paths of links, joined end to end without copying.
class PathArena {
 public:
  int32_t Single(LinkId link);
  int32_t Join(int32_t first, int32_t second);
  void Append(int32_t path, std::vector<LinkId>& links) const;

 private:
  struct Item {
    int32_t first, second;  // a link and -1, or two paths
  };
  std::vector<Item> items_;
};

// So much of an arc's capacity goes this way.
struct Piece {
  int32_t path;
  int64_t amount;
};

struct Network {
  CapacityGraph graph;                     // on the topology's nodes
  std::vector<std::vector<Piece>> pieces;  // by arc; amounts add up to its capacity
  PathArena paths;
  Demands demands;               // by node, in trees
  std::vector<int32_t> members;  // nodes
  int64_t trees = 0;             // k: of a member of weight 1
  double rate_loss = 0;          // time over the optimum's − 1; 0: exact
};

// What every member has to send, by node of the topology and without common divisor: 1 a member, counts, or 1
// at the root.
std::vector<int64_t> WeightsOf(const Topology& topology, const Collective& collective);

// The network at the best rate; at the best that k = `trees` allows, where given. `topology` is turned round
// already for reductions. Without `trees`, where the exact k or the capacities are unreasonably large, the
// best of some smaller k. Requires: some weight > 0; all ranks can be reached.
Network MakeNetwork(const Topology& topology, const Collective& collective, std::optional<int64_t> trees);

}  // namespace xccl::forest
