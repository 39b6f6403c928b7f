// The two forms differ in what stands where one value does: json0 always has a list of objects, json the
// value alone, and it makes a name the key of an object. FirstOf, TextOf and EntriesOf read both. The text is
// read as YAML, of which JSON is a part, for the lines. All neighbours are collected first, then it is
// settled which of them are one switch.
#include "topologies/fabric/lldp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/graph/union_find.h"
#include "base/strings.h"
#include "base/yaml/yaml.h"

namespace xccl {
namespace {

using Kind = YamlNode::Kind;

// The value, or the first of a list of values; null for null and an empty list.
const YamlNode* FirstOf(const YamlNode* node) {
  while (node != nullptr && node->kind == Kind::kList) node = node->items.empty() ? nullptr : &node->items[0];
  return node;
}

// The text of a value: "x", {"value": "x"}, or the first of a list of either; "" for anything else.
std::string TextOf(const YamlNode* node) {
  node = FirstOf(node);
  if (node != nullptr && node->kind == Kind::kMap) node = FirstOf(node->Find("value"));
  return node == nullptr || node->kind != Kind::kScalar ? "" : node->text;
}

struct Named {
  std::string name;
  const YamlNode* map = nullptr;
};

// The objects of a value with their names: an object with a name or with one of the known keys, an object of
// such objects by name, or a list of either.
std::vector<Named> EntriesOf(const YamlNode* node, std::initializer_list<std::string_view> known) {
  std::vector<Named> entries;
  std::vector<const YamlNode*> maps;
  if (node == nullptr) return entries;
  if (node->kind == Kind::kMap) maps.push_back(node);
  for (const YamlNode& item : node->items)
    if (node->kind == Kind::kList && item.kind == Kind::kMap) maps.push_back(&item);
  for (const YamlNode* map : maps) {
    // A value under a known key is no object with such keys: a switch may be named "id".
    const bool plain = map->Find("name") != nullptr || std::ranges::any_of(known, [&](std::string_view key) {
                         const YamlNode* const value = FirstOf(map->Find(key));
                         return value != nullptr && std::ranges::none_of(known, [&](std::string_view inner) {
                                  return value->Find(inner) != nullptr;
                                });
                       });
    if (plain) {
      entries.push_back({TextOf(map->Find("name")), map});
      continue;
    }
    for (size_t i = 0; i + 1 < map->items.size(); i += 2)
      if (const YamlNode* const value = FirstOf(&map->items[i + 1]);
          value != nullptr && value->kind == Kind::kMap)
        entries.push_back({map->items[i].text, value});
  }
  return entries;
}

// 48 bits from "02:00:00:00:00:01".
std::optional<uint64_t> MacOf(std::string_view text) {
  uint64_t mac = 0;
  int digits = 0;
  for (const char c : text) {
    if (c == ':' || c == '-' || c == '.') continue;
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0 || ++digits > 12) return {};
    mac = mac * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return digits == 12 && mac != 0 ? std::optional(mac) : std::nullopt;
}

// The rate of a medium as lldpd and IEEE 802.3 name it: 1000BaseTFD, 10GigBaseSR, 100GbaseSR4. 0: it names
// none.
int64_t RateOfMedium(std::string_view medium) {
  size_t end = 0;
  int64_t number = 0;
  while (end < medium.size() && medium[end] >= '0' && medium[end] <= '9' && end < 6)
    number = number * 10 + (medium[end++] - '0');
  const std::string rest = Lower(medium.substr(end, 8));
  constexpr int64_t kMegabit = 125'000;
  if (rest.starts_with("gbase") || rest.starts_with("gigbase")) return number * 1000 * kMegabit;
  return rest.starts_with("base") && number >= 10 ? number * kMegabit : 0;
}

// The rate of a port whose kind is in its name, as Cisco's are: HundredGigE0/0/0/1. 0: it is not.
int64_t RateOfPort(std::string_view port) {
  constexpr std::array<std::pair<std::string_view, int64_t>, 8> kKinds = {{{"eighthundredgig", 800},
                                                                           {"fourhundredgig", 400},
                                                                           {"twohundredgig", 200},
                                                                           {"hundredgig", 100},
                                                                           {"fiftygig", 50},
                                                                           {"fortygig", 40},
                                                                           {"twentyfivegig", 25},
                                                                           {"tengig", 10}}};
  const std::string lower = Lower(port.substr(0, 16));
  for (const auto& [kind, gigabits] : kKinds)
    if (lower.starts_with(kind)) return gigabits * 125'000'000;
  return 0;
}

// The number that a port's name ends in, if it is the only one: 12 of Ethernet12, 0 of Ethernet1/12.
int32_t NumberOfPort(std::string_view port) {
  const size_t first = port.find_first_of("0123456789");
  if (first == std::string_view::npos || port.size() - first > 6) return 0;
  int32_t number = 0;
  for (const char c : port.substr(first)) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + (c - '0');
  }
  return number;
}

// gpu001 of a/gpu001.lldp.json; a name with dots may have no suffix.
std::string HostOf(std::string_view file) {
  std::filesystem::path name = std::filesystem::path(file).filename();
  for (bool more = true; more;) {
    const std::string suffix = Lower(name.extension().string());
    more =
        suffix == ".json" || suffix == ".json0" || suffix == ".txt" || suffix == ".out" || suffix == ".lldp";
    if (more) name = name.stem();
  }
  return name.string();
}

struct Neighbour {
  size_t host = 0;
  std::string device;             // of the host
  std::string id;                 // of the chassis, with its type: "mac 02:00:00:00:00:01"; may be empty
  std::string name;               // may be empty
  std::optional<uint64_t> mac;    // of the chassis
  std::string port, description;  // of the neighbour; may be empty
  int64_t rate = 0;
  bool other = false;  // says that it neither bridges nor routes
  int32_t line = 0;
};

// True if capabilities are told, and neither to bridge nor to route is on.
bool IsOther(const YamlNode* capabilities) {
  if (capabilities == nullptr || capabilities->items.empty()) return false;
  const auto on = [](const YamlNode& one) {
    const std::string type = TextOf(one.Find("type"));
    return (type == "Bridge" || type == "Router") && TextOf(one.Find("enabled")) == "true";
  };
  if (capabilities->kind == Kind::kMap) return !on(*capabilities);
  return std::ranges::none_of(capabilities->items, on);
}

class FileReader {
 public:
  FileReader(const LldpFile& file, size_t host) : file_(file), host_(host) {}

