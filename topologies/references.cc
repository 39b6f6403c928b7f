// An exact id is looked up in the host that is named, else in the host where the reference stands.
// Otherwise it is sought among the nodes without a host of the enclosing copies, from the inside out, then
// in the enclosing copy, then in the whole document. Among several nodes with the id, the GPU wins where no
// kind is written, then the one without a host.
#include "topologies/references.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <unordered_set>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {

namespace {

constexpr size_t kMostReferenced = size_t{1} << 21;  // by one reference, with repetitions

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

// "nic7" -> "nic" and 7; absent without a number at the end, or with one that starts with 0.
std::pair<std::string_view, std::optional<int64_t>> SplitNumber(std::string_view id) {
  const size_t digits = id.find_last_not_of("0123456789") + 1;
  const std::string_view number = id.substr(digits);
  if (number.size() > 1 && number.starts_with('0')) return {id, std::nullopt};
  return {id.substr(0, digits), Number(number)};
}

// "0..7", "nic0..nic7, ib": runs of numbers are joined; at most `most` entries.
std::string IdRuns(const std::vector<std::string_view>& ids, size_t most = 8) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < ids.size();) {
    if (runs.size() == most) {
      runs.push_back("...");
      break;
    }
    size_t last = i;
    const auto start = SplitNumber(ids[i]);
    const auto follows = [&](size_t next) {
      const auto [other, number] = SplitNumber(ids[next]);
      return other == start.first && number && *number - *start.second == static_cast<int64_t>(next - i);
    };
    while (start.second && last + 1 < ids.size() && follows(last + 1)) ++last;
    runs.push_back(last == i ? Shortened(ids[i]) : fmt::format("{}..{}", ids[i], ids[last]));
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
  std::optional<NodeId> duplicate;
  for (; nodes_taken_ < spec_.nodes.size(); ++nodes_taken_) {
    const Node& node = spec_.nodes[nodes_taken_];
    const NodeId id(static_cast<int64_t>(nodes_taken_));
    std::vector<NodeId>& in_host = in_host_[Key(node.host, node.id)];
    for (NodeId other : in_host)
      if (spec_.nodes[other.index()].kind == node.kind && !duplicate) duplicate = id;
    in_host.push_back(id);
    of_id_[node.id].push_back(id);
    of_kind_[static_cast<size_t>(node.kind)].push_back(id);
    if (node.host) of_host_[node.host->index()][static_cast<size_t>(node.kind)].push_back(id);
    if (node.kind == NodeKind::kGpu && !node.host) ++gpus_without_host_;
  }
  return duplicate;
}

