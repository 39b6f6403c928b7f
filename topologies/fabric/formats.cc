#include "topologies/fabric/formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "topologies/fabric/damage.h"
#include "topologies/fabric/iblinkinfo.h"
#include "topologies/fabric/ibnetdiscover.h"
#include "topologies/fabric/lldp.h"
#include "topologies/fabric/slurm.h"

namespace xccl {
namespace {

// The files of one fabric: one of each format but LLDP's, whose reader needs those of all hosts.
StatusOr<Fabric> ReadLldpFiles(std::span<const FabricFile> files) {
  std::vector<LldpFile> lldp;
  for (const FabricFile& file : files) lldp.push_back({file.text, file.path});
  return ReadLldp(lldp);
}

template <StatusOr<Fabric> (*read)(std::string_view text, std::string_view file)>
StatusOr<Fabric> Each(std::span<const FabricFile> files);

struct FabricFormat {
  std::string_view name;
  bool (*is)(std::string_view text);
  StatusOr<Fabric> (*read)(std::span<const FabricFile> files);
};

// The format that tells most of cables comes first.
constexpr FabricFormat kFormats[] = {
    {"ibnetdiscover", IsIbnetdiscover, Each<ReadIbnetdiscover>},
    {"iblinkinfo", IsIblinkinfo, Each<ReadIblinkinfo>},
    {"lldpcli -f json", IsLldp, ReadLldpFiles},
    {"Slurm's topology.conf or topology.yaml", IsSlurmTopology, Each<ReadSlurmTopology>},
};

const FabricFormat* FormatOf(std::string_view text) {
  const auto* const found = std::ranges::find_if(kFormats, [&](const FabricFormat& f) { return f.is(text); });
  return found == std::end(kFormats) ? nullptr : found;
}

class Merger {
 public:
  void Add(const Fabric& fabric, std::string_view file) {
    merged_.format = fabric.format;
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
    merged_.domains.insert(merged_.domains.end(), fabric.domains.begin(), fabric.domains.end());
    const std::vector<std::string> damage = DamageOf(fabric, file);
    merged_.warnings.insert(merged_.warnings.end(), damage.begin(), damage.end());
    merged_.warnings.insert(merged_.warnings.end(), fabric.warnings.begin(), fabric.warnings.end());
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

template <StatusOr<Fabric> (*read)(std::string_view text, std::string_view file)>
StatusOr<Fabric> Each(std::span<const FabricFile> files) {
  if (files.size() == 1) return read(files.front().text, files.front().path);
  Merger merger;
  for (const FabricFile& file : files) {
    XCCL_ASSIGN_OR_RETURN(const Fabric fabric, read(file.text, file.path));
    merger.Add(fabric, file.path);
  }
  return std::move(merger.merged());
}

}  // namespace

std::vector<std::string> FabricFormatNames() {
  std::vector<std::string> names;
  for (const FabricFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

bool IsFabric(std::string_view text) { return FormatOf(text) != nullptr; }

StatusOr<Fabric> ReadFabric(std::span<const FabricFile> files) {
  std::map<const FabricFormat*, std::vector<FabricFile>> by_format;
  for (const FabricFile& file : files) {
    const FabricFormat* const format = FormatOf(file.text);
    if (format == nullptr)
      return InvalidInput(fmt::format("{}: no file of a fabric; expected what {} wrote", file.path,
                                      Either(FabricFormatNames())));
    by_format[format].push_back(file);
  }
  const FabricFormat* const first =
      std::ranges::find_if(kFormats, [&](const FabricFormat& format) { return by_format.contains(&format); });
  XCCL_ASSIGN_OR_RETURN(Fabric fabric, first->read(by_format[first]));
  for (const FabricFormat& format : kFormats) {
    const auto others = by_format.find(&format);
    if (&format == first || others == by_format.end()) continue;
    XCCL_ASSIGN_OR_RETURN(const Fabric other, format.read(others->second));
    if (other.domains.empty())
      return InvalidInput(fmt::format("{}: {}, without NVLink domains; expected {}, as {} is",
                                      others->second.front().path, format.name, first->name,
                                      by_format[first].front().path));
    fabric.domains.insert(fabric.domains.end(), other.domains.begin(), other.domains.end());
  }
  return fabric;
}

}  // namespace xccl
