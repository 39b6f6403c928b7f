// The machine that a damaged machine was: links that failed and hosts that are missing are there, and slow
// links have their full bandwidth. Machines of a cluster are regular, so that nodes alike tell what a node
// lacks. Engines plan for the whole machine, whose ranks are alike, and lead around the damage
// (docs/synthesis.md, Damage).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// The hosts and links that a machine lacks of the whole one. The nodes of lost hosts follow the machine's
// nodes, host by host, and the lost links follow its links.
struct MissingLinks {
  std::vector<HostId> hosts = {};  // for each lost host, a host of the machine with the same nodes
  std::vector<Link> lost;          // links that are not there, those of lost hosts too
  std::vector<std::pair<LinkId, int64_t>> slow;  // a link, and its full bandwidth in bytes per second
  bool empty() const { return hosts.empty() && lost.empty() && slow.empty(); }
  bool operator==(const MissingLinks&) const = default;
};

// Finds what nodes lack that a node alike has: nodes of one kind, switches also as far from the GPUs. A host
// is missing where all switches that another host is joined to lack the links of one more such host. Whether
// the whole machine is symmetric is left to the caller. Returns nullopt where nothing is missing, or where
// more than a tenth of the links would be. Cost: near linear in nodes and links, and in the square of what is
// lost.
std::optional<MissingLinks> FindMissingLinks(const Topology& topology);

// The machine with lost hosts and links added, and slow links mended. Errors: kInvalidInput if a lost host is
// like no host, if a lost link joins no two nodes, or if a slow link is not there or not slow.
StatusOr<Topology> MakeWhole(const Topology& topology, const MissingLinks& missing);

// A machine whose nodes have other numbers.
struct Renumbered {
  Topology topology;
  std::vector<NodeId> node;  // by node of the machine: its number here
};
// The whole machine with the nodes of each lost host next to those of the host with the same nodes, as
// regular machines are numbered. FindTranslations finds more there. Requires: MakeWhole returned the machine.
Renumbered InOrder(const Topology& whole, const MissingLinks& missing);

}  // namespace xccl
