#include "topologies/fabric/degraded.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace xccl {
namespace {

// Cables alike: the fastest rate, how many have it, and how many there are.
struct Group {
  int64_t best = 0;
  int64_t at_best = 0;
  int64_t cables = 0;
  void Add(int64_t rate) {
    if (rate > best) at_best = 0;
    best = std::max(best, rate);
    at_best += rate == best ? 1 : 0;
    ++cables;
  }
  bool Agrees() const { return at_best * 10 >= cables * 9; }  // nine or more, if any is slower
};

class Marker {
 public:
  Marker(Fabric& fabric, std::span<const int32_t> switch_models, std::span<const int32_t> adapter_models)
      : fabric_(fabric), switch_models_(switch_models), adapter_models_(adapter_models) {}

  std::vector<int32_t> Mark() {
    for (const FabricCable& cable : fabric_.cables) {
      if (!Counts(cable)) continue;
      alike_[Alike(cable)].Add(cable.bandwidth_bytes_per_s);
      if (BetweenSwitches(cable)) parallel_[Parallel(cable)].Add(cable.bandwidth_bytes_per_s);
    }
    for (const FabricCable& cable : fabric_.cables)
      if (const std::string host = Host(cable); Counts(cable) && !host.empty()) {
        Slow& slow = hosts_[host];
        ++slow.cables;
        slow.slow += RateOfAlike(cable) > cable.bandwidth_bytes_per_s ? 1 : 0;
      }
    std::vector<int32_t> marked;
    for (size_t i = 0; i < fabric_.cables.size(); ++i) {
      FabricCable& cable = fabric_.cables[i];
      const int64_t full = Counts(cable) ? FullRate(cable) : 0;
      if (full <= cable.bandwidth_bytes_per_s) continue;
      cable.full_bandwidth_bytes_per_s = full;
      marked.push_back(static_cast<int32_t>(i));
    }
    return marked;
  }

 private:
  // Cables of a host, and how many are slower than cables alike.
  struct Slow {
    int64_t cables = 0, slow = 0;
  };

  static bool BetweenSwitches(const FabricCable& cable) { return cable.a.is_switch && cable.b.is_switch; }

  // A cable from adapter to adapter has none alike.
  static bool Counts(const FabricCable& cable) {
    return cable.bandwidth_bytes_per_s != 0 && (cable.a.is_switch || cable.b.is_switch);
  }

  const FabricAdapter* AdapterOf(const FabricCable& cable) const {
    if (BetweenSwitches(cable)) return nullptr;
    return &fabric_.adapters[cable.a.is_switch ? cable.b.index : cable.a.index];
  }

  static std::string Parallel(const FabricCable& cable) {
    const auto [low, high] = std::minmax(cable.a.index, cable.b.index);
    return fmt::format("{} {}", low, high);
  }

  // The name of the cable's group; empty: it has none.
  std::string Alike(const FabricCable& cable) const {
    if (const FabricAdapter* const adapter = AdapterOf(cable)) {
      const int32_t model = adapter_models_[cable.a.is_switch ? cable.b.index : cable.a.index];
      return model == 0 ? "" : fmt::format("adapter {} {}", model, adapter->device);
    }
    const auto [low, high] = std::minmax(switch_models_[cable.a.index], switch_models_[cable.b.index]);
    return low == 0 ? "" : fmt::format("switches {} {}", low, high);
  }

  std::string Host(const FabricCable& cable) const {
    const FabricAdapter* const adapter = AdapterOf(cable);
    return adapter == nullptr ? "" : adapter->host;
  }

  // The rate on which cables alike agree, or 0.
  int64_t RateOfAlike(const FabricCable& cable) const {
    const std::string name = Alike(cable);
    if (name.empty()) return 0;
    const Group& alike = alike_.at(name);
    return alike.Agrees() ? alike.best : 0;
  }

  int64_t FullRate(const FabricCable& cable) const {
    if (BetweenSwitches(cable)) return std::max(parallel_.at(Parallel(cable)).best, RateOfAlike(cable));
    if (const std::string host = Host(cable); !host.empty()) {
      const Slow& own = hosts_.at(host);
      if (own.cables > 1 && own.slow == own.cables) return 0;
    }
    return RateOfAlike(cable);
  }

  Fabric& fabric_;
  std::span<const int32_t> switch_models_, adapter_models_;
  std::unordered_map<std::string, Group> alike_, parallel_;
  std::unordered_map<std::string, Slow> hosts_;
};

}  // namespace

std::vector<int32_t> MarkDegraded(Fabric& fabric, std::span<const int32_t> switch_models,
                                  std::span<const int32_t> adapter_models) {
  return Marker(fabric, switch_models, adapter_models).Mark();
}

}  // namespace xccl
