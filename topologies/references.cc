// An exact id is looked up in the host that is named, else in the host where the reference stands.
// Otherwise it is sought among the nodes without a host of the enclosing copies, from the inside out, then
// in the enclosing copy, then in the whole document. Among several nodes with the id, the GPU wins where no
// kind is written, then the one without a host.
#include "topologies/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "base/strings.h"

namespace xccl {

struct NodeIndex::Item {
  std::optional<HostId> host;
  bool any_host = false;  // "*/gpu:0"
  std::optional<NodeKind> kind;
  std::string_view id;  // with a trailing '*' where matches is true
  bool matches = false;
};

namespace {

constexpr std::array<NodeKind, 4> kKinds = {NodeKind::kGpu, NodeKind::kSwitch, NodeKind::kNic,
                                            NodeKind::kCpu};

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Splits "gpu:3" into its kind and "3"; text without a kind stays as it is.
std::pair<std::optional<NodeKind>, std::string_view> SplitKind(std::string_view text) {
  for (NodeKind kind : kKinds) {
    const std::string_view name = NodeKindName(kind);
    if (text.size() > name.size() && text[name.size()] == ':' && text.starts_with(name))
      return {kind, text.substr(name.size() + 1)};
  }
  return {std::nullopt, text};
}

// "0..7, nvswitch": runs of numbers are joined; at most eight entries.
std::string IdRuns(const std::vector<std::string_view>& ids) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < ids.size();) {
    if (runs.size() == 8) {
      runs.push_back("...");
      break;
    }
    size_t last = i;
    const std::optional<int64_t> first = Number(ids[i]);
    while (first && last + 1 < ids.size() &&
           Number(ids[last + 1]) == *first + static_cast<int64_t>(last + 1 - i))
      ++last;
    runs.push_back(last == i ? std::string(ids[i]) : fmt::format("{}..{}", ids[i], ids[last]));
    i = last + 1;
  }
  return Join(runs, ", ");
}

}  // namespace

std::string_view NodeKindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGpu:
      return "gpu";
    case NodeKind::kSwitch:
      return "switch";
    case NodeKind::kNic:
      return "nic";
    case NodeKind::kCpu:
      return "cpu";
  }
  return "";
}

std::string NodeIndex::Key(std::optional<HostId> host, std::string_view id) {
  std::string key = host ? std::to_string(host->value) : std::string();
  key += '/';
  key += id;
  return key;
}

std::optional<NodeId> NodeIndex::Update() {
  for (; hosts_taken_ < spec_.hosts.size(); ++hosts_taken_)
    host_named_.emplace(spec_.hosts[hosts_taken_].name, static_cast<int32_t>(hosts_taken_));
  of_host_.resize(spec_.hosts.size());
  gpus_of_host_.resize(spec_.hosts.size());
  std::optional<NodeId> duplicate;
  for (size_t n = next_of_id_.size(); n < spec_.nodes.size(); ++n) {
    const Node& node = spec_.nodes[n];
    const auto index = static_cast<int32_t>(n);
    next_in_host_.push_back(-1);
    next_of_id_.push_back(-1);
    const auto [in_host, unique_in_host] = first_in_host_.emplace(Key(node.host, node.id), index);
    if (!unique_in_host) {
      for (int32_t other = in_host->second; other >= 0; other = next_in_host_[other])
        if (spec_.nodes[other].kind == node.kind && !duplicate) duplicate = NodeId(index);
      next_in_host_[n] = std::exchange(next_in_host_[in_host->second], index);
    }
    const auto [of_id, unique] = first_of_id_.emplace(node.id, index);
    if (!unique) next_of_id_[n] = std::exchange(next_of_id_[of_id->second], index);
    if (node.host) of_host_[node.host->index()].push_back(NodeId(index));
    if (node.kind == NodeKind::kGpu) ++(node.host ? gpus_of_host_[node.host->index()] : gpus_without_host_);
  }
  return duplicate;
}

int64_t NodeIndex::GpusOf(std::optional<HostId> host) const {
  return host ? gpus_of_host_[host->index()] : gpus_without_host_;
}

std::optional<HostId> NodeIndex::FindHost(std::string_view name) const {
  const auto found = host_named_.find(std::string(name));
  if (found == host_named_.end()) return std::nullopt;
  return HostId(found->second);
}

StatusOr<std::vector<NodeId>> NodeIndex::Resolve(std::string_view reference,
                                                 const ReferenceScope& scope) const {
  std::vector<NodeId> found;
  if (reference.find(',') == std::string_view::npos) {
    XCCL_RETURN_IF_ERROR(ResolveItem(Trim(reference), scope, found));
    return found;
  }
  for (const std::string& item : Split(reference, ','))
    XCCL_RETURN_IF_ERROR(ResolveItem(Trim(item), scope, found));
  return found;
}

