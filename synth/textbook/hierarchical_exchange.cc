// An allreduce for small messages on hosts of equal size. The k-th GPU of a host sums up the k-th piece of
// all GPUs of the host, exchanges sums along its rail, and gives the result to all GPUs of the host.
// Along a rail, a host's number is written in digits; the product of their bases is the number of hosts. In
// each step, hosts exchange sums if their numbers differ only in that step's digit. So a GPU sends base - 1
// messages, and all hosts add the same sums in the same tree. A single base means one step, with the most
// messages. The bases that are fastest for the size are taken. A reduce_scatter and an allgather along the
// rail would take twice as many steps.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "synth/common/cost_model.h"
#include "synth/textbook/engines.h"
#include "synth/textbook/positions.h"
#include "synth/textbook/rounds.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-exchange";

// Returns bases with product `hosts`: first bases up to `most`, the largest first, then all prime factors
// above `most`.
std::vector<int32_t> BasesOf(int32_t hosts, int32_t most) {
  std::vector<int32_t> bases;
  while (hosts > 1) {
    int32_t base = std::min(most, hosts);
    while (base > 1 && hosts % base != 0) --base;
    if (base == 1)
      for (base = most + 1; hosts % base != 0;) ++base;
    bases.push_back(base);
    hosts /= base;
  }
  return bases;
}

void Allreduce(const Hosts& hosts, const std::vector<int32_t>& bases, ChunkRange all, Moves& moves) {
  const int32_t steps = static_cast<int32_t>(bases.size());
  for (int32_t h = 0; h < hosts.hosts; ++h) {
    for (int32_t k = 0; k < hosts.gpus; ++k) {
      const ChunkRange piece = Piece(all, k, hosts.gpus);
      const Rank at = hosts.At(h, k);
      for (int32_t turn = 1; turn < hosts.gpus; ++turn) {
        const Rank other = hosts.At(h, (k + turn) % hosts.gpus);
        moves.Add({piece, other, at, 0, TransferOp::kReduce});
        moves.Add({piece, at, other, steps + 1});
      }
      int32_t place = 1;  // weight of digit s
      for (int32_t s = 0; s < steps; ++s) {
        const int32_t base = bases[static_cast<size_t>(s)], digit = h / place % base;
        for (int32_t turn = 1; turn < base; ++turn) {
          const int32_t peer = h + ((digit + turn) % base - digit) * place;
          moves.Add({piece, at, hosts.At(peer, k), s + 1, TransferOp::kReduce});
        }
        place *= base;
      }
    }
  }
}

}  // namespace

StatusOr<Recipe> PlaceHierarchicalExchange(const RankGraph& graph, const SynthesisRequest& request) {
  XCCL_ASSIGN_OR_RETURN(const Hosts hosts, EqualHosts(graph, request.collective->ranks(), kName));
  std::vector<int32_t> best = BasesOf(hosts.hosts, 2), last;
  double best_ps = std::numeric_limits<double>::infinity();
  for (int32_t most = 2; most <= hosts.hosts; ++most) {
    const std::vector<int32_t> bases = BasesOf(hosts.hosts, most);
    if (bases == last) continue;
    last = bases;
    int64_t sends = 2 * (hosts.gpus - 1);
    for (const int32_t base : bases) sends += base - 1;
    if (sends * hosts.hosts * hosts.gpus > kManyTransfers) break;
    Moves moves;
    Allreduce(hosts, bases, {0, hosts.gpus}, moves);
    const double ps = MovesTimePs(moves, graph, request, 1.0 / hosts.gpus);
    if (ps >= best_ps) continue;
    best = bases;
    best_ps = ps;
  }
  Recipe recipe;
  recipe.root = hosts.At(0, 0);
  recipe.pieces = hosts.gpus;
  recipe.allreduce = [hosts, best](ChunkRange all, Moves& moves) { Allreduce(hosts, best, all, moves); };
  return recipe;
}

}  // namespace xccl
