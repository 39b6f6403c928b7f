// The file holds the machine as its own XML, so that nothing else is needed to prove, time or run the plan.
// Trees are lists of runs [count, parent, count, parent, ...]: a tree that enters a domain by one rank has
// few. Hops are columns. Reading checks what a later index relies on; dispatch/verify.h proves the rest.
#include <fmt/core.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <utility>

#include "base/file_kinds.h"
#include "base/files.h"
#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/strings.h"
#include "dispatch/domains.h"
#include "dispatch/plan.h"
#include "topologies/xml/native_xml.h"

namespace xccl::dispatch {
namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kLongestRoute = 32;
constexpr int32_t kMostLanes = 64, kMostStages = 1 << 12, kMostSlots = 1 << 30;
// A plan of more would need more memory than a machine has: the index of hops is a matrix.

void WriteTrees(const ExpertPlan& plan, JsonWriter& writer) {
  writer.Key("trees");
  writer.BeginArray(JsonWriter::Layout::kLines);
  for (int32_t lane = 0; lane < plan.lanes; ++lane)
    for (int32_t source = 0; source < plan.sizes.ranks; ++source) {
      const std::span<const int32_t> tree = plan.TreeOf(lane, source);
      writer.BeginArray();
      for (size_t i = 0; i < tree.size();) {
        size_t end = i;
        while (end < tree.size() && tree[end] == tree[i]) ++end;
        writer.Integer(static_cast<int64_t>(end - i));
        writer.Integer(tree[i]);
        i = end;
      }
      writer.EndArray();
    }
  writer.EndArray();
}

void WriteHops(const ExpertPlan& plan, JsonWriter& writer) {
  writer.Key("hops");
  writer.BeginObject(JsonWriter::Layout::kLines);
  const auto column = [&](std::string_view name, auto value) {
    writer.Key(name);
    writer.Integers(plan.hops, value);
  };
  column("lane", [](const Hop& hop) { return hop.lane; });
  column("stage", [](const Hop& hop) { return hop.stage; });
  column("from", [](const Hop& hop) { return hop.from.value; });
  column("to", [](const Hop& hop) { return hop.to.value; });
  column("slots", [](const Hop& hop) { return hop.slots; });
  for (const auto& [name, links] : {std::pair{"links", &Hop::links}, {"back", &Hop::back}}) {
    writer.Key(name);
    writer.BeginArray();
    for (const Hop& hop : plan.hops) writer.Value(hop.*links);
    writer.EndArray();
  }
  writer.EndObject();
}

Status ReadTrees(const JsonValue& root, ExpertPlan& plan) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, root.Get("trees"));
  const int32_t ranks = plan.sizes.ranks;
  XCCL_ASSIGN_OR_RETURN(const IntegerLists trees, value.Lists(0, ranks));
  if (trees.size() != int64_t{plan.lanes} * ranks)
    return value.Error(fmt::format("{}; expected {}, one for each lane and rank",
                                   Counted(trees.size(), "tree"), int64_t{plan.lanes} * ranks));
  plan.parents.reserve(static_cast<size_t>(trees.size()) * ranks);
  for (int64_t t = 0; t < trees.size(); ++t) {
    const std::span<const int64_t> runs = trees[t];
    int64_t left = ranks;
    for (size_t i = 0; i + 1 < runs.size() && runs[i] <= left; i += 2) {
      if (runs[i + 1] >= ranks) break;
      plan.parents.insert(plan.parents.end(), static_cast<size_t>(runs[i]),
                          static_cast<int32_t>(runs[i + 1]));
      left -= runs[i];
    }
    if (left != 0 || runs.size() % 2 != 0)
      return value.Error(fmt::format("tree {}: expected runs of a count and a parent below {} for {} ranks",
                                     t, ranks, ranks));
  }
  return OkStatus();
}

