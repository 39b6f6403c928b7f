// An exact id is looked up in the host that is named, else in the host where the reference stands.
// Otherwise it is sought among the nodes without a host of the enclosing copies, from the inside out, then
// in the enclosing copy, then in the whole document. Among several nodes with the id, the GPU wins where no
// kind is written, then the one without a host.
#include "topologies/references.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {

namespace {

std::optional<int64_t> Number(std::string_view text) {
  const StatusOr<int64_t> value = ParseInteger(text, INT64_MIN, INT64_MAX);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

// Splits "gpu:3" into its kind and "3"; text without a kind stays as it is.
std::pair<std::optional<NodeKind>, std::string_view> SplitKind(std::string_view text) {
  for (NodeKind kind : kNodeKinds) {
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

std::string NodeIndex::Key(std::optional<HostId> host, std::string_view id) {
  return fmt::format("{}/{}", host ? std::to_string(host->value) : "", id);
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

// One item of a reference, which is looked up in a scope.
struct NodeIndex::Item {
  const NodeIndex& index;
  const ReferenceScope& scope;
  std::string_view id;  // with a trailing '*' where matches is true
  std::optional<HostId> host = {};
  bool any_host = false;  // "*/gpu:0"
  std::optional<NodeKind> kind = {};
  bool matches = false;

  std::optional<HostId> SearchedHost() const { return host ? host : any_host ? std::nullopt : scope.host; }

  // Moves "HOST/" from the item's text to its host fields.
  Status TakeHost() {
    const size_t slash = id.find('/');
    if (slash == std::string_view::npos) return OkStatus();
    const std::string_view name = id.substr(0, slash);
    id.remove_prefix(slash + 1);
    any_host = name == "*";
    if (any_host) return OkStatus();
    host = index.FindHost(scope.prefix + std::string(name));
    if (!host) host = index.FindHost(name);
    if (host) return OkStatus();
    if (index.spec_.hosts.empty())
      return InvalidInput(fmt::format("no host {}; no host is named here", name));
    std::vector<std::string_view> names;
    for (const Host& known : index.spec_.hosts) names.push_back(known.name);
    return InvalidInput(
        fmt::format("no host {}; hosts are {}{}", name, IdRuns(names), DidYouMean(name, names)));
  }

  // Resolves each number of "gpu:0..3" by itself.
  Status ResolveRange(size_t dots, std::vector<NodeId>& found) const {
    const auto first = Number(id.substr(0, dots)), last = Number(id.substr(dots + 2));
    if (!first || !last || *first < 0 || *last < *first)
      return InvalidInput(fmt::format("'{}': expected a range such as gpu:0..3", id));
    for (int64_t i = *first; i <= *last; ++i) {
      const std::string number = std::to_string(i);
      Item one = *this;
      one.id = number;
      XCCL_RETURN_IF_ERROR(one.ResolvePlain(found));
    }
    return OkStatus();
  }

  Status ResolvePlain(std::vector<NodeId>& found) const {
    const bool many = matches || any_host;
    const std::vector<NodeId> nodes = many ? Matching() : Exact();
    if (nodes.empty()) return NotFound();
    if (nodes.size() > 1 && !many)
      return InvalidInput(fmt::format("'{}' is {} nodes, such as {} and {}; expected one", id, nodes.size(),
                                      index.Reference(nodes[0]), index.Reference(nodes[1])));
    found.insert(found.end(), nodes.begin(), nodes.end());
    return OkStatus();
  }

  Status Resolve(std::vector<NodeId>& found) {
    if (id.empty()) return InvalidInput("an empty reference; expected a node such as 0, gpu:3 or h0/gpu:3");
    XCCL_RETURN_IF_ERROR(TakeHost());
    std::tie(kind, id) = SplitKind(id);
    if (id == "*" && !kind)
      return InvalidInput("'*' names every node; expected gpu:*, switch:*, nic:* or cpu:*");
    matches = id.ends_with('*');
    if (const size_t dots = id.find(".."); dots != std::string_view::npos) return ResolveRange(dots, found);
    return ResolvePlain(found);
  }

  // The nodes of the item's kind in its host, or in the scope.
  std::vector<NodeId> InScope() const {
    const std::optional<HostId> searched = SearchedHost();
    std::vector<NodeId> nodes;
    const auto consider = [&](NodeId n) {
      const Node& node = index.spec_.nodes[n.index()];
      if (any_host && !node.host) return;
      if (!kind || node.kind == *kind) nodes.push_back(n);
    };
    if (searched) {
      for (NodeId n : index.of_host_[searched->index()]) consider(n);
    } else {
      const int32_t last = scope.last.value_or(static_cast<int32_t>(index.next_of_id_.size()));
      for (int32_t n = scope.first; n < last; ++n) consider(NodeId(n));
    }
    return nodes;
  }

  std::vector<NodeId> Matching() const {
    std::vector<NodeId> nodes = InScope();
    std::string_view start = id;
    if (matches) start.remove_suffix(1);
    std::erase_if(nodes, [&](NodeId n) {
      const Node& node = index.spec_.nodes[n.index()];
      if (!matches) return node.id != id;
      if (node.id.starts_with(start)) return false;
      return node.host || !node.id.starts_with(scope.prefix + std::string(start));
    });
    return nodes;
  }

  std::vector<NodeId> Exact() const {
    const auto in_host = [&](std::optional<HostId> of, const std::string& named) {
      std::vector<NodeId> nodes;
      const auto found = index.first_in_host_.find(Key(of, named));
      for (int32_t n = found == index.first_in_host_.end() ? -1 : found->second; n >= 0;
           n = index.next_in_host_[n])
        if (!kind || index.spec_.nodes[n].kind == *kind) nodes.push_back(NodeId(n));
      return nodes;
    };
    // Among several nodes, the GPU wins where no kind is written, then the one without a host.
    const auto pick = [&](std::vector<NodeId> nodes) {
      const auto only = [&](auto wanted) {
        const auto count = std::count_if(nodes.begin(), nodes.end(), wanted);
        if (nodes.size() > 1 && count == 1) nodes = {*std::find_if(nodes.begin(), nodes.end(), wanted)};
      };
      if (!kind) only([&](NodeId n) { return index.spec_.nodes[n.index()].kind == NodeKind::kGpu; });
      only([&](NodeId n) { return !index.spec_.nodes[n.index()].host; });
      return nodes;
    };
    const std::string own(id);
    if (host) return pick(in_host(host, own));
    if (scope.host)
      if (std::vector<NodeId> nodes = in_host(scope.host, own); !nodes.empty()) return pick(std::move(nodes));
    for (std::string prefix = scope.prefix; !prefix.empty();) {
      if (std::vector<NodeId> nodes = in_host(std::nullopt, prefix + own); !nodes.empty())
        return pick(std::move(nodes));
      const size_t dot = prefix.size() < 2 ? std::string::npos : prefix.rfind('.', prefix.size() - 2);
      prefix.resize(dot == std::string::npos ? 0 : dot + 1);
    }
    const auto found = index.first_of_id_.find(own);
    std::vector<NodeId> inside, anywhere;
    const int32_t last = scope.last.value_or(static_cast<int32_t>(index.next_of_id_.size()));
    for (int32_t n = found == index.first_of_id_.end() ? -1 : found->second; n >= 0;
         n = index.next_of_id_[n]) {
      if (kind && index.spec_.nodes[n].kind != *kind) continue;
      anywhere.push_back(NodeId(n));
      if (n >= scope.first && n < last) inside.push_back(NodeId(n));
    }
    return pick(inside.empty() ? std::move(anywhere) : std::move(inside));
  }

  Status NotFound() const {
    const std::string name(kind ? NodeKindName(*kind) : "node");
    const std::string plural = name == "switch" ? "switches" : name + "s";
    const std::optional<HostId> searched = SearchedHost();
    const std::string where =
        searched ? fmt::format(" in {}", index.spec_.hosts[searched->index()].name) : "";
    // Ids that several hosts share are listed once, in order of first appearance.
    std::vector<std::string_view> ids;
    std::unordered_set<std::string_view> listed;
    for (NodeId n : InScope())
      if (const std::string_view known = index.spec_.nodes[n.index()].id; listed.insert(known).second)
        ids.push_back(known);
    if (ids.empty())
      return InvalidInput(id == "*"
                              ? fmt::format("no {}{}", name, where)
                              : fmt::format("no {} {}{}; there is no {} at all", name, id, where, name));
    return InvalidInput(fmt::format("no {} {}{}; {} are {}{}", name, id, where, plural, IdRuns(ids),
                                    Number(id) ? "" : DidYouMean(id, ids)));
  }
};

StatusOr<std::vector<NodeId>> NodeIndex::Resolve(std::string_view reference,
                                                 const ReferenceScope& scope) const {
  std::vector<NodeId> found;
  for (const std::string& item : Split(reference, ',')) {
    Item one{*this, scope, Trim(item)};
    XCCL_RETURN_IF_ERROR(one.Resolve(found));
  }
  return found;
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