  StatusOr<std::vector<Neighbour>> Read() {
    XCCL_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(file_.text, file_.file));
    const YamlNode* const lldp = FirstOf(root.Find("lldp"));
    if (lldp == nullptr || lldp->kind != Kind::kMap)
      return Error(root, "no object \"lldp\"; expected the output of lldpcli -f json show neighbors");
    std::vector<Neighbour> all;
    for (const Named& interface : EntriesOf(lldp->Find("interface"), {"via", "rid", "chassis", "port"})) {
      if (interface.map->Find("status") != nullptr && interface.map->Find("via") == nullptr)
        return Error(*interface.map,
                     "interfaces of the host itself; expected the output of lldpcli -f json show "
                     "neighbors");
      if (interface.name.empty()) return Error(*interface.map, "an interface without its name; expected one");
      const std::vector<Named> chassis =
          EntriesOf(interface.map->Find("chassis"), {"id", "descr", "mgmt-ip"});
      for (const Named& one : chassis) all.push_back(NeighbourOf(interface, one));
    }
    return all;
  }

 private:
  Status Error(const YamlNode& node, std::string_view text) const {
    return InvalidInput(fmt::format("{}:{}: {}", file_.file, node.line, text));
  }

  Neighbour NeighbourOf(const Named& interface, const Named& chassis) const {
    Neighbour made;
    made.host = host_;
    made.device = Cleaned(interface.name);
    made.line = interface.map->line;
    const YamlNode* const id = FirstOf(chassis.map->Find("id"));
    const std::string value = TextOf(id);
    const std::string type = id == nullptr ? "" : TextOf(id->Find("type"));
    if (!value.empty()) made.id = Cleaned(fmt::format("{} {}", type, type == "mac" ? Lower(value) : value));
    if (type == "mac") made.mac = MacOf(value);
    made.name =
        Cleaned(chassis.map->Find("name") != nullptr ? TextOf(chassis.map->Find("name")) : chassis.name);
    made.other = IsOther(chassis.map->Find("capability"));
    if (const YamlNode* const port = FirstOf(interface.map->Find("port")); port != nullptr) {
      made.port = Cleaned(TextOf(port->Find("id")));
      made.description = Cleaned(TextOf(port->Find("descr")));
      const YamlNode* const negotiation = FirstOf(port->Find("auto-negotiation"));
      if (negotiation != nullptr) made.rate = RateOfMedium(TextOf(negotiation->Find("current")));
      if (made.rate == 0) made.rate = RateOfPort(made.port);
      if (made.rate == 0) made.rate = RateOfPort(made.description);
    }
    return made;
  }

