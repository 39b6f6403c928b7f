#include "topologies/fabric/fabric_hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "topologies/fabric/host_list.h"

namespace xccl {
namespace {

// A run of digits as a number: without its zeros in front.
std::string_view NumberAt(std::string_view text, size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const size_t begin = at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

// The first label of a name, in lower case.
std::string ShortHostName(std::string_view name) {
  std::string text(name.substr(0, name.find('.')));
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The name of each adapter's host.
class HostNames {
 public:
  explicit HostNames(const Fabric& fabric) {
    for (const FabricAdapter& adapter : fabric.adapters) {
      if (adapter.host.empty() || adapter.system_guid == 0) continue;
      const auto [known, added] = of_system_.emplace(adapter.system_guid, adapter.host);
      if (!added && known->second != adapter.host) known->second.clear();  // of no host alone
    }
  }

  std::string Of(const FabricAdapter& adapter, size_t index) {
    if (!adapter.host.empty()) return adapter.host;
    const auto known = of_system_.find(adapter.system_guid);
    if (known != of_system_.end() && !known->second.empty()) return known->second;
    nameless_ = true;
    if (adapter.system_guid != 0) return fmt::format("ca-{:016x}", adapter.system_guid);
    return adapter.guid != 0 ? fmt::format("ca-{:016x}", adapter.guid) : fmt::format("ca-{}", index);
  }
  bool nameless() const { return nameless_; }

 private:
  std::map<uint64_t, std::string> of_system_;
  bool nameless_ = false;
};

bool Matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  std::optional<std::pair<size_t, size_t>> star;  // where to go on after the last '*'
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = {++p, t};
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star) {
      p = star->first;
      t = ++star->second;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool NaturallyBefore(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (IsDigit(a[i]) && IsDigit(b[j])) {
      const std::string_view x = NumberAt(a, i), y = NumberAt(b, j);
      if (x != y) return std::pair(x.size(), x) < std::pair(y.size(), y);
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i, ++j;
    }
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;
}

std::vector<FabricHost> HostsOf(const Fabric& fabric, std::string_view file,
                                std::vector<std::string>& warnings) {
  std::vector<FabricPort> ports(fabric.adapters.size());
  for (size_t a = 0; a < ports.size(); ++a) ports[a].adapter = static_cast<int32_t>(a);
  for (size_t c = 0; c < fabric.cables.size(); ++c)
    for (const FabricEnd& end : {fabric.cables[c].a, fabric.cables[c].b})
      if (!end.is_switch) ports[static_cast<size_t>(end.index)].cables.push_back(static_cast<int32_t>(c));
  HostNames names(fabric);
  std::map<std::string, FabricHost> by_name;
  for (size_t a = 0; a < ports.size(); ++a) {
    if (ports[a].cables.empty()) continue;
    const std::string name = names.Of(fabric.adapters[a], a);
    FabricHost& host = by_name[name];
    host.name = name;
    host.ports.push_back(std::move(ports[a]));
  }
  if (names.nameless())
    warnings.push_back(
        fmt::format("{}: adapters without a host's name are hosts ca-GUID, one for each system GUID; hint: "
                    "--hosts-file=LIST or --job=HOSTS takes the hosts that you mean",
                    file));
  std::vector<FabricHost> hosts;
  for (auto& [name, host] : by_name) {
    std::ranges::stable_sort(host.ports, [&](const FabricPort& x, const FabricPort& y) {
      const FabricAdapter& a = fabric.adapters[static_cast<size_t>(x.adapter)];
      const FabricAdapter& b = fabric.adapters[static_cast<size_t>(y.adapter)];
      if (a.device != b.device) return NaturallyBefore(a.device, b.device);
      return a.guid < b.guid;
    });
    host.whole = std::ranges::all_of(host.ports, [&](const FabricPort& port) {
      const FabricAdapter& adapter = fabric.adapters[static_cast<size_t>(port.adapter)];
      return adapter.device.empty() && adapter.guid == 0;
    });
    hosts.push_back(std::move(host));
  }
  std::ranges::stable_sort(
      hosts, [](const FabricHost& a, const FabricHost& b) { return NaturallyBefore(a.name, b.name); });
  return hosts;
}

StatusOr<std::vector<size_t>> FindHosts(std::span<const std::string> names,
                                        std::span<const std::string> hosts) {
  std::map<std::string_view, size_t> exact;
  std::map<std::string, std::vector<size_t>> alike;
  for (size_t h = 0; h < hosts.size(); ++h) {
    exact.emplace(hosts[h], h);
    alike[ShortHostName(hosts[h])].push_back(h);
  }
  std::vector<size_t> found;
  std::set<size_t> taken;
  for (const std::string& name : names) {
    std::optional<size_t> host;
    if (const auto known = exact.find(name); known != exact.end()) host = known->second;
    if (!host)
      if (const auto near = alike.find(ShortHostName(name)); near != alike.end() && near->second.size() == 1)
        host = near->second.front();
    if (!host) {
      const std::vector<std::string_view> all(hosts.begin(), hosts.end());
      return InvalidInput(fmt::format("no host '{}'{}", Shortened(name), DidYouMean(name, all)));
    }
    if (!taken.insert(*host).second)
      return InvalidInput(fmt::format("host '{}' is named twice; expected each host once", Shortened(name)));
    found.push_back(*host);
  }
  return found;
}

StatusOr<HostPattern> HostPattern::Read(std::string_view text) {
  HostPattern pattern;
  if (text.find_first_of("*?") != std::string_view::npos) {
    pattern.wildcards_ = text;
    return pattern;
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandHostList(text));
  for (const std::string& name : names) pattern.listed_.insert(ShortHostName(name));
  return pattern;
}

bool HostPattern::Names(std::string_view host) const {
  return wildcards_.empty() ? listed_.contains(ShortHostName(host)) : Matches(wildcards_, host);
}

}  // namespace xccl
