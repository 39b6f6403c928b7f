#include "topologies/fabric/match_nics.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

// The name without its number, and the number: "mlx5_10" is {"mlx5_", 10}.
std::pair<std::string_view, std::optional<int64_t>> Numbered(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  constexpr int64_t kMost = 1'000'000;
  const StatusOr<int64_t> number = ParseInteger(name.substr(end), 0, kMost);
  return {name.substr(0, end), number.ok() ? std::optional(*number) : std::nullopt};
}

// A dump has the bytes of a guid in the order of the network or in that of its host.
bool SameGuid(uint64_t written, uint64_t guid) {
  return guid != 0 && (written == guid || __builtin_bswap64(written) == guid);
}

// The device that the id of a NIC names: the second port of mlx5_0 is mlx5_0-2.
std::string_view DeviceOf(std::string_view id) {
  const size_t dash = id.rfind('-');
  const bool port = dash != std::string_view::npos && dash > 0 && id.substr(dash + 1) == "2";
  return port ? id.substr(0, dash) : id;
}

}  // namespace

std::string_view ToString(NicRule rule) {
  switch (rule) {
    case NicRule::kWhole:
      return "their host alone, which is all that the file knows,";
    case NicRule::kName:
      return "device name";
    case NicRule::kGuid:
      return "guid";
    case NicRule::kNumber:
      return "number (HCA-1 is the first)";
    case NicRule::kOrder:
      return "order";
  }
  return "";
}

NicMatcher::NicMatcher(const HostKind& kind, std::span<const HostNic> nics, const Fabric& fabric,
                       std::span<const FabricHost> hosts)
    : nics_(nics), fabric_(fabric) {
  for (size_t i = 0; i < nics.size(); ++i)
    for (const std::string& device : Split(kind.topology.node(nics[i].node).id, '+'))
      named_[std::string(DeviceOf(device))].push_back(i);
  for (const FabricHost& host : hosts)
    for (const FabricPort& port : host.ports)
      for (size_t i = 0; i < nics.size(); ++i) {
        const FabricAdapter& adapter = Adapter(port);
        if (nics[i].facts.guid != 0 && !adapter.device.empty() &&
            (SameGuid(nics[i].facts.guid, adapter.guid) || SameGuid(nics[i].facts.guid, adapter.system_guid)))
          learned_.emplace(adapter.device, i);
      }
}

NicMatcher::Found NicMatcher::ByName(const FabricHost& host) const {
  Found found;
  std::map<std::string_view, size_t> ports_of;  // so many ports of the device so far
  for (const FabricPort& port : host.ports) {
    const std::string& device = Adapter(port).device;
    const auto known = named_.find(device);
    found.emplace_back();
    if (known == named_.end()) continue;
    found.back() = known->second[std::min(ports_of[device]++, known->second.size() - 1)];
  }
  return found;
}

NicMatcher::Found NicMatcher::ByGuid(const FabricHost& host) const {
  Found found;
  for (const FabricPort& port : host.ports) {
    const auto known = learned_.find(Adapter(port).device);
    found.push_back(known == learned_.end() ? std::nullopt : std::optional(known->second));
  }
  return found;
}

NicMatcher::Found NicMatcher::ByNumber(const FabricHost& host) const {
  std::map<int64_t, size_t> nic_of;
  std::set<std::string_view> stems;
  for (const auto& [device, nics] : named_) {
    const auto [stem, number] = Numbered(device);
    if (!number) return {};
    stems.insert(stem);
    nic_of.emplace(*number, nics.front());
  }
  if (stems.size() != 1) return {};
  const bool devices = stems.begin()->starts_with("mlx") || stems.begin()->starts_with("ib");
  Found found;
  for (const FabricPort& port : host.ports) {
    const auto [stem, number] = Numbered(Adapter(port).device);
    const bool from_one = stem == "HCA-";
    const auto known = number ? nic_of.find(*number - (from_one ? 1 : 0)) : nic_of.end();
    if (known == nic_of.end() && !devices) return {};
    if (devices && !from_one) return {};
    found.push_back(known == nic_of.end() ? std::nullopt : std::optional(known->second));
  }
  return found;
}

int64_t NicMatcher::RateOf(const FabricPort& port) const {
  int64_t rate = 0;
  for (int32_t cable : port.cables) rate += fabric_.cables[static_cast<size_t>(cable)].bandwidth_bytes_per_s;
  return rate;
}

// Ports of one device are one NIC. Several devices are one NIC where it is as fast as they are together, and
// all NICs have as many. Where there are more devices than NICs, the fastest are taken.
NicMatcher::Found NicMatcher::InOrder(const FabricHost& host) const {
  std::vector<size_t> device_of;  // by port
  std::vector<int64_t> rates;     // by device
  for (size_t p = 0; p < host.ports.size(); ++p) {
    const std::string& device = Adapter(host.ports[p]).device;
    const bool same = p > 0 && !device.empty() && device == Adapter(host.ports[p - 1]).device;
    if (!same) rates.push_back(0);
    rates.back() += RateOf(host.ports[p]);
    device_of.push_back(rates.size() - 1);
  }
  const size_t share = rates.size() / nics_.size();
  const bool shared = share > 1 && rates.size() % nics_.size() == 0 &&
                      nics_.front().bandwidth_bytes_per_s >= static_cast<int64_t>(share) * rates.front();
  std::vector<size_t> taken(rates.size());
  for (size_t d = 0; d < taken.size(); ++d) taken[d] = d;
  if (!shared && taken.size() > nics_.size()) {
    std::ranges::stable_sort(taken, [&](size_t a, size_t b) { return rates[a] > rates[b]; });
    taken.resize(nics_.size());
    std::ranges::sort(taken);
  }
  std::vector<std::optional<size_t>> nic_of(rates.size());
  for (size_t i = 0; i < taken.size(); ++i) nic_of[taken[i]] = shared ? i / share : i;
  Found found;
  for (size_t device : device_of) found.push_back(nic_of[device]);
  return found;
}

NicMatch NicMatcher::Match(const FabricHost& host) const {
  NicMatch match;
  if (host.whole) {
    match.rule = NicRule::kWhole;
    match.nics.resize(host.ports.size());
    for (size_t i = 0; i < nics_.size(); ++i) match.nics[i % host.ports.size()].push_back(i);
    return match;
  }
  Found found;
  const auto none = [&] {
    return std::ranges::none_of(found, [](const auto& nic) { return nic.has_value(); });
  };
  const std::pair<NicRule, Found (NicMatcher::*)(const FabricHost&) const> rules[] = {
      {NicRule::kName, &NicMatcher::ByName},
      {NicRule::kGuid, &NicMatcher::ByGuid},
      {NicRule::kNumber, &NicMatcher::ByNumber},
      {NicRule::kOrder, &NicMatcher::InOrder}};
  for (const auto& [rule, find] : rules) {
    if (!none()) break;
    match.rule = rule;
    found = (this->*find)(host);
  }
  for (const std::optional<size_t>& nic : found)
    match.nics.push_back(nic ? std::vector{*nic} : std::vector<size_t>{});
  return match;
}

}  // namespace xccl