// Moves "HOST/" from the item's text to its host fields.
Status NodeIndex::TakeHost(const ReferenceScope& scope, Item& item) const {
  const size_t slash = item.id.find('/');
  if (slash == std::string_view::npos) return OkStatus();
  const std::string_view host = item.id.substr(0, slash);
  item.id.remove_prefix(slash + 1);
  item.any_host = host == "*";
  if (item.any_host) return OkStatus();
  item.host = FindHost(scope.prefix + std::string(host));
  if (!item.host) item.host = FindHost(host);
  if (item.host) return OkStatus();
  if (spec_.hosts.empty()) return InvalidInput(fmt::format("no host {}; no host is named here", host));
  std::vector<std::string_view> names;
  for (const Host& known : spec_.hosts) names.push_back(known.name);
  return InvalidInput(
      fmt::format("no host {}; hosts are {}{}", host, IdRuns(names), DidYouMean(host, names)));
}

// Resolves each number of "gpu:0..3" by itself.
Status NodeIndex::ResolveRange(const Item& item, size_t dots, const ReferenceScope& scope,
                               std::vector<NodeId>& found) const {
  const auto first = Number(item.id.substr(0, dots)), last = Number(item.id.substr(dots + 2));
  if (!first || !last || *first < 0 || *last < *first)
    return InvalidInput(fmt::format("'{}': expected a range such as gpu:0..3", item.id));
  for (int64_t i = *first; i <= *last; ++i) {
    const std::string id = std::to_string(i);
    Item one = item;
    one.id = id;
    XCCL_RETURN_IF_ERROR(ResolvePlain(one, scope, found));
  }
  return OkStatus();
}

Status NodeIndex::ResolvePlain(const Item& item, const ReferenceScope& scope,
                               std::vector<NodeId>& found) const {
  const bool many = item.matches || item.any_host;
  const std::vector<NodeId> nodes = many ? Matching(item, scope) : Exact(item, scope);
  if (nodes.empty()) return NotFound(item, scope);
  if (nodes.size() > 1 && !many)
    return InvalidInput(fmt::format("'{}' is {} nodes, such as {} and {}; expected one", item.id,
                                    nodes.size(), Reference(nodes[0]), Reference(nodes[1])));
  found.insert(found.end(), nodes.begin(), nodes.end());
  return OkStatus();
}

Status NodeIndex::ResolveItem(std::string_view text, const ReferenceScope& scope,
                              std::vector<NodeId>& found) const {
  if (text.empty()) return InvalidInput("an empty reference; expected a node such as 0, gpu:3 or h0/gpu:3");
  Item item;
  item.id = text;
  XCCL_RETURN_IF_ERROR(TakeHost(scope, item));
  std::tie(item.kind, item.id) = SplitKind(item.id);
  if (item.id == "*" && !item.kind)
    return InvalidInput("'*' names every node; expected gpu:*, switch:*, nic:* or cpu:*");
  item.matches = item.id.ends_with('*');
  if (const size_t dots = item.id.find(".."); dots != std::string_view::npos)
    return ResolveRange(item, dots, scope, found);
  return ResolvePlain(item, scope, found);
}

// The nodes of the item's kind in its host, or in the scope.
std::vector<NodeId> NodeIndex::InScope(const Item& item, const ReferenceScope& scope) const {
  const std::optional<HostId> host = item.host ? item.host : item.any_host ? std::nullopt : scope.host;
  std::vector<NodeId> nodes;
  const auto consider = [&](NodeId n) {
    const Node& node = spec_.nodes[n.index()];
    if (item.any_host && !node.host) return;
    if (!item.kind || node.kind == *item.kind) nodes.push_back(n);
  };
  if (host) {
    for (NodeId n : of_host_[host->index()]) consider(n);
  } else {
    const int32_t last = scope.last.value_or(static_cast<int32_t>(next_of_id_.size()));
    for (int32_t n = scope.first; n < last; ++n) consider(NodeId(n));
  }
  return nodes;
}

std::vector<NodeId> NodeIndex::Matching(const Item& item, const ReferenceScope& scope) const {
  std::vector<NodeId> nodes = InScope(item, scope);
  std::string_view start = item.id;
  if (item.matches) start.remove_suffix(1);
  std::erase_if(nodes, [&](NodeId n) {
    const Node& node = spec_.nodes[n.index()];
    if (!item.matches) return node.id != item.id;
    if (node.id.starts_with(start)) return false;
    return node.host || !node.id.starts_with(scope.prefix + std::string(start));
  });
  return nodes;
}

