#include "ir/lower/chains.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace xccl::lowering {

std::vector<std::vector<LinkId>> ChainsOf(const Topology& topology, std::span<const LinkId> tree) {
  std::vector<Rank> sources, destinations;
  PathEnds(topology, tree, sources, destinations);
  const bool joins = sources.size() > 1;
  // By node of the tree: if there are several sources, the link that leaves the node; else the link that
  // enters it.
  std::vector<std::pair<NodeId, LinkId>> links;
  for (LinkId l : tree) links.emplace_back(joins ? topology.link(l).from : topology.link(l).to, l);
  std::ranges::sort(links);
  const auto next = [&](NodeId at) {
    return std::ranges::lower_bound(links, at, {}, &std::pair<NodeId, LinkId>::first)->second;
  };
  std::vector<std::vector<LinkId>> chains;
  for (const Rank end : joins ? sources : destinations) {
    std::vector<LinkId>& chain = chains.emplace_back();
    NodeId at = topology.NodeOf(end);
    do {
      chain.push_back(next(at));
      at = joins ? topology.link(chain.back()).to : topology.link(chain.back()).from;
    } while (!topology.IsGpu(at));
    if (!joins) std::reverse(chain.begin(), chain.end());
  }
  return chains;
}

StatusOr<Schedule> WithoutTrees(const Schedule& schedule, const Topology& topology) {
  struct Chain {
    Rank src, dst;
    PathId path;
  };
  Schedule plain;
  plain.num_chunks = schedule.num_chunks;
  std::vector<std::vector<Chain>> chains_of(static_cast<size_t>(schedule.paths.size()));
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    for (const std::vector<LinkId>& chain : ChainsOf(topology, schedule.paths[PathId(p)]))
      chains_of[static_cast<size_t>(p)].push_back({*topology.RankOf(topology.link(chain.front()).from),
                                                   *topology.RankOf(topology.link(chain.back()).to),
                                                   plain.paths.Intern(chain)});
  for (int64_t t = 0; t < schedule.size(); ++t) {
    Transfer transfer = schedule.at(t);
    const std::vector<Chain>& chains = chains_of[transfer.path.index()];
    if (transfer.op == TransferOp::kCopy && chains.size() > 1 && chains[0].src != chains[1].src)
      return InvalidInput(
          fmt::format("transfer {}: step {}, rank {}: an in-switch reduction that replaces what rank {} has; "
                      "expected one that adds to it, since a program adds up at the receiver",
                      t, transfer.step, transfer.src.value, transfer.dst.value));
    for (const Chain& chain : chains) {
      transfer.src = chain.src;
      transfer.dst = chain.dst;
      transfer.path = chain.path;
      plain.Add(transfer);
    }
  }
  Normalize(plain);
  return plain;
}

}  // namespace xccl::lowering
