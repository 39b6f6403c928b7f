// Random but correct schedules for tests that need many.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"
#include "ir/schedule.h"
#include "topologies/topology.h"

namespace xccl::testing {

// Copies every chunk over a random tree from its source to all. Requires: GPUs joined directly, one holder
// per chunk.
inline Schedule RandomTrees(Random& random, const Topology& topology, const Collective& collective) {
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  std::vector<Holding> before;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    collective.Before(ChunkId(c), before);
    std::vector<int32_t> step_of(static_cast<size_t>(topology.num_ranks()), -1);
    std::vector<LinkId> frontier;
    const auto reach = [&](NodeId node, int32_t step) {
      step_of[node.index()] = step;
      for (LinkId l : topology.Out(node)) frontier.push_back(l);
    };
    reach(topology.NodeOf(before[0].rank), 0);
    while (!frontier.empty()) {
      std::swap(frontier[random.Below(frontier.size())], frontier.back());
      const LinkId l = frontier.back();
      frontier.pop_back();
      const Link& link = topology.link(l);
      if (step_of[link.to.index()] >= 0) continue;
      schedule.Add(ChunkId(c), 1, Rank(link.from.value), Rank(link.to.value), std::vector{l},
                   TransferOp::kCopy, step_of[link.from.index()]);
      reach(link.to, step_of[link.from.index()] + 1);
    }
  }
  Normalize(schedule);
  return schedule;
}

// The reverse: every chunk is summed over a random tree of reversed links. If `and_back`, it is then copied
// to all over another tree from a random root.
inline Schedule RandomSums(Random& random, const Topology& topology, const Collective& collective,
                           bool and_back) {
  Schedule schedule;
  schedule.num_chunks = collective.num_chunks();
  const int32_t n = topology.num_ranks();
  std::vector<Holding> after;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    collective.After(ChunkId(c), after);
    const Rank root =
        and_back ? Rank(static_cast<int64_t>(random.Below(static_cast<uint64_t>(n)))) : after[0].rank;
    for (bool down : {false, true}) {
      if (down && !and_back) continue;
      std::vector<int32_t> depth(static_cast<size_t>(n), -1);
      std::vector<LinkId> frontier;
      const auto reach = [&](NodeId node, int32_t at) {
        depth[node.index()] = at;
        for (LinkId l : down ? topology.Out(node) : topology.In(node)) frontier.push_back(l);
      };
      reach(topology.NodeOf(root), 0);
      while (!frontier.empty()) {
        std::swap(frontier[random.Below(frontier.size())], frontier.back());
        const LinkId l = frontier.back();
        frontier.pop_back();
        const Link& link = topology.link(l);
        const NodeId near = down ? link.from : link.to, far = down ? link.to : link.from;
        if (depth[far.index()] >= 0) continue;
        // Sums run from the leaves, deepest first; copies follow after n steps.
        schedule.Add(ChunkId(c), 1, Rank(link.from.value), Rank(link.to.value), std::vector{l},
                     down ? TransferOp::kCopy : TransferOp::kReduce,
                     down ? n + depth[near.index()] : n - 1 - depth[near.index()]);
        reach(far, depth[near.index()] + 1);
      }
    }
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl::testing
