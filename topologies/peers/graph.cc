#include "topologies/peers/graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"
#include "topologies/peers/numbers.h"
#include "topologies/safe_name.h"

namespace xccl {
namespace {

constexpr int64_t kAssumedLatencyPs = LinkNumbers().latency_ps;
constexpr size_t kMostParallel = 1024;
constexpr size_t kMostSource = size_t{1} << 16;  // bytes

struct KindWord {
  std::string_view word;
  NodeKind kind;
};
constexpr KindWord kKindWords[] = {
    {"gpu", NodeKind::kGpu},       {"npu", NodeKind::kGpu},         {"tpu", NodeKind::kGpu},
    {"xpu", NodeKind::kGpu},       {"gcd", NodeKind::kGpu},         {"accelerator", NodeKind::kGpu},
    {"rank", NodeKind::kGpu},      {"compute", NodeKind::kGpu},     {"nic", NodeKind::kNic},
    {"rnic", NodeKind::kNic},      {"hca", NodeKind::kNic},         {"mlx", NodeKind::kNic},
    {"cpu", NodeKind::kCpu},       {"numa", NodeKind::kCpu},        {"socket", NodeKind::kCpu},
    {"switch", NodeKind::kSwitch}, {"nvswitch", NodeKind::kSwitch}, {"sw", NodeKind::kSwitch},
    {"nvsw", NodeKind::kSwitch},   {"ib", NodeKind::kSwitch},       {"leaf", NodeKind::kSwitch},
    {"spine", NodeKind::kSwitch},  {"tor", NodeKind::kSwitch},      {"router", NodeKind::kSwitch},
    {"fabric", NodeKind::kSwitch}, {"core", NodeKind::kSwitch},     {"agg", NodeKind::kSwitch},
    {"asw", NodeKind::kSwitch},    {"psw", NodeKind::kSwitch},      {"dsw", NodeKind::kSwitch},
    {"rail", NodeKind::kSwitch},   {"pci", NodeKind::kSwitch},      {"pcie", NodeKind::kSwitch},
    {"plx", NodeKind::kSwitch},
};

std::optional<std::string_view> Find(const GraphAttributes& attributes,
                                     std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto found = attributes.find(name); found != attributes.end() && !found->second.empty())
      return found->second;
  return std::nullopt;
}

// The kind that the last telling word of a text names.
std::optional<NodeKind> KindOf(std::string_view text) {
  std::optional<NodeKind> kind;
  std::string word;
  const auto end_word = [&] {
    for (const KindWord& known : kKindWords)
      if (known.word == word) kind = known.kind;
    word.clear();
  };
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else
      end_word();
  }
  end_word();
  return kind;
}

