#include "topologies/failures.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
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

constexpr int kDraws = 100;  // without a failure that serves, before a search gives up
constexpr size_t kMostListed = 10'000;

// The cables of the machine, at least `cables`.
StatusOr<std::vector<Cable>> EnoughCables(const Topology& topology, int32_t cables) {
  std::vector<Cable> all = CablesOf(topology);
  if (all.empty()) return InvalidInput(topology.name() + ": no cables that could fail");
  if (cables < 1 || static_cast<size_t>(cables) > all.size())
    return InvalidInput(
        fmt::format("{}: {} failed cables; expected 1 to {}", topology.name(), cables, all.size()));
  return all;
}

StatusOr<Failure> Without(const Topology& topology, std::span<const Cable> cables) {
  std::vector<bool> failed(static_cast<size_t>(topology.num_links()), false);
  std::vector<std::string> names;
  for (const Cable& cable : cables) {
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
  return Failure{std::move(left), std::move(names)};
}

Status NoneServes(const Topology& topology, int32_t cables, size_t all, size_t draws) {
  return LimitReached(
      fmt::format("{} with {} of its {} cables failed: none of {} draws left all ranks within reach",
                  topology.name(), cables, all, draws));
}

// Returns all choices of k of n, each ascending; none if there are over kMostListed.
std::vector<std::vector<size_t>> Choices(size_t n, size_t k) {
  std::vector<std::vector<size_t>> choices;
  std::vector<size_t> choice(k);
  std::iota(choice.begin(), choice.end(), size_t{0});
  for (;;) {
    choices.push_back(choice);
    if (choices.size() > kMostListed) return {};
    size_t last = k;  // the last place that can rise
    while (last > 0 && choice[last - 1] == n - k + last - 1) --last;
    if (last == 0) return choices;
    ++choice[last - 1];
    for (size_t i = last; i < k; ++i) choice[i] = choice[i - 1] + 1;
  }
}

// By cable: the first cable that is alike.
std::vector<size_t> FirstAlike(const Topology& topology, const std::vector<Cable>& cables) {
  std::map<std::tuple<int32_t, int32_t, int64_t, int64_t, int64_t, bool>, size_t> first;
  std::vector<size_t> alike;
  for (size_t c = 0; c < cables.size(); ++c) {
    const Link& link = topology.link(cables[c].there);
    const auto [low, high] = std::minmax(link.from.value, link.to.value);
    const bool turned = !cables[c].back && low != link.from.value;
    alike.push_back(first
                        .try_emplace({turned ? high : low, turned ? low : high, link.bandwidth_bytes_per_s,
                                      link.latency_ps, link.overhead_ps, cables[c].back.has_value()},
                                     c)
                        .first->second);
  }
  return alike;
}

}  // namespace

StatusOr<Failure> FailCables(const Topology& topology, int32_t cables, uint64_t seed,
                             const std::function<bool(const Topology&)>& serves) {
  XCCL_ASSIGN_OR_RETURN(std::vector<Cable> all, EnoughCables(topology, cables));
  Random random(seed);
  for (int draw = 0; draw < kDraws; ++draw) {
    random.Shuffle(std::span(all));
    XCCL_ASSIGN_OR_RETURN(Failure failure,
                          Without(topology, std::span(all).first(static_cast<size_t>(cables))));
    if (!serves || serves(failure.topology)) return failure;
  }
  return NoneServes(topology, cables, all.size(), kDraws);
}

StatusOr<std::vector<Failure>> FailCablesOften(const Topology& topology, int32_t cables, int32_t count,
                                               uint64_t seed,
                                               const std::function<bool(const Topology&)>& serves) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<Cable> all, EnoughCables(topology, cables));
  const auto chosen = static_cast<size_t>(cables);
  const std::vector<size_t> alike = FirstAlike(topology, all);
  std::vector<Failure> failures;
  std::set<std::vector<size_t>> seen;
  // Adds the failure of these cables, unless it is alike or does not serve.
  const auto add = [&](std::span<const size_t> choice) -> Status {
    std::vector<size_t> key;
    std::vector<Cable> failed;
    for (const size_t c : choice) {
      key.push_back(alike[c]);
      failed.push_back(all[c]);
    }
    std::ranges::sort(key);
    if (!seen.insert(std::move(key)).second) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(Failure failure, Without(topology, failed));
    if (!serves || serves(failure.topology)) failures.push_back(std::move(failure));
    return OkStatus();
  };
  Random random(seed);
  size_t draws = 0;
  if (std::vector<std::vector<size_t>> choices = Choices(all.size(), chosen); !choices.empty()) {
    random.Shuffle(std::span(choices));
    for (; draws < choices.size() && std::ssize(failures) < count; ++draws)
      XCCL_RETURN_IF_ERROR(add(choices[draws]));
  } else {
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (int in_vain = 0; in_vain < kDraws && std::ssize(failures) < count; ++draws) {
      random.Shuffle(std::span(order));
      const size_t before = failures.size();
      XCCL_RETURN_IF_ERROR(add(std::span(order).first(chosen)));
      in_vain = failures.size() > before ? 0 : in_vain + 1;
    }
  }
  if (failures.empty()) return NoneServes(topology, cables, all.size(), draws);
  return failures;
}

}  // namespace xccl