int64_t NodeIndex::GpusOf(std::optional<HostId> host) const {
  if (!host) return gpus_without_host_;
  return static_cast<int64_t>(of_host_[host->index()][static_cast<size_t>(NodeKind::kGpu)].size());
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
      return InvalidInput(fmt::format("no host {}; no host is named here", Shortened(name)));
    std::vector<std::string_view> names;
    for (const Host& known : index.spec_.hosts) names.push_back(known.name);
    return InvalidInput(
        fmt::format("no host {}; hosts are {}{}", Shortened(name), IdRuns(names), DidYouMean(name, names)));
  }

  // Resolves each number of "gpu:0..3" by itself.
  Status ResolveRange(size_t dots, std::vector<NodeId>& found) const {
    const auto first = Number(id.substr(0, dots)), last = Number(id.substr(dots + 2));
    if (!first || !last || *first < 0 || *last < *first)
      return InvalidInput(fmt::format("'{}': expected a range such as gpu:0..3", Shortened(id)));
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
      return InvalidInput(fmt::format("'{}' is {} nodes, such as {} and {}; expected one", Shortened(id),
                                      nodes.size(), index.Reference(nodes[0]), index.Reference(nodes[1])));
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

  // The part of ascending nodes that lies in the scope's copy.
  std::span<const NodeId> InCopy(const std::vector<NodeId>& nodes) const {
    const auto from = std::ranges::lower_bound(nodes, NodeId(scope.first));
    const auto to = scope.last ? std::lower_bound(from, nodes.end(), NodeId(*scope.last)) : nodes.end();
    return {from, to};
  }

  // The nodes of the item's kind in its host, or in the scope.
  std::vector<NodeId> InScope() const {
    const std::optional<HostId> searched = SearchedHost();
    std::vector<NodeId> nodes;
    for (NodeKind each : kNodeKinds) {
      if (kind && each != *kind) continue;
      const std::span<const NodeId> more =
          searched ? std::span<const NodeId>(index.of_host_[searched->index()][static_cast<size_t>(each)])
                   : InCopy(index.of_kind_[static_cast<size_t>(each)]);
      nodes.insert(nodes.end(), more.begin(), more.end());
    }
    if (any_host) std::erase_if(nodes, [&](NodeId n) { return !index.spec_.nodes[n.index()].host; });
    if (!kind) std::ranges::sort(nodes);
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

  std::vector<NodeId> OfKind(std::span<const NodeId> nodes) const {
    std::vector<NodeId> kept;
    for (NodeId n : nodes)
      if (!kind || index.spec_.nodes[n.index()].kind == *kind) kept.push_back(n);
    return kept;
  }

  std::vector<NodeId> Exact() const {
    const auto in_host = [&](std::optional<HostId> of, const std::string& named) {
      const auto found = index.in_host_.find(Key(of, named));
      return found == index.in_host_.end() ? std::vector<NodeId>() : OfKind(found->second);
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
    const auto found = index.of_id_.find(own);
    if (found == index.of_id_.end()) return {};
    std::vector<NodeId> inside = OfKind(InCopy(found->second));
    return pick(inside.empty() ? OfKind(found->second) : std::move(inside));
  }

  Status NotFound() const {
    const std::string name(kind ? NodeKindName(*kind) : "node");
    const std::string plural = name == "switch" ? "switches" : name + "s";
    const std::optional<HostId> searched = SearchedHost();
    const std::string where =
        searched ? fmt::format(" in {}", index.spec_.hosts[searched->index()].name) : "";
    // Ids that several hosts share are listed once, in order of first appearance. Each kind has its entries,
    // so that many switches do not hide the NICs.
    std::vector<std::string_view> ids;
    std::array<std::vector<std::string_view>, std::size(kNodeKinds)> of_kind;
    std::unordered_set<std::string_view> listed;
    for (NodeId n : InScope())
      if (const Node& node = index.spec_.nodes[n.index()]; listed.insert(node.id).second) {
        ids.push_back(node.id);
        of_kind[static_cast<size_t>(node.kind)].push_back(node.id);
      }
    std::vector<std::string> runs;
    const bool one_kind =
        std::ranges::any_of(of_kind, [&](const auto& all) { return all.size() == ids.size(); });
    for (const std::vector<std::string_view>& some : of_kind)
      if (!some.empty()) runs.push_back(IdRuns(some, one_kind ? 8 : 4));
    if (ids.empty())
      return InvalidInput(
          id == "*" ? fmt::format("no {}{}", name, where)
                    : fmt::format("no {} {}{}; there is no {} at all", name, Shortened(id), where, name));
    std::string hint = Number(id) || kind ? "" : WithKind();
    if (hint.empty() && !Number(id)) hint = DidYouMean(id, ids);
    return InvalidInput(
        fmt::format("no {} {}{}; {} are {}{}", name, Shortened(id), where, plural, Join(runs, ", "), hint));
  }

  // Says how a node is written for an id that is a kind and a number: "gpu0", "GPU:0" and "gpu[0]" are gpu:0.
  // Empty for another id, and where there is no such node.
  std::string WithKind() const {
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    const std::string_view::iterator first = std::ranges::find_if(id, is_digit);
    const std::string_view::iterator last = std::find_if_not(first, id.end(), is_digit);
    std::string letters;
    for (const char c : id.substr(0, static_cast<size_t>(first - id.begin())))
      if (std::isalpha(static_cast<unsigned char>(c)) != 0)
        letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::string number(first, last);
    for (const NodeId n : InScope()) {
      const Node& node = index.spec_.nodes[n.index()];
      if (NodeKindName(node.kind) != letters || number.empty() || node.id != number) continue;
      return fmt::format("; did you mean '{}:{}'?", letters, number);
    }
    return "";
  }
};

StatusOr<std::vector<NodeId>> NodeIndex::Resolve(std::string_view reference,
                                                 const ReferenceScope& scope) const {
  std::vector<NodeId> found;
  for (const std::string& item : Split(reference, ',')) {
    Item one{*this, scope, Trim(item)};
    XCCL_RETURN_IF_ERROR(one.Resolve(found));
    if (found.size() > kMostReferenced)
      return InvalidInput(
          fmt::format("'{}' names more than {} nodes", Shortened(reference), kMostReferenced));
  }
  return found;
}

std::string NodeIndex::Reference(NodeId n) const {
  const Node& node = spec_.nodes[n.index()];
  const std::string_view kind = NodeKindName(node.kind);
  const auto with_id = of_id_.find(node.id);
  XCCL_CHECK(with_id != of_id_.end());
  const std::vector<NodeId>& same = with_id->second;
  int of_kind = 0;
  for (size_t i = 0; i < same.size() && of_kind < 2; ++i)
    of_kind += spec_.nodes[same[i].index()].kind == node.kind;
  const bool plain = SplitKind(node.id).first == std::nullopt;
  if (same.size() == 1 && plain) return node.id;
  if (of_kind < 2 || !node.host) return fmt::format("{}:{}", kind, node.id);
  return fmt::format("{}/{}:{}", spec_.hosts[node.host->index()].name, kind, node.id);
}

}  // namespace xccl
