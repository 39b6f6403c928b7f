#include "examples/extending/swap_halves.h"

#include <string>
#include <utility>

namespace xccl {

StatusOr<Collective> SwapHalves(int32_t ranks) {
  if (ranks % 2 != 0)
    return InvalidInput("swap-halves: " + std::to_string(ranks) + " ranks; expected an even number");
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "swap-halves";
  for (int32_t r = 0; r < ranks; ++r) {
    const Rank partner((r + ranks / 2) % ranks);
    spec.ranks.push_back(Rank(r));
    spec.custom_weights.push_back(1);
    spec.pre.push_back({Rank(r), PartId(r), {Rank(r)}});
    spec.post.push_back({partner, PartId(r), {Rank(r)}});
  }
  return Collective::Create(std::move(spec));
}

}  // namespace xccl
