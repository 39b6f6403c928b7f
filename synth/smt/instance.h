// The data of a k-synchronous question (chunks, steps, rounds), independent of any solver: the machine as
// paths between GPUs that share capacities, its symmetry, and the sends that answer the question.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "synth/common/problem.h"
#include "topologies/topology.h"

namespace xccl::smt {

// All parallel links from one node to another, taken together. In a round they carry `per_round` chunks.
struct Capacity {
  std::vector<LinkId> links;
  int32_t per_round = 0;
  std::string name;  // name of the first link: "0->nvswitch"
};

// A path from one GPU to another that passes no third GPU. `over` lists the capacities on the path.
struct Edge {
  int32_t from = 0, to = 0;  // ranks
  std::vector<int32_t> over;
};

struct Machine {
  int32_t ranks = 0;
  std::vector<Edge> edges;
  std::vector<Capacity> capacities;
  std::vector<std::vector<int32_t>> out, in;         // by rank: edges out of and into it
  std::vector<std::vector<int32_t>> users;           // by capacity: edges that use it
  std::vector<int64_t> in_per_round, out_per_round;  // by rank: most chunks into and out of it
  int64_t bytes_per_s_of_one = 1;                    // bandwidth of a link that carries one chunk in a round
  int64_t alpha_ps = 0;                              // cost of a step: largest latency + overhead of an edge
  // True if every schedule of the machine is a schedule over `edges`. False if paths are too many or too long
  // to list, or if a switch multicasts or reduces. A search over incomplete edges refutes nothing.
  bool complete = true;
  // True if a step of r rounds of copies can always be divided into two steps of r1 + r2 = r rounds. Holds if
  // every path uses at most two capacities, one out of its tail and one into its head: a bipartite multigraph
  // of degree r is the sum of two such graphs of degrees r1 and r2. May not hold for longer paths; then
  // false.
  bool splits = true;
};
// Makes the machine. A round is the time of one chunk over a link whose bandwidth is the greatest common
// divisor of the bandwidths of all links on edges.
Machine MakeMachine(const Topology& topology);
// Makes the machine of `topology` with the link names of `named`, which has links with equal ids. For a
// reversed topology, `named` is the original, whose names users know.
Machine MakeMachine(const Topology& topology, const Topology& named);

// A symmetry of the machine: the rank, edge and capacity to which it maps each rank, edge and capacity.
struct Image {
  std::vector<int32_t> rank, edge, capacity;
};
Image Identity(const Machine& machine);
// Returns all elements of the group of translations, the identity first. Returns only the identity if the
// group has more than `most` elements, or if some element maps an edge to a path that is not an edge.
std::vector<Image> ImagesOf(const Topology& topology, const Machine& machine, int64_t most);

struct Send {
  int32_t chunk = 0, edge = 0, step = 0;
  bool adds = false;  // for sums: add to the receiver's data; otherwise replace it
  bool operator==(const Send&) const = default;
};

// DistancesFrom() returns for every rank its distance, in edges, from the nearest rank of `ranks`.
// DistancesTo() returns its distance to the nearest of `ranks`. Both give kFar without a path.
inline constexpr int32_t kFar = 1 << 20;
std::vector<int32_t> DistancesFrom(const Machine& machine, const std::vector<int32_t>& ranks);
std::vector<int32_t> DistancesTo(const Machine& machine, const std::vector<int32_t>& ranks);

// The ranks that hold a chunk at the start and the ranks that need it, each list sorted.
struct Ends {
  std::vector<int32_t> holders, needers;
  auto operator<=>(const Ends&) const = default;
};
Ends Moved(const Image& image, Ends ends);
// Returns the classes of chunks with equal ends. Leaves out chunks that no rank needs.
std::map<Ends, std::vector<int32_t>> ClassesOf(const CopyProblem& problem);
// Returns the images that map every class to a class of equally many chunks. `images` is a group.
std::vector<Image> ImagesThatKeep(const std::vector<Image>& images, const CopyProblem& problem);

}  // namespace xccl::smt
