#include "tests/testing/library.h"

#include <algorithm>
#include <utility>

#include "topologies/load/load.h"

namespace xccl {

namespace {

constexpr int64_t kMostNodes = 2'200;  // 128 hosts of 8 GPUs on rails have 2,188

// The names of the library's machines whose spec, as `keep` leaves it, no earlier one has.
template <typename Keep>
std::vector<std::string> Distinct(const Keep& keep) {
  std::vector<std::string> names;
  std::vector<TopologySpec> kept;
  for (const std::string& name : LibraryNamesUpTo(kMostNodes)) {
    TopologySpec spec = LoadTopology(name).value().spec();
    spec.name = spec.source = "";
    keep(spec);
    if (std::ranges::find(kept, spec) != kept.end()) continue;
    kept.push_back(std::move(spec));
    names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<std::string> DistinctMachines() {
  return Distinct([](TopologySpec&) {});
}

std::vector<std::string> DistinctShapes() {
  return Distinct([](TopologySpec& spec) {
    spec.gpu_arch = "";
    for (Host& host : spec.hosts) host.name = "";
    for (Link& link : spec.links) link.bandwidth_bytes_per_s = 1;
  });
}

}  // namespace xccl
