#include "topologies/failures.h"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/random.h"

namespace xccl {
namespace {

struct Cable {
  LinkId there;
  std::optional<LinkId> back;
};

// Pairs each link with a reverse link, in document order.
std::vector<Cable> CablesOf(const Topology& topology) {
  using Key = std::tuple<int32_t, int32_t, int64_t, int64_t, int64_t>;
  const auto key = [](const Link& l, bool turned) {
    return Key{turned ? l.to.value : l.from.value, turned ? l.from.value : l.to.value,
               l.bandwidth_bytes_per_s, l.latency_ps, l.overhead_ps};
  };
  std::map<Key, std::vector<size_t>> alone;  // cables that have no reverse link yet
  std::vector<Cable> cables;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    std::vector<size_t>& waiting = alone[key(link, true)];
    if (!waiting.empty()) {
      cables[waiting.front()].back = LinkId(l);
      waiting.erase(waiting.begin());
      continue;
    }
    alone[key(link, false)].push_back(cables.size());
    cables.push_back({LinkId(l), std::nullopt});
  }
  return cables;
}

}  // namespace

StatusOr<Failure> FailCables(const Topology& topology, int32_t cables, uint64_t seed,
                             const std::function<bool(const Topology&)>& serves) {
  constexpr int kDraws = 100;
  std::vector<Cable> all = CablesOf(topology);
  if (all.empty()) return InvalidInput(topology.name() + ": no cables that could fail");
  if (cables < 1 || static_cast<size_t>(cables) > all.size())
    return InvalidInput(
        fmt::format("{}: {} failed cables; expected 1 to {}", topology.name(), cables, all.size()));
  Random random(seed);
  for (int draw = 0; draw < kDraws; ++draw) {
    random.Shuffle(std::span(all));
    std::vector<bool> failed(static_cast<size_t>(topology.num_links()), false);
    std::vector<std::string> names;
    for (const Cable& cable : std::span(all).first(static_cast<size_t>(cables))) {
      failed[cable.there.index()] = true;
      if (cable.back) failed[cable.back->index()] = true;
      std::string name = topology.LinkName(cable.there);
      if (cable.back) name.replace(name.find("->"), 2, "<->");
      names.push_back(std::move(name));
    }
    TopologySpec spec = topology.spec();
    spec.links.clear();
    for (int32_t l = 0; l < topology.num_links(); ++l)
      if (!failed[static_cast<size_t>(l)]) spec.links.push_back(topology.link(LinkId(l)));
    XCCL_ASSIGN_OR_RETURN(Topology left, Topology::Create(std::move(spec)));
    if (!serves || serves(left)) return Failure{std::move(left), std::move(names)};
  }
  return LimitReached(
      fmt::format("{} with {} of its {} cables failed: none of {} draws left all ranks within reach",
                  topology.name(), cables, all.size(), kDraws));
}

}  // namespace xccl