  const LldpFile& file_;
  size_t host_;
};

class Builder {
 public:
  explicit Builder(std::span<const LldpFile> files) : files_(files) {}

  StatusOr<Fabric> Build() {
    fabric_.format = "LLDP";
    for (size_t f = 0; f < files_.size(); ++f) {
      hosts_.push_back(HostOf(files_[f].file));
      const auto [same, added] = file_of_.emplace(hosts_.back(), f);
      if (!added)
        return InvalidInput(fmt::format("{}: host {} a second time; expected one file a host; {} has it, too",
                                        files_[f].file, hosts_.back(), files_[same->second].file));
      XCCL_ASSIGN_OR_RETURN(std::vector<Neighbour> read, FileReader(files_[f], f).Read());
      if (read.empty()) fabric_.warnings.push_back(fmt::format("{}: no neighbours", files_[f].file));
      std::ranges::move(read, std::back_inserter(seen_));
    }
    TakeOneOfEach();
    SettleSwitches();
    for (const Neighbour& neighbour : seen_) AddCable(neighbour);
    if (fabric_.cables.empty())
      return InvalidInput(
          fmt::format("{}: no neighbour that is a switch or a host of another file; expected one{}",
                      files_.empty() ? "LLDP" : files_[0].file,
                      fabric_.warnings.empty() ? "" : "; " + fabric_.warnings.back()));
    return std::move(fabric_);
  }

 private:
  std::string Place(const Neighbour& neighbour) const {
    return fmt::format("{}:{}: {}", files_[neighbour.host].file, neighbour.line, neighbour.device);
  }
  static const std::string& Shown(const Neighbour& n) { return n.name.empty() ? n.id : n.name; }
  // The file of the host that a neighbour is, unless it is the host that sees it.
  std::optional<size_t> FileOf(const Neighbour& neighbour) const {
    auto found = file_of_.find(neighbour.name);
    if (found == file_of_.end()) found = file_of_.find(neighbour.name.substr(0, neighbour.name.find('.')));
    if (found == file_of_.end() || found->second == neighbour.host) return std::nullopt;
    return found->second;
  }

  static bool AreOne(const Neighbour& a, const Neighbour& b) {
    return (!a.id.empty() && a.id == b.id) || (!a.name.empty() && a.name == b.name);
  }

  // Leaves one neighbour at each interface, and says which are left out.
  void TakeOneOfEach() {
    std::vector<Neighbour> kept;
    std::map<std::pair<size_t, std::string>, size_t> at;
    std::vector<std::string> others, later;
    for (Neighbour& neighbour : seen_) {
      if (neighbour.other && !FileOf(neighbour)) {
        others.push_back(fmt::format("{}: {} neither bridges nor routes, and is left out", Place(neighbour),
                                     Shown(neighbour)));
        continue;
      }
      const auto [first, added] = at.emplace(std::pair(neighbour.host, neighbour.device), kept.size());
      if (added) {
        kept.push_back(std::move(neighbour));
      } else if (const Neighbour& one = kept[first->second]; !AreOne(one, neighbour)) {
        later.push_back(fmt::format("{}: of several neighbours {} is taken, and {} is left out",
                                    Place(neighbour), Shown(one), Shown(neighbour)));
      }
    }
    for (const std::vector<std::string>& texts : {others, later})
      if (!texts.empty())
        fabric_.warnings.push_back(texts.size() == 1
                                       ? texts[0]
                                       : fmt::format("{}; likewise at {}", texts[0],
                                                     Counted(std::ssize(texts) - 1, "more interface")));
    seen_ = std::move(kept);
  }