Status ReadHops(const JsonValue& root, ExpertPlan& plan) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue hops, root.Get("hops"));
  XCCL_RETURN_IF_ERROR(hops.CheckKeys({"lane", "stage", "from", "to", "slots", "links", "back"}));
  const int64_t last_rank = plan.sizes.ranks - 1, last_link = plan.topology.num_links() - 1;
  XCCL_ASSIGN_OR_RETURN(const auto lane, hops.GetIntegers<int32_t>("lane", 0, plan.lanes - 1));
  XCCL_ASSIGN_OR_RETURN(const auto stage, hops.GetIntegers<int32_t>("stage", 0, kMostStages - 1));
  XCCL_ASSIGN_OR_RETURN(const auto from, hops.GetIntegers<Rank>("from", 0, last_rank));
  XCCL_ASSIGN_OR_RETURN(const auto to, hops.GetIntegers<Rank>("to", 0, last_rank));
  XCCL_ASSIGN_OR_RETURN(const auto slots, hops.GetIntegers<int32_t>("slots", 0, kMostSlots));
  IntegerLists both[2];
  for (int i = 0; i < 2; ++i) {
    XCCL_ASSIGN_OR_RETURN(const JsonValue value, hops.Get(i == 0 ? "links" : "back"));
    XCCL_ASSIGN_OR_RETURN(both[i], value.Lists(0, last_link));
  }
  const size_t count = lane.size();
  if (stage.size() != count || from.size() != count || to.size() != count || slots.size() != count ||
      both[0].size() != static_cast<int64_t>(count) || both[1].size() != static_cast<int64_t>(count))
    return hops.Error("columns of different lengths; expected one entry a hop in each");
  for (size_t h = 0; h < count; ++h) {
    Hop hop{.lane = lane[h], .stage = stage[h], .from = from[h], .to = to[h], .slots = slots[h]};
    for (const int64_t link : both[0][static_cast<int64_t>(h)]) hop.links.emplace_back(link);
    for (const int64_t link : both[1][static_cast<int64_t>(h)]) hop.back.emplace_back(link);
    plan.hops.push_back(std::move(hop));
  }
  return OkStatus();
}

template <typename T, size_t N>
StatusOr<T> Named(const JsonValue& root, std::string_view key, const T (&values)[N]) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, root.Get(key));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, value.String());
  std::vector<std::string> names;
  for (const T one : values) {
    if (ToString(one) == name) return one;
    names.emplace_back(ToString(one));
  }
  return value.Error(fmt::format("'{}'; expected {}", name, Either(names)));
}

StatusOr<Sizes> ReadSizes(const JsonValue& root, int32_t ranks) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, root.Get("sizes"));
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"experts", "top_k", "max_tokens", "row_bytes"}));
  Sizes sizes{.ranks = ranks};
  XCCL_ASSIGN_OR_RETURN(sizes.experts, value.GetInteger("experts", 0, kMostExperts));
  XCCL_ASSIGN_OR_RETURN(sizes.top_k, value.GetInteger("top_k", 0, kMostTopK));
  XCCL_ASSIGN_OR_RETURN(sizes.max_tokens, value.GetInteger("max_tokens", 0, kMostTokens));
  XCCL_ASSIGN_OR_RETURN(sizes.row_bytes, value.GetInteger("row_bytes", 0, kMostRowBytes));
  if (const Status fits = CheckSizes(sizes); !fits.ok()) return value.Error(fits.message());
  return sizes;
}

