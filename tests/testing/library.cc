#include "tests/testing/library.h"

#include <algorithm>
#include <utility>

#include "topologies/load/load.h"

namespace xccl {

std::vector<std::string> DistinctMachines() {
  std::vector<std::string> names;
  std::vector<TopologySpec> kept;
  for (const std::string& name : LibraryNames()) {
    TopologySpec spec = LoadTopology(name).value().spec();
    spec.name = spec.source = "";
    if (std::ranges::find(kept, spec) != kept.end()) continue;
    kept.push_back(std::move(spec));
    names.push_back(name);
  }
  return names;
}

}  // namespace xccl