  void SettleSwitches() {
    std::map<std::string, std::set<std::string>> macs_of;  // by name
    for (const Neighbour& n : seen_)
      if (n.mac && !n.name.empty()) macs_of[n.name].insert(n.id);
    std::map<std::string, int32_t> keys;  // of ids and names
    std::vector<std::vector<int32_t>> keys_of;
    const auto key = [&](const std::string& text) {
      return keys.emplace(text, static_cast<int32_t>(keys.size())).first->second;
    };
    for (const Neighbour& n : seen_) {
      std::vector<int32_t>& own = keys_of.emplace_back();
      if (!n.id.empty()) own.push_back(key("id " + n.id));
      const bool telling = !n.mac || macs_of[n.name].size() == 1;
      if (!n.name.empty() && (telling || own.empty())) own.push_back(key("name " + n.name));
    }
    UnionFind sets(keys.size());
    for (const std::vector<int32_t>& own : keys_of)
      for (const int32_t other : own) sets.Join(own[0], other);
    std::map<int32_t, int32_t> switches;  // by set
    std::set<std::string> warned;
    for (size_t i = 0; i < seen_.size(); ++i) {
      const Neighbour& n = seen_[i];
      if (keys_of[i].empty() || FileOf(n)) {
        switch_of_.push_back(-1);
        continue;
      }
      const auto [found, added] =
          switches.emplace(sets.Find(keys_of[i][0]), static_cast<int32_t>(fabric_.switches.size()));
      if (added) fabric_.switches.emplace_back();
      switch_of_.push_back(found->second);
      FabricSwitch& s = fabric_.switches[static_cast<size_t>(found->second)];
      if (s.name.empty()) s.name = n.name;
      if (s.guid == 0 && n.mac) s.guid = *n.mac;
      if (!n.name.empty() && n.name != s.name && warned.insert(n.name).second)
        fabric_.warnings.push_back(
            fmt::format("{}: switch {} has the name {}, too; taken for one", Place(n), s.name, n.name));
      if (macs_of[n.name].size() > 1 && warned.insert(n.name).second)
        fabric_.warnings.push_back(fmt::format("{}: {} switches have the name {}; taken for several",
                                               Place(n), macs_of[n.name].size(), n.name));
    }
    for (size_t i = 0; i < seen_.size(); ++i)
      if (switch_of_[i] >= 0)
        if (FabricSwitch& s = fabric_.switches[static_cast<size_t>(switch_of_[i])]; s.name.empty())
          s.name = seen_[i].id.substr(seen_[i].id.find(' ') + 1);
  }

  int32_t AdapterOf(size_t host, const std::string& device) {
    const auto [found, added] =
        adapters_.emplace(std::pair(host, device), static_cast<int32_t>(fabric_.adapters.size()));
    if (added) fabric_.adapters.push_back({hosts_[host], device, 0, 0});
    return found->second;
  }

  void AddCable(const Neighbour& n) {
    const auto index = static_cast<size_t>(&n - seen_.data());
    const FabricEnd near{false, AdapterOf(n.host, n.device), 0};
    FabricCable cable{{true, switch_of_[index], NumberOfPort(n.port)}, near, n.rate, 0, 0};
    if (files_.size() == 1) cable.line = n.line;
    if (const std::optional<size_t> host = FileOf(n)) {
      // A host names its port by its address, and the interface in the description, or the other way round.
      const bool is_mac = MacOf(n.port).has_value();
      const int32_t far = AdapterOf(*host, is_mac && !n.description.empty() ? n.description : n.port);
      if (!cabled_.emplace(std::min(far, near.index), std::max(far, near.index)).second) return;
      cable.a = {false, far, 0};
    } else if (switch_of_[index] < 0) {
      return;
    }
    fabric_.cables.push_back(cable);
  }

  std::span<const LldpFile> files_;
  Fabric fabric_;
  std::vector<std::string> hosts_;  // by file
  std::map<std::string, size_t> file_of_;
  std::vector<Neighbour> seen_;
  std::vector<int32_t> switch_of_;  // by neighbour; -1: a host
  std::map<std::pair<size_t, std::string>, int32_t> adapters_;
  std::set<std::pair<int32_t, int32_t>> cabled_;
};

}  // namespace

bool IsLldp(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto skip = [&](size_t at) { return std::min(text.find_first_not_of(kBlanks, at), text.size()); };
  const size_t brace = skip(0);
  if (brace == text.size() || text[brace] != '{') return false;
  constexpr std::string_view kKey = "\"lldp\"";
  const size_t key = skip(brace + 1);
  if (!text.substr(key).starts_with(kKey)) return false;
  const size_t colon = skip(key + kKey.size());
  return colon < text.size() && text[colon] == ':';
}

StatusOr<Fabric> ReadLldp(std::span<const LldpFile> files) { return Builder(files).Build(); }

}  // namespace xccl