StatusOr<ExpertPlan> Read(const JsonValue& root, const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue format, root.Get("format"));
  XCCL_ASSIGN_OR_RETURN(const int64_t version, format.Integer(0, int64_t{1} << 32));
  if (version != kFormat)
    return format.Error(fmt::format("version {}; this program reads version {}", version, kFormat));
  XCCL_RETURN_IF_ERROR(
      root.CheckKeys({"format", "expert_plan", "topology", "sizes", "aim", "route", "entry", "sums", "lanes",
                      "rows_per_message", "domains", "stage_of_depth", "trees", "hops"}));
  XCCL_ASSIGN_OR_RETURN(const std::string_view xml, root.GetString("topology"));
  XCCL_ASSIGN_OR_RETURN(Topology topology, ReadNativeXml(xml, path + ": topology"));
  if (topology.num_ranks() > kMostRanks)
    return root.Error(
        fmt::format("topology: {} ranks; expected at most {}", topology.num_ranks(), kMostRanks));
  ExpertPlan plan{.topology = std::move(topology)};
  XCCL_ASSIGN_OR_RETURN(plan.call, Named(root, "expert_plan", {Call::kDispatch, Call::kCombine}));
  XCCL_ASSIGN_OR_RETURN(plan.sizes, ReadSizes(root, plan.topology.num_ranks()));
  XCCL_ASSIGN_OR_RETURN(plan.aim, Named(root, "aim", {Aim::kLatency, Aim::kThroughput}));
  XCCL_ASSIGN_OR_RETURN(plan.entry, Named(root, "entry", {Entry::kFixed, Entry::kNeeded, Entry::kNested}));
  XCCL_ASSIGN_OR_RETURN(plan.sums, Named(root, "sums", {Sums::kHome, Sums::kOnWay}));
  XCCL_ASSIGN_OR_RETURN(const std::string_view route, root.GetString("route"));
  plan.route = route;
  if (plan.route.empty() || plan.route.size() > kLongestRoute ||
      plan.route.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos)
    return root.Error(fmt::format("route: '{}'; expected up to {} small letters and '-'",
                                  Cleaned(plan.route, kLongestRoute), kLongestRoute));
  XCCL_ASSIGN_OR_RETURN(plan.lanes, root.GetInteger("lanes", 1, kMostLanes));
  XCCL_ASSIGN_OR_RETURN(plan.rows_per_message, root.GetInteger("rows_per_message", 0, kMostTokens));
  const int32_t ranks = plan.sizes.ranks;
  XCCL_ASSIGN_OR_RETURN(plan.domains, root.GetIntegers<int32_t>("domains", 0, ranks - 1));
  if (static_cast<int32_t>(plan.domains.size()) != ranks)
    return root.Error(fmt::format("domains: {} entries; expected {}", plan.domains.size(), ranks));
  const std::vector<int32_t> domains = FindDomains(plan.topology).of_rank;
  if (const size_t r = std::ranges::mismatch(domains, plan.domains).in1 - domains.begin(); r < domains.size())
    return root.Error(fmt::format("domains: rank {} in domain {}; expected {}, by the links of the machine",
                                  r, plan.domains[r], domains[r]));
  XCCL_ASSIGN_OR_RETURN(plan.stage_of_depth, root.GetIntegers<int32_t>("stage_of_depth", 0, kMostStages - 1));
  XCCL_RETURN_IF_ERROR(ReadTrees(root, plan));
  XCCL_RETURN_IF_ERROR(ReadHops(root, plan));
  return plan;
}

void WriteTo(std::ostream& out, const ExpertPlan& plan) {
  JsonWriter writer(out);
  writer.BeginObject(JsonWriter::Layout::kLines);
  writer.Member("format", kFormat);
  writer.Member("expert_plan", ToString(plan.call));
  writer.Member("topology", WriteNativeXml(plan.topology));
  writer.Key("sizes");
  writer.BeginObject();
  writer.Member("experts", plan.sizes.experts);
  writer.Member("top_k", plan.sizes.top_k);
  writer.Member("max_tokens", plan.sizes.max_tokens);
  writer.Member("row_bytes", plan.sizes.row_bytes);
  writer.EndObject();
  writer.Member("aim", ToString(plan.aim));
  writer.Member("route", plan.route);
  writer.Member("entry", ToString(plan.entry));
  writer.Member("sums", ToString(plan.sums));
  writer.Member("lanes", plan.lanes);
  writer.Member("rows_per_message", plan.rows_per_message);
  writer.Member("domains", plan.domains);
  writer.Member("stage_of_depth", plan.stage_of_depth);
  WriteTrees(plan, writer);
  WriteHops(plan, writer);
  writer.EndObject();
  writer.Finish();
}

}  // namespace

Status WriteExpertPlan(const ExpertPlan& plan, const std::string& path) {
  return WriteFileAtomically(path, [&](std::ostream& out) {
    WriteTo(out, plan);
    return OkStatus();
  });
}

std::string ExpertPlanText(const ExpertPlan& plan) {
  std::ostringstream out;
  WriteTo(out, plan);
  return std::move(out).str();
}

StatusOr<ExpertPlan> ParseExpertPlanUnverified(const std::string& text, const std::string& place) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, place));
  return Read(document.root(), place);
}

StatusOr<ExpertPlan> ReadExpertPlanUnverified(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFileOfKind(path, FileKind::kExpertPlan));
  return ParseExpertPlanUnverified(text, path);
}

}  // namespace xccl::dispatch
