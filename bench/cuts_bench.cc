// What the search for the worst cut costs on machines of up to a million nodes: rings, lines and fat trees
// whose ranks all hold one unit that all others need. The last column is the cost of a node beside that of
// the smallest machine of the shape: near 1 where the search is linear.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/graph/ratio_cut.h"

namespace xccl {
namespace {

void AddCable(int32_t a, int32_t b, int64_t capacity, RatioCutProblem& problem) {
  problem.arcs.push_back({a, b, capacity});
  problem.arcs.push_back({b, a, capacity});
}

RatioCutProblem OfRanks(int32_t nodes, int32_t ranks) {
  RatioCutProblem problem;
  problem.supply.assign(static_cast<size_t>(nodes), 0);
  for (int32_t r = 0; r < ranks; ++r) {
    problem.supply[static_cast<size_t>(r)] = 1;
    problem.sinks.push_back(r);
  }
  return problem;
}

RatioCutProblem Line(int32_t nodes, bool closed) {
  RatioCutProblem problem = OfRanks(nodes, nodes);
  for (int32_t n = 0; n + 1 < nodes; ++n) AddCable(n, n + 1, 50, problem);
  if (closed) AddCable(nodes - 1, 0, 50, problem);
  return problem;
}

// Ranks under switches of 16 children, level by level up to one root; every cable carries half of what hangs
// below it.
RatioCutProblem FatTree(int32_t ranks) {
  constexpr int32_t kChildren = 16;
  int32_t nodes = ranks;
  for (int32_t level = ranks; level > 1;) {
    level = (level + kChildren - 1) / kChildren;
    nodes += level;
  }
  RatioCutProblem problem = OfRanks(nodes, ranks);
  int64_t capacity = 64;
  for (int32_t first = 0, level = ranks; level > 1;) {
    const int32_t above = (level + kChildren - 1) / kChildren;
    for (int32_t n = 0; n < level; ++n) AddCable(first + n, first + level + n / kChildren, capacity, problem);
    first += level;
    level = above;
    capacity *= kChildren / 2;
  }
  return problem;
}

double SecondsOf(const RatioCutProblem& problem) {
  const auto began = std::chrono::steady_clock::now();
  const std::optional<RatioCut> cut = FindRatioCut(problem);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
  return cut ? passed.count() : -1;
}

void Run() {
  fmt::print("{:<10} {:>9} {:>10} {:>10} {:>14}\n", "shape", "nodes", "ms", "ns a node", "of the smallest");
  for (const char* const shape : {"ring", "line", "fat-tree"}) {
    double smallest = 0;
    for (const int32_t ranks : {10'000, 100'000, 1'000'000}) {
      const std::string name = shape;
      const RatioCutProblem problem = name == "fat-tree" ? FatTree(ranks) : Line(ranks, name == "ring");
      const double seconds = std::min(SecondsOf(problem), SecondsOf(problem));
      const double a_node = seconds * 1e9 / static_cast<double>(problem.supply.size());
      if (smallest == 0) smallest = a_node;
      fmt::print("{:<10} {:>9} {:>10.1f} {:>10.0f} {:>14.2f}\n", shape, problem.supply.size(), seconds * 1e3,
                 a_node, a_node / smallest);
    }
  }
}

}  // namespace
}  // namespace xccl

int main() { xccl::Run(); }
