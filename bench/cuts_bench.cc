// The cost of the search for the worst cut on machines of up to a million nodes: rings, lines and fat trees
// whose ranks all hold one unit that all other ranks need. The last column is the cost of a node over that of
// a node in the smallest machine of the shape: near 1 where the search is linear.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "base/graph/ratio_cut.h"
#include "bench/markdown_table.h"

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

// CPU seconds, the least of five searches.
double SecondsOf(const RatioCutProblem& problem) {
  double least = 1e9;
  for (int run = 0; run < 5; ++run) {
    const std::clock_t began = std::clock();
    if (!FindRatioCut(problem)) return -1;
    least = std::min(least, static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
  }
  return least;
}

void Run() {
  MarkdownTable table({"shape", "nodes:", "ms:", "ns a node:", "of the smallest:"});
  for (const std::string shape : {"ring", "line", "fat tree"}) {
    double smallest = 0;
    for (const int32_t ranks : {10'000, 100'000, 1'000'000}) {
      const RatioCutProblem problem = shape == "fat tree" ? FatTree(ranks) : Line(ranks, shape == "ring");
      const double seconds = SecondsOf(problem);
      const double a_node = seconds * 1e9 / static_cast<double>(problem.supply.size());
      if (smallest == 0) smallest = a_node;
      table.Row(shape, problem.supply.size(), fmt::format("{:.1f}", seconds * 1e3),
                fmt::format("{:.0f}", a_node), fmt::format("{:.2f}", a_node / smallest));
    }
  }
  table.Print();
}

}  // namespace
}  // namespace xccl

int main() { xccl::Run(); }
