// allreduce on hosts of equal size, for small messages. The k-th GPU of a host sums up the k-th piece of all
// the GPUs of its host, exchanges sums along its rail with the hosts at distance 1, 2, 4 .., and gives the
// result to its host: 2 + log2(hosts) steps, of which log2(hosts) cross. Every host adds the same sums in the
// same tree, but for the order of two operands. reduce_scatter and allgather in its place cross twice on any
// number of hosts, so that this is faster on two.
#include <fmt/core.h>

#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-doubling";

void Allreduce(const Hosts& hosts, ChunkRange all, Moves& moves) {
  const int32_t steps = CeilLog2(hosts.hosts);
  for (int32_t h = 0; h < hosts.hosts; ++h) {
    for (int32_t k = 0; k < hosts.gpus; ++k) {
      const ChunkRange piece = Piece(all, k, hosts.gpus);
      const Rank at = hosts.At(h, k);
      for (int32_t turn = 1; turn < hosts.gpus; ++turn) {
        const Rank other = hosts.At(h, (k + turn) % hosts.gpus);
        moves.Add({piece, other, at, 0, TransferOp::kReduce});
        moves.Add({piece, at, other, steps + 1});
      }
      for (int32_t s = 0; s < steps; ++s)
        moves.Add({piece, at, hosts.At(h ^ 1 << s, k), s + 1, TransferOp::kReduce});
    }
  }
}

}  // namespace

StatusOr<Recipe> PlaceHierarchicalDoubling(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Hosts hosts, EqualHosts(graph, request.collective->ranks(), kName));
  if (!IsPowerOf2(hosts.hosts))
    return InvalidInput(fmt::format("{}: {} hosts; expected a power of 2; hint: --engine=hierarchical-ring",
                                    kName, hosts.hosts));
  Recipe recipe;
  recipe.root = hosts.At(0, 0);
  recipe.pieces = hosts.gpus;
  recipe.allreduce = [hosts](ChunkRange all, Moves& moves) { Allreduce(hosts, all, moves); };
  return recipe;
}

}  // namespace xccl