std::vector<NodeId> NodeIndex::Exact(const Item& item, const ReferenceScope& scope) const {
  const auto in_host = [&](std::optional<HostId> host, const std::string& id) {
    std::vector<NodeId> nodes;
    const auto found = first_in_host_.find(Key(host, id));
    for (int32_t n = found == first_in_host_.end() ? -1 : found->second; n >= 0; n = next_in_host_[n])
      if (!item.kind || spec_.nodes[n].kind == *item.kind) nodes.push_back(NodeId(n));
    return nodes;
  };
  // Among several nodes, the GPU wins where no kind is written, then the one without a host.
  const auto pick = [&](std::vector<NodeId> nodes) {
    const auto only = [&](auto wanted) {
      const auto count = std::count_if(nodes.begin(), nodes.end(), wanted);
      if (nodes.size() > 1 && count == 1) nodes = {*std::find_if(nodes.begin(), nodes.end(), wanted)};
    };
    if (!item.kind) only([&](NodeId n) { return spec_.nodes[n.index()].kind == NodeKind::kGpu; });
    only([&](NodeId n) { return !spec_.nodes[n.index()].host; });
    return nodes;
  };
  const std::string id(item.id);
  if (item.host) return pick(in_host(item.host, id));
  if (scope.host)
    if (std::vector<NodeId> nodes = in_host(scope.host, id); !nodes.empty()) return pick(std::move(nodes));
  for (std::string prefix = scope.prefix; !prefix.empty();) {
    if (std::vector<NodeId> nodes = in_host(std::nullopt, prefix + id); !nodes.empty())
      return pick(std::move(nodes));
    const size_t dot = prefix.size() < 2 ? std::string::npos : prefix.rfind('.', prefix.size() - 2);
    prefix.resize(dot == std::string::npos ? 0 : dot + 1);
  }
  const auto found = first_of_id_.find(id);
  std::vector<NodeId> inside, anywhere;
  const int32_t last = scope.last.value_or(static_cast<int32_t>(next_of_id_.size()));
  for (int32_t n = found == first_of_id_.end() ? -1 : found->second; n >= 0; n = next_of_id_[n]) {
    if (item.kind && spec_.nodes[n].kind != *item.kind) continue;
    anywhere.push_back(NodeId(n));
    if (n >= scope.first && n < last) inside.push_back(NodeId(n));
  }
  return pick(inside.empty() ? std::move(anywhere) : std::move(inside));
}

Status NodeIndex::NotFound(const Item& item, const ReferenceScope& scope) const {
  const std::string kind(item.kind ? NodeKindName(*item.kind) : "node");
  const std::string plural = kind == "switch" ? "switches" : kind + "s";
  const std::optional<HostId> host = item.host ? item.host : item.any_host ? std::nullopt : scope.host;
  const std::string where = host ? fmt::format(" in {}", spec_.hosts[host->index()].name) : "";
  std::vector<std::string_view> ids;
  for (NodeId n : InScope(item, scope)) ids.push_back(spec_.nodes[n.index()].id);
  std::vector<std::string_view> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    // Ids that several hosts share are listed once, in order of first appearance.
    std::vector<std::string_view> once;
    for (std::string_view id : ids) {
      const auto at = std::lower_bound(sorted.begin(), sorted.end(), id);
      if (at == sorted.end() || *at != id) continue;
      once.push_back(id);
      sorted.erase(at, std::upper_bound(at, sorted.end(), id));
    }
    ids = std::move(once);
  }
  if (ids.empty())
    return InvalidInput(item.id == "*"
                            ? fmt::format("no {}{}", kind, where)
                            : fmt::format("no {} {}{}; there is no {} at all", kind, item.id, where, kind));
  return InvalidInput(fmt::format("no {} {}{}; {} are {}{}", kind, item.id, where, plural, IdRuns(ids),
                                  Number(item.id) ? "" : DidYouMean(item.id, ids)));
}

std::string NodeIndex::Reference(NodeId n) const {
  const Node& node = spec_.nodes[n.index()];
  const std::string_view kind = NodeKindName(node.kind);
  const auto with_id = first_of_id_.find(node.id);
  XCCL_CHECK(with_id != first_of_id_.end());
  const int32_t first = with_id->second;
  int of_kind = 0;
  for (int32_t same = first; same >= 0 && of_kind < 2; same = next_of_id_[same])
    of_kind += spec_.nodes[same].kind == node.kind;
  const bool plain = SplitKind(node.id).first == std::nullopt;
  if (next_of_id_[first] < 0 && plain) return node.id;
  if (of_kind < 2 || !node.host) return fmt::format("{}:{}", kind, node.id);
  return fmt::format("{}/{}:{}", spec_.hosts[node.host->index()].name, kind, node.id);
}

}  // namespace xccl
