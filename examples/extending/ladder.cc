#include "examples/extending/ladder.h"

#include <string>
#include <utility>
#include <vector>

namespace xccl {

StatusOr<Topology> Ladder(int32_t rungs, const LinkNumbers& link) {
  if (rungs < 1) return InvalidInput("ladder: " + std::to_string(rungs) + " rungs; expected at least 1");
  TopologySpec spec;
  spec.name = "ladder:" + std::to_string(rungs);
  std::vector<NodeId> gpus;
  for (int32_t g = 0; g < 2 * rungs; ++g)
    gpus.push_back(AddNode(NodeKind::kGpu, std::to_string(g), std::nullopt, spec));
  for (int32_t r = 0; r < rungs; ++r) {
    AddCable(gpus[2 * r], gpus[2 * r + 1], link, spec);
    for (int32_t side = 0; side < 2 && r > 0; ++side)
      AddCable(gpus[2 * (r - 1) + side], gpus[2 * r + side], link, spec);
  }
  return Topology::Create(std::move(spec));
}

}  // namespace xccl