bool IsInteger(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A text as the name of a host or the id of a node.
std::string CleanName(std::string_view text) {
  if (CheckNodeName(text).ok()) return std::string(text);
  std::string name;
  for (const char c : Trim(text)) {
    const bool bad = static_cast<unsigned char>(c) <= ' ' || c == '\x7f' ||
                     std::string_view("/,*<>\"'()[]").find(c) != std::string_view::npos ||
                     (c == '.' && name.ends_with('.'));
    name += bad ? '-' : c;
  }
  name = ReplaceBadUtf8(name);
  return name.empty() || !CheckNodeName(name).ok() ? "node" : name;
}

// The members of "(0, 'GPU', 3)", without quotes; empty for a text of another form.
std::vector<std::string> MembersOfTuple(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return {};
  std::vector<std::string> members;
  for (const std::string& member : Split(text.substr(1, text.size() - 2), ',')) {
    std::string_view inner = Trim(member);
    if (inner.size() >= 2 && (inner.front() == '\'' || inner.front() == '"') && inner.back() == inner.front())
      inner = inner.substr(1, inner.size() - 2);
    members.emplace_back(inner);
  }
  return members;
}

bool IsTrue(const GraphAttributes& attributes, std::string_view name) {
  const std::optional<std::string_view> value = Find(attributes, {name});
  return value && (*value == "true" || *value == "True" || *value == "1");
}

class GraphReader {
 public:
  GraphReader(const PeerGraph& graph, std::string_view file) : graph_(graph), file_(file) {}

  StatusOr<Topology> Read(const LoadOptions& options) {
    XCCL_ASSIGN_OR_RETURN(flag_, ReadLinkFlag(options));
    if (const Status fits = CheckSize({std::ssize(graph_.nodes), std::ssize(graph_.edges)}); !fits.ok())
      return Annotate(fits, file_);
    if (graph_.nodes.empty())
      return InvalidInput(fmt::format("{}: a graph without nodes; expected at least one", file_));
    if (IsTrue(graph_.attributes, "folded"))
      return InvalidInput(
          fmt::format("{}: a picture that folds several nodes into one; expected every node; "
                      "hint: xccl-synth topo --format xml writes them all",
                      file_));
    spec_.name = Cleaned(graph_.name);
    spec_.warnings = graph_.warnings;
    const auto source = graph_.attributes.find("source");
    spec_.source = source != graph_.attributes.end()
                       ? Cleaned(source->second, kMostSource)
                       : fmt::format("{} file; numbers as it states them", graph_.format);
    if (const auto arch = Find(graph_.attributes, {"arch"})) spec_.gpu_arch = *arch;
    FindKinds();
    AddNodes();
    for (const GraphEdge& edge : graph_.edges) XCCL_RETURN_IF_ERROR(AddEdge(edge));
    SortLinks();
    Warn();
    StatusOr<Topology> made = Topology::Create(std::move(spec_));
    return made.ok() ? std::move(made) : Annotate(made.status(), file_);
  }

 private:
  void FindKinds() {
    bool gpus = false, known = false;
    size_t unknown = 0;
    for (const GraphNode& node : graph_.nodes) {
      std::optional<NodeKind> kind;
      if (const auto stated = Find(node.attributes, {"kind", "type", "role"})) kind = KindOf(*stated);
      if (!kind) kind = KindOf(node.id);
      if (!kind)
        if (const auto label = Find(node.attributes, {"label"})) kind = KindOf(*label);
      kinds_.push_back(kind);
      gpus |= kind == NodeKind::kGpu;
      known |= kind.has_value();
      unknown += kind ? 0 : 1;
    }
    for (std::optional<NodeKind>& kind : kinds_)
      if (!kind) kind = gpus ? NodeKind::kSwitch : NodeKind::kGpu;
    if (unknown > 0)
      spec_.warnings.push_back(
          fmt::format("{}: {} of no known kind {} read as {}", file_,
                      known ? Counted(static_cast<int64_t>(unknown), "node") : std::string("all nodes"),
                      unknown == 1 && known ? "is" : "are", gpus ? "switches" : "GPUs"));
  }

  struct Name {
    std::string host, id;
  };
  Name NameOf(const GraphNode& node, NodeKind kind) const {
    Name name;
    const std::vector<std::string> tuple = MembersOfTuple(node.id);
    const size_t slash = node.id.find('/');
    if (tuple.size() >= 2) {
      name.host = tuple[0] == "-1" ? "" : IsInteger(tuple[0]) ? "h" + tuple[0] : tuple[0];
      if (kind == NodeKind::kGpu && IsInteger(tuple.back()))
        name.id = tuple.back();
      else
        for (size_t m = 1; m < tuple.size(); ++m) name.id += tuple[m];
    } else if (slash != std::string::npos) {
      name.host = node.id.substr(0, slash);
      name.id = node.id.substr(slash + 1);
    } else {
      name.id = node.id;
    }
    // "gpu:3" and "GPU3" are GPU 3.
    const size_t digits = name.id.find_last_not_of("0123456789") + 1;
    if (kind == NodeKind::kGpu && digits < name.id.size() && digits <= 4 && KindOf(name.id) == NodeKind::kGpu)
      name.id.erase(0, digits);
    if (const auto host = Find(node.attributes, {"host"})) name.host = *host;
    if (const auto id = Find(node.attributes, {"name"})) name.id = *id;
    name.id = CleanName(name.id);
    if (!name.host.empty()) name.host = CleanName(name.host);
    return name;
  }

  // The indices of nodes or links in the order of the attribute where all have one: what XCCL writes.
  std::vector<size_t> OrderOfNodes() const {
    std::vector<std::pair<int64_t, size_t>> order;
    bool given = true;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto text = Find(graph_.nodes[n].attributes, {"node"});
      const StatusOr<int64_t> number = ParseInteger(text.value_or(""), 0, kMaxNodes);
      given &= number.ok();
      order.emplace_back(number.ok() ? *number : 0, n);
    }
    if (given) std::ranges::sort(order);
    std::vector<size_t> nodes;
    for (const auto& [number, n] : order) nodes.push_back(n);
    return nodes;
  }

  void AddNodes() {
    std::map<std::string, HostId> hosts;
    std::map<std::pair<std::string, NodeKind>, UniqueNames> ids;  // by host and kind
    const auto host_named = [&](const std::string& name) {
      const auto [found, added] = hosts.emplace(name, HostId(std::ssize(spec_.hosts)));
      if (added) spec_.hosts.push_back(Host{name});
      return found->second;
    };
    for (const std::string_view name : WordsOf(Find(graph_.attributes, {"hosts"}).value_or("")))
      host_named(CleanName(name));
    nodes_.resize(graph_.nodes.size());
    for (const size_t n : OrderOfNodes()) {
      const GraphNode& node = graph_.nodes[n];
      const NodeKind kind = *kinds_[n];
      const Name name = NameOf(node, kind);
      std::optional<HostId> host;
      if (!name.host.empty()) host = host_named(name.host);
      const bool is_switch = kind == NodeKind::kSwitch;
      nodes_[n] = AddNode(kind, ids[{name.host, kind}].Take(name.id), host, spec_,
                          is_switch && IsTrue(node.attributes, "multicast"),
                          is_switch && IsTrue(node.attributes, "reduce"));
    }
  }

  std::string NameOf(const GraphEdge& edge) const {
    return fmt::format("edge from {} to {}", Shortened(graph_.nodes[edge.from].id),
                       Shortened(graph_.nodes[edge.to].id));
  }
  Status Bad(const GraphEdge& edge, std::string_view message) const {
    return InvalidInput(fmt::format("{}: {}: {}", file_, NameOf(edge), message));
  }

  // Takes "3 x " off a label, which then stands for 3 parallel links.
  static size_t TakeCount(std::string_view& text) {
    const size_t x = text.find(" x ");
    if (x == std::string_view::npos) return 1;
    const StatusOr<int64_t> count = ParseInteger(text.substr(0, x), 1, kMostParallel);
    if (!count.ok()) return 1;
    text.remove_prefix(x + 3);
    return static_cast<size_t>(*count);
  }

  static std::optional<double> NumberOf(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
  }

  struct Rate {
    int64_t bytes_per_s = 0;  // 0: no link
    size_t parallel = 1;
  };
  StatusOr<Rate> RateOfEdge(const GraphEdge& edge) {
    for (const std::string_view name : {"bandwidth", "capacity", "rate", "speed", "bw", "weight", "label"}) {
      std::optional<std::string_view> text = Find(edge.attributes, {name});
      if (!text) continue;
      const bool vague = name == "weight" || name == "label";
      Rate rate;
      rate.parallel = name == "label" ? TakeCount(*text) : 1;
      const std::optional<double> number = NumberOf(Trim(*text));
      if (number && *number == 0) return Rate{};
      if (number && vague && !flag_.bandwidth_bytes_per_s) continue;
      if (!number) {
        const StatusOr<int64_t> parsed = ParsePeerRate(*text);
        if (!parsed.ok() && vague) continue;
        if (!parsed.ok()) return Bad(edge, fmt::format("{}: {}", name, parsed.status().message()));
        rate.bytes_per_s = *parsed;
        return rate;
      }
      const double unit =
          flag_.bandwidth_bytes_per_s ? static_cast<double>(*flag_.bandwidth_bytes_per_s) : 1e9;
      if (!flag_.bandwidth_bytes_per_s && MembersOfTuple(graph_.nodes[edge.from].id).empty())
        without_unit_.insert(std::string(name));
      const StatusOr<int64_t> parsed = RateOf(*number, unit);
      if (!parsed.ok()) return Bad(edge, parsed.status().message());
      rate.bytes_per_s = *parsed;
      return rate;
    }
    if (!flag_.bandwidth_bytes_per_s)
      return Bad(edge, "no bandwidth; expected one here, or a flag; hint: --link bandwidth=50GB/s");
    return Rate{*flag_.bandwidth_bytes_per_s};
  }

  StatusOr<int64_t> Time(const GraphEdge& edge, std::initializer_list<std::string_view> names,
                         int64_t otherwise) {
    const std::optional<std::string_view> text = Find(edge.attributes, names);
    if (!text) return otherwise;
    const std::optional<double> number = NumberOf(Trim(*text));
    if (number && *number != 0) without_time_unit_ = true;
    StatusOr<int64_t> time = number ? TimeOf(*number, 1e3) : ParsePeerTime(*text);
    if (!time.ok()) return Bad(edge, fmt::format("{}: {}", *names.begin(), time.status().message()));
    return time;
  }

  Status AddEdge(const GraphEdge& edge) {
    if (edge.from == edge.to) return Bad(edge, "its ends are one node; expected two");
    XCCL_ASSIGN_OR_RETURN(const Rate rate, RateOfEdge(edge));
    if (rate.bytes_per_s == 0) return OkStatus();
    LinkNumbers numbers{rate.bytes_per_s};
    if (!Find(edge.attributes, {"latency", "delay", "alpha"}) && !flag_.latency_ps) without_latency_ = true;
    XCCL_ASSIGN_OR_RETURN(numbers.latency_ps, Time(edge, {"latency", "delay", "alpha"},
                                                   flag_.latency_ps.value_or(kAssumedLatencyPs)));
    XCCL_ASSIGN_OR_RETURN(numbers.overhead_ps, Time(edge, {"overhead"}, 0));
    // "0 2|1 3": the links there, and those back.
    std::vector<std::string> ids[2];
    if (const auto links = Find(edge.attributes, {"links"})) {
      const std::vector<std::string> ways = Split(*links, '|');
      for (size_t way = 0; way < std::min<size_t>(ways.size(), 2); ++way)
        for (const std::string_view id : WordsOf(ways[way])) ids[way].emplace_back(id);
    }
    const size_t parallel = ids[0].empty() ? rate.parallel : ids[0].size();
    if (std::ssize(spec_.links) + static_cast<int64_t>(2 * parallel) > kMaxLinks)
      return InvalidInput(fmt::format("{}: too many links; expected at most {}", file_, kMaxLinks));
    for (size_t i = 0; i < parallel; ++i) {
      for (size_t way = 0; way < (edge.both ? 2 : 1); ++way) {
        const auto [from, to] = way == 0 ? std::pair(edge.from, edge.to) : std::pair(edge.to, edge.from);
        AddLink(nodes_[from], nodes_[to], numbers, spec_);
        const StatusOr<int64_t> id = ParseInteger(i < ids[way].size() ? ids[way][i] : "", 0, kMaxLinks);
        if (id.ok()) link_ids_.push_back(*id);
      }
    }
    return OkStatus();
  }

  void SortLinks() {
    if (link_ids_.size() != spec_.links.size()) return;
    std::vector<std::pair<int64_t, size_t>> order;
    for (size_t l = 0; l < link_ids_.size(); ++l) order.emplace_back(link_ids_[l], l);
    std::ranges::sort(order);
    std::vector<Link> links;
    for (const auto& [id, l] : order) links.push_back(spec_.links[l]);
    spec_.links = std::move(links);
  }

  void Warn() {
    for (const std::string& name : without_unit_)
      spec_.warnings.push_back(fmt::format(
          "{}: {} is a number without a unit; read as GB/s; hint: --link bandwidth=1Gbit/s says what 1 is",
          file_, name));
    if (without_time_unit_)
      spec_.warnings.push_back(fmt::format("{}: latencies are numbers without a unit; read as ns", file_));
    if (without_latency_)
      spec_.warnings.push_back(
          fmt::format("{}: links without a latency; {} assumed; hint: --link latency=1us", file_,
                      FormatDuration(kAssumedLatencyPs)));
  }

  const PeerGraph& graph_;
  std::string_view file_;
  LinkFlag flag_;
  std::vector<std::optional<NodeKind>> kinds_;
  std::vector<NodeId> nodes_;
  std::vector<int64_t> link_ids_;
  std::set<std::string> without_unit_;
  bool without_time_unit_ = false, without_latency_ = false;
  TopologySpec spec_;
};

}  // namespace

int64_t BytesOf(const GraphAttributes& attributes) {
  size_t bytes = 0;
  for (const auto& [name, value] : attributes) bytes += sizeof(std::string) + name.size() + value.size();
  return static_cast<int64_t>(bytes);
}

StatusOr<Topology> GraphTopology(const PeerGraph& graph, std::string_view file, const LoadOptions& options) {
  return GraphReader(graph, file).Read(options);
}

}  // namespace xccl
