// links[dst][src] counts the chunks that a link carries in a step; a switch is a list (sources, destinations,
// chunks a step, name) that limits what all links between them carry. The file has no rates.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/units.h"
#include "topologies/families/networks.h"
#include "topologies/peers/json_formats.h"
#include "topologies/peers/numbers.h"

namespace xccl {
namespace {

constexpr size_t kMostRanks = 4096;
constexpr int64_t kMostCount = 1'000'000;

class ScclReader {
 public:
  ScclReader(const JsonValue& root, std::string_view file) : root_(root), file_(file) {}

  StatusOr<Topology> Read(const LoadOptions& options) {
    XCCL_ASSIGN_OR_RETURN(flag_, ReadLinkFlag(options));
    XCCL_ASSIGN_OR_RETURN(const std::string_view name, root_.GetString("name"));
    XCCL_ASSIGN_OR_RETURN(const JsonValue links, root_.Get("links"));
    XCCL_ASSIGN_OR_RETURN(const IntegerLists rows, links.Lists(0, kMostCount));
    const auto ranks = static_cast<size_t>(rows.size());
    if (ranks == 0 || ranks > kMostRanks)
      return links.Error(fmt::format("{} rows; expected 1 to {}", ranks, kMostRanks));
    XCCL_ASSIGN_OR_RETURN(links_, MatrixOf(links, ranks));
    if (!flag_.bandwidth_bytes_per_s)
      return root_.Error(
          "the file counts chunks a step and has no rates; expected the bandwidth that a count of 1 stands "
          "for; "
          "hint: --link bandwidth=25GB/s");
    spec_.name = Cleaned(name);
    spec_.source = "SCCL topology file; bandwidths and latency as --link gives them";
    for (size_t g = 0; g < ranks; ++g) AddNode(NodeKind::kGpu, std::to_string(g), std::nullopt, spec_);
    XCCL_RETURN_IF_ERROR(ReadSwitches());
    XCCL_RETURN_IF_ERROR(AddLinks(links));
    if (!flag_.latency_ps)
      spec_.warnings.push_back(
          fmt::format("{}: links without a latency; {} assumed; hint: --link latency=1us", file_,
                      FormatDuration(LinkNumbers().latency_ps)));
    StatusOr<Topology> made = Topology::Create(std::move(spec_));
    return made.ok() ? std::move(made) : Annotate(made.status(), file_);
  }

 private:
  LinkNumbers Numbers(int64_t count, int64_t latency_ps) const {
    return {CappedProduct(count, *flag_.bandwidth_bytes_per_s), latency_ps};
  }

  // A port: what a rank sends to, or receives from, a set of ranks in a step.
  struct Port {
    std::set<int64_t> peers;
    int64_t count = 0;
    bool operator==(const Port&) const = default;
  };

  StatusOr<std::set<int64_t>> RanksOf(const JsonValue& value) const {
    XCCL_ASSIGN_OR_RETURN(const auto items, value.Integers(0, std::ssize(links_) - 1));
    return std::set<int64_t>(items.begin(), items.end());
  }

  // Reads switches that limit the ports of ranks, both ways alike: those are ports of a switch. Others have
  // no switch that means the same.
  Status ReadSwitches() {
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> switches, root_.Find("switches"));
    if (!switches) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, switches->Items());
    const auto refused = [&](const JsonValue& item) {
      return item.Error(
          "a limit for links that are not all of one rank's ports of a switch; expected, for each "
          "rank of a group, all links to the others of the group and all links from them");
    };
    std::map<int64_t, Port> out, in;
    for (const JsonValue& item : items) {
      XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> parts, item.Items());
      if (parts.size() != 4) return item.Error("expected sources, destinations, a count and a name");
      XCCL_ASSIGN_OR_RETURN(const std::set<int64_t> from, RanksOf(parts[0]));
      XCCL_ASSIGN_OR_RETURN(const std::set<int64_t> to, RanksOf(parts[1]));
      XCCL_ASSIGN_OR_RETURN(const int64_t count, parts[2].Integer(1, kMostCount));
      const bool sends = from.size() == 1;
      if (!sends && to.size() != 1) return refused(item);
      const int64_t rank = sends ? *from.begin() : *to.begin();
      // With two ranks a limit is both: it is taken as the one that is still missing.
      const bool as_out = sends && (to.size() != 1 || !out.contains(rank));
      if (!(as_out ? out : in).emplace(as_out ? rank : *to.begin(), Port{as_out ? to : from, count}).second)
        return refused(item);
    }
    if (out != in) return switches->Error("limits that differ between sending and receiving");
    std::map<std::set<int64_t>, int> groups;
    for (const auto& [rank, port] : out) {
      std::set<int64_t> group = port.peers;
      group.insert(rank);
      const auto [found, added] = groups.emplace(std::move(group), static_cast<int>(groups.size()));
      group_of_[rank] = {found->second, port.count};
    }
    for (const auto& [group, index] : groups)
      for (const int64_t rank : group)
        if (!group_of_.contains(rank) || group_of_[rank].first != index) return refused(*switches);
    for (size_t g = 0; g < groups.size(); ++g)
      hubs_.push_back(AddNode(NodeKind::kSwitch, fmt::format("switch{}", g), std::nullopt, spec_));
    return OkStatus();
  }

  Status AddLinks(const JsonValue& links) {
    const int64_t latency = flag_.latency_ps.value_or(LinkNumbers().latency_ps);
    const auto group = [&](size_t rank) -> std::optional<int> {
      const auto found = group_of_.find(static_cast<int64_t>(rank));
      return found == group_of_.end() ? std::nullopt : std::optional(found->second.first);
    };
    // A path through a switch has two links, with half of the latency each.
    for (const auto& [rank, at] : group_of_)
      AddCable(NodeId(rank), hubs_[static_cast<size_t>(at.first)], Numbers(at.second, latency / 2), spec_);
    for (size_t to = 0; to < links_.size(); ++to)
      for (size_t from = 0; from < links_.size(); ++from) {
        const auto count = static_cast<int64_t>(links_[to][from]);
        const bool within = to != from && group(to) && group(to) == group(from);
        const std::string name = fmt::format("from {} to {}", from, to);
        if (within && (count == 0 || count < std::min(group_of_[static_cast<int64_t>(to)].second,
                                                      group_of_[static_cast<int64_t>(from)].second)))
          return links.Error(
              fmt::format("a count of {} {}, below those of their ports of a switch", count, name));
        if (count == 0 || within) continue;
        if (to == from) return links.Error(fmt::format("a link from {} to itself; expected another end", to));
        AddLink(NodeId(static_cast<int64_t>(from)), NodeId(static_cast<int64_t>(to)), Numbers(count, latency),
                spec_);
      }
    return OkStatus();
  }

  const JsonValue& root_;
  std::string_view file_;
  LinkFlag flag_;
  std::vector<std::vector<double>> links_;
  std::map<int64_t, std::pair<int, int64_t>> group_of_;  // by rank: its switch, and the count of its port
  std::vector<NodeId> hubs_;
  TopologySpec spec_;
};

}  // namespace

bool IsSccl(std::string_view text) {
  return (HasJsonKey(text, "msccl_type") || HasJsonKey(text, "sccl_type")) && HasJsonKey(text, "links");
}

StatusOr<Topology> ReadSccl(std::string_view text, std::string_view file, const LoadOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, std::string(file)));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> inner, document.root().Find("topology"));
  return ScclReader(inner ? *inner : document.root(), file).Read(options);
}

}  // namespace xccl
