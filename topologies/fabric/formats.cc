#include "topologies/fabric/formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "topologies/fabric/damage.h"
#include "topologies/fabric/ibnetdiscover.h"

namespace xccl {
namespace {

constexpr FabricFormat kFormats[] = {
    {"ibnetdiscover", IsIbnetdiscover, ReadIbnetdiscover},
};

class Merger {
 public:
  void Add(const FabricOfFile& of_file) {
    const auto& [file, fabric] = of_file;
    std::vector<int32_t> switches, adapters;
    for (const FabricSwitch& s : fabric.switches)
      switches.push_back(
          IndexOf(SwitchKey{s.guid, s.guid == 0 ? s.name : ""}, s, switches_, merged_.switches));
    for (const FabricAdapter& a : fabric.adapters) {
      const AdapterKey key{a.guid, a.guid == 0 ? a.host : "", a.guid == 0 ? a.device : ""};
      adapters.push_back(IndexOf(key, a, adapters_, merged_.adapters));
    }
    std::vector<FabricCable> added;
    for (FabricCable cable : fabric.cables) {
      for (FabricEnd* end : {&cable.a, &cable.b})
        end->index = (end->is_switch ? switches : adapters)[static_cast<size_t>(end->index)];
      if (IsKnown(cable)) continue;
      cable.line = 0;
      cable.full_bandwidth_bytes_per_s = 0;
      added.push_back(cable);
    }
    // Only cables of other files are the same as one of this file.
    for (const FabricCable& cable : added) known_.insert(Key(cable));
    merged_.cables.insert(merged_.cables.end(), added.begin(), added.end());
    AddDomains(fabric);
    const std::vector<std::string> damage = DamageOf(fabric, file);
    merged_.warnings.insert(merged_.warnings.end(), damage.begin(), damage.end());
    merged_.warnings.insert(merged_.warnings.end(), fabric.warnings.begin(), fabric.warnings.end());
  }
  void AddDomains(const Fabric& fabric) {
    merged_.domains.insert(merged_.domains.end(), fabric.domains.begin(), fabric.domains.end());
  }
  Fabric& merged() { return merged_; }

 private:
  using SwitchKey = std::tuple<uint64_t, std::string>;
  using AdapterKey = std::tuple<uint64_t, std::string, std::string>;
  using End = std::tuple<bool, int32_t, int32_t>;

  template <typename Key, typename Item>
  static int32_t IndexOf(const Key& key, const Item& item, std::map<Key, int32_t>& known,
                         std::vector<Item>& items) {
    const auto [found, added] = known.emplace(key, static_cast<int32_t>(items.size()));
    if (added) items.push_back(item);
    return found->second;
  }

  static std::pair<End, End> Key(const FabricCable& cable) {
    const End a{cable.a.is_switch, cable.a.index, cable.a.port},
        b{cable.b.is_switch, cable.b.index, cable.b.port};
    return std::minmax(a, b);
  }
  bool IsKnown(const FabricCable& cable) const { return known_.contains(Key(cable)); }

  std::map<SwitchKey, int32_t> switches_;
  std::map<AdapterKey, int32_t> adapters_;
  std::set<std::pair<End, End>> known_;
  Fabric merged_;
};

}  // namespace

std::span<const FabricFormat> FabricFormats() { return kFormats; }

std::vector<std::string> FabricFormatNames() {
  std::vector<std::string> names;
  for (const FabricFormat& format : FabricFormats()) names.emplace_back(format.name);
  return names;
}

const FabricFormat* FabricFormatOf(std::string_view text) {
  for (const FabricFormat& format : FabricFormats())
    if (format.is(text)) return &format;
  return nullptr;
}

StatusOr<Fabric> MergeFabrics(std::span<const FabricOfFile> fabrics) {
  if (fabrics.size() == 1) return fabrics.front().second;
  Merger merger;
  const FabricOfFile& first = fabrics.front();
  for (const FabricOfFile& of_file : fabrics) {
    const auto& [file, fabric] = of_file;
    if (fabric.format == first.second.format)
      merger.Add(of_file);
    else if (!fabric.domains.empty())
      merger.AddDomains(fabric);
    else
      return InvalidInput(fmt::format("{}: {} without domains of NVLink; expected {}, as {} is", file,
                                      fabric.format, first.second.format, first.first));
  }
  merger.merged().format = first.second.format;
  return std::move(merger.merged());
}

}  // namespace xccl
