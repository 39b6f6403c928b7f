// The machine that a damaged machine was: links that failed are there, and slow links have their full
// bandwidth. Machines of a cluster are regular, so that nodes alike tell what a node lacks. Engines plan for
// the whole machine, whose ranks are alike, and lead around the damage (docs/synthesis.md, Damage).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// The links that a machine lacks of the whole one.
struct MissingLinks {
  std::vector<Link> lost;                        // links that are not there
  std::vector<std::pair<LinkId, int64_t>> slow;  // a link, and its full bandwidth in bytes per second
  bool empty() const { return lost.empty() && slow.empty(); }
  bool operator==(const MissingLinks&) const = default;
};

// Finds what nodes lack that a node alike has: nodes of one kind, switches also as far from the GPUs. Whether
// the whole machine is symmetric is left to the caller. Returns nullopt where nothing is missing, or where
// more than a tenth of the links would be. Cost: near linear in nodes and links, and in the square of what is
// lost.
std::optional<MissingLinks> FindMissingLinks(const Topology& topology);

// The machine with lost links added, whose ids follow those of the machine's links, and slow links mended.
// Errors: kInvalidInput if a lost link joins no two nodes, or if a slow link is not there or not slow.
StatusOr<Topology> MakeWhole(const Topology& topology, const MissingLinks& missing);

}  // namespace xccl
