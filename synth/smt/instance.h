// One k-synchronous question (chunks, steps, rounds), without a word of a solver: the machine as paths
// between GPUs that share capacities, and what must be copied where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "synth/common/problem.h"
#include "topologies/topology.h"

namespace xccl::smt {

// All parallel links from one node to the next, as one: in a round they carry `per_round` chunks.
struct Capacity {
  std::vector<LinkId> links;
  int32_t per_round = 0;
  std::string name;  // of the first link: "0->nvswitch"
};

// A path from one GPU to another that passes no third one: the capacities that a chunk takes up.
struct Edge {
  int32_t from = 0, to = 0;  // ranks
  std::vector<int32_t> over;
};

struct Machine {
  int32_t ranks = 0;
  std::vector<Edge> edges;
  std::vector<Capacity> capacities;
  std::vector<std::vector<int32_t>> out, in;         // edges of a rank
  std::vector<std::vector<int32_t>> users;           // edges over a capacity
  std::vector<int64_t> in_per_round, out_per_round;  // chunks into and out of a rank, at most
  int64_t bytes_per_s_of_one = 1;                    // bandwidth of one chunk a round
  int64_t alpha_ps = 0;                              // largest fixed time of an edge: what a step costs
  // Is every schedule one over these edges? Not so where paths through switches are too many to list or too
  // long, or where a switch multicasts or reduces: then no exhausted search proves anything.
  bool complete = true;
  // Can a step of r rounds of copies always be two of r1 + r2 = r? So where a path takes up two capacities at
  // most, one out of its tail and one into its head: a bipartite multigraph of degree r is the sum of two of
  // degrees r1 and r2. Not so over longer paths.
  bool splits = true;
};
// A round is the time that the greatest common divisor of the bandwidths takes for a chunk.
Machine MakeMachine(const Topology& topology);
// Capacities are named as in another topology of the same links: of a reversed one the one that people know.
Machine MakeMachine(const Topology& topology, const Topology& named);

// A permutation of the ranks that keeps the machine: images of ranks, edges and capacities.
struct Image {
  std::vector<int32_t> rank, edge, capacity;
};
Image Identity(const Machine& machine);
// All elements of the group of translations, the identity first; the identity alone where the group has more
// than `most`.
std::vector<Image> ImagesOf(const Topology& topology, const Machine& machine, int64_t most);

struct Send {
  int32_t chunk = 0, edge = 0, step = 0;
  bool adds = false;  // of sums: what is sent is added to what the receiver holds; else it takes its place
  bool operator==(const Send&) const = default;
};

// Edges from the nearest of some ranks to every rank, or backwards from every rank to the nearest; kFar where
// there is no path.
inline constexpr int32_t kFar = 1 << 20;
std::vector<int32_t> DistancesFrom(const Machine& machine, const std::vector<int32_t>& ranks);
std::vector<int32_t> DistancesTo(const Machine& machine, const std::vector<int32_t>& ranks);

// The ranks that hold a chunk and those that need it, each sorted.
struct Ends {
  std::vector<int32_t> holders, needers;
  auto operator<=>(const Ends&) const = default;
};
Ends Moved(const Image& image, Ends ends);
// Chunks of the same ends are interchangeable: classes of them, without those that nobody needs.
std::map<Ends, std::vector<int32_t>> ClassesOf(const CopyProblem& problem);
// The elements of a group that take every class to a class of as many chunks; they are a group again.
std::vector<Image> ImagesThatKeep(const std::vector<Image>& images, const CopyProblem& problem);

}  // namespace xccl::smt
