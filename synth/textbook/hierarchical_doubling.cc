// allreduce on hosts of equal size, for small messages. The k-th GPU of a host sums up the k-th piece of all
// the GPUs of its host, exchanges sums along its rail with the hosts at distance 1, 2, 4 .., and gives the
// result to its host: 2 + log2(hosts) steps, of which log2(hosts) cross. Every host adds the same sums in the
// same tree, but for the order of two operands. reduce_scatter and allgather in its place cross twice on any
// number of hosts, so that this is faster on two.
#include <fmt/format.h>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-doubling";

using Hosts = std::vector<std::vector<Rank>>;

void Allreduce(const Hosts& hosts, ChunkRange all, Moves& moves) {
  const int32_t m = static_cast<int32_t>(hosts.size()), g = static_cast<int32_t>(hosts[0].size());
  int32_t step = 0;
  for (const std::vector<Rank>& host : hosts)
    for (int32_t k = 0; k < g; ++k)
      for (int32_t turn = 1; turn < g; ++turn)
        moves.Add({Piece(all, k, g), host[static_cast<size_t>((k + turn) % g)], host[static_cast<size_t>(k)],
                   step, TransferOp::kReduce, std::nullopt});
  for (int32_t distance = 1; distance < m; distance *= 2) {
    ++step;
    for (int32_t h = 0; h < m; ++h)
      for (int32_t k = 0; k < g; ++k)
        moves.Add({Piece(all, k, g), hosts[static_cast<size_t>(h)][static_cast<size_t>(k)],
                   hosts[static_cast<size_t>(h ^ distance)][static_cast<size_t>(k)], step,
                   TransferOp::kReduce, std::nullopt});
  }
  ++step;
  for (const std::vector<Rank>& host : hosts)
    for (int32_t k = 0; k < g; ++k)
      for (int32_t turn = 1; turn < g; ++turn)
        moves.Add({Piece(all, k, g), host[static_cast<size_t>(k)], host[static_cast<size_t>((k + turn) % g)],
                   step, TransferOp::kCopy, std::nullopt});
}

StatusOr<Recipe> PlaceHierarchicalDoubling(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(Hosts hosts, EqualDomains(graph, request.collective->ranks(), kName));
  const auto m = static_cast<int32_t>(hosts.size());
  if (m != PowerBelow(m))
    return InvalidInput(
        fmt::format("{}: {} hosts; expected a power of 2; hint: --engine=hierarchical-ring", kName, m));
  Recipe recipe;
  recipe.root = hosts[0][0];
  recipe.lanes = static_cast<int32_t>(hosts[0].size());
  recipe.allreduce = [hosts = std::move(hosts)](ChunkRange all, Moves& moves) {
    Allreduce(hosts, all, moves);
  };
  return recipe;
}

}  // namespace

const TextbookEngine& HierarchicalDoublingEngine() {
  static const TextbookEngine engine = {
      kName,
      "sums inside hosts, exchanged along rails at host distances 1, 2, 4..; for small sizes; not exact",
      {CollectiveKind::kAllreduce, CollectiveKind::kBarrier},
      PlaceHierarchicalDoubling};
  return engine;
}

}  // namespace xccl
