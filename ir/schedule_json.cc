#include "ir/schedule_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace xccl {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
// A schedule whose transfers over trees have more links than this has its paths in a table, since lists for
// each transfer would take over ten megabytes.
constexpr int64_t kMostTreeLinks = int64_t{1} << 20;

std::string RankList(std::span<const Rank> ranks) {
  std::string text;
  for (Rank r : ranks) text += fmt::format("{}{}", text.empty() ? "" : ",", r.value);
  return "[" + text + "]";
}

bool AreLinks(std::span<const LinkId> path, const Topology& topology) {
  return std::ranges::all_of(path, [&](LinkId l) { return l.value >= 0 && l.value < topology.num_links(); });
}

bool HasPathTable(const Schedule& s, const Topology& topology) {
  std::vector<int64_t> links;  // by path; 0: a chain
  for (int32_t p = 0; p < s.paths.size(); ++p) {
    const std::span<const LinkId> path = s.paths[PathId(p)];
    links.push_back(AreLinks(path, topology) && !IsChain(topology, path) ? std::ssize(path) : 0);
  }
  int64_t of_trees = 0;
  for (const PathId p : s.path) of_trees += links[p.index()];
  return of_trees > kMostTreeLinks;
}

// Returns for each path that is a tree its ends on one side, and nothing for chains. A path with links that
// do not exist gets no ends; VerifySchedule reports it.
std::vector<std::vector<Rank>> EndsOfTrees(const Schedule& s, const Topology& topology, bool sources) {
  std::vector<std::vector<Rank>> ends(static_cast<size_t>(s.paths.size()));
  std::vector<Rank> from, to;
  for (int32_t p = 0; p < s.paths.size(); ++p) {
    const std::span<const LinkId> path = s.paths[PathId(p)];
    if (!AreLinks(path, topology) || IsChain(topology, path)) continue;
    PathEnds(topology, path, from, to);
    ends[static_cast<size_t>(p)] = sources ? from : to;
  }
  return ends;
}

// Writes one column of ranks: a number if the path has one end on that side, else the list of its ends.
void WriteEnds(const Schedule& s, const Topology& topology, bool sources, bool has_table,
               JsonWriter& writer) {
  const std::vector<Rank>& own = sources ? s.src : s.dst;
  if (has_table) return writer.Value(own);
  const std::vector<std::vector<Rank>> of_path = EndsOfTrees(s, topology, sources);
  writer.BeginArray();
  for (int64_t t = 0; t < s.size(); ++t) {
    const std::vector<Rank>& ends = of_path[s.path[t].index()];
    if (ends.size() > 1)
      writer.Value(ends);
    else
      writer.Value(own[t]);
  }
  writer.EndArray();
}

StatusOr<std::vector<PathId>> ReadPaths(const JsonValue& column, PathTable& paths) {
  XCCL_ASSIGN_OR_RETURN(const IntegerLists lists, column.Lists(0, kMost));
  std::vector<PathId> ids;
  ids.reserve(static_cast<size_t>(lists.size()));
  std::vector<LinkId> links;
  for (int64_t t = 0; t < lists.size(); ++t) {
    if (lists.IsBare(t))
      return column.Error(fmt::format("entry {} is a number; expected a list of links", t));
    links.clear();
    for (int64_t link : lists[t]) links.push_back(LinkId(link));
    ids.push_back(paths.Intern(links));
  }
  return ids;
}

StatusOr<std::vector<Rank>> ReadRanks(const JsonValue& column) {
  XCCL_ASSIGN_OR_RETURN(const IntegerLists lists, column.Lists(0, kMost));
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<size_t>(lists.size()));
  for (int64_t t = 0; t < lists.size(); ++t) {
    if (lists[t].empty()) return column.Error(fmt::format("entry {} has no ranks", t));
    ranks.push_back(Rank(lists[t][0]));
  }
  return ranks;
}

// Checks a column of ranks against the ends of the paths on that side. For a path with several ends, the
// entry must list all of them or, in a file with a table of paths, must be the first of them.
Status CheckLists(const JsonValue& column, const Schedule& s, const Topology& topology, bool sources,
                  bool has_table) {
  XCCL_ASSIGN_OR_RETURN(const IntegerLists lists, column.Lists(0, kMost));
  const std::vector<std::vector<Rank>> ends_of = EndsOfTrees(s, topology, sources);
  std::vector<Rank> listed;
  for (int64_t t = 0; t < lists.size(); ++t) {
    const std::vector<Rank>& ends = ends_of[s.path[t].index()];
    if (ends.size() < 2) {
      if (lists.IsBare(t) || !AreLinks(s.paths[s.path[t]], topology)) continue;
      return column.Error(fmt::format("entry {} is a list; expected a rank, since its path {} at one", t,
                                      sources ? "starts" : "ends"));
    }
    if (has_table) {
      if (lists.IsBare(t) && Rank(lists[t][0]) == ends[0]) continue;
      return column.Error(fmt::format("entry {}: expected {}, the first rank at which its path {}", t,
                                      ends[0].value, sources ? "starts" : "ends"));
    }
    listed.clear();
    for (int64_t rank : lists[t]) listed.push_back(Rank(rank));
    if (listed != ends)
      return column.Error(fmt::format("entry {} is {}; its path {} at {}", t,
                                      lists.IsBare(t) ? std::to_string(lists[t][0]) : RankList(listed),
                                      sources ? "starts" : "ends", RankList(ends)));
  }
  return OkStatus();
}

void WriteSymmetry(const std::vector<Automorphism>& generators, JsonWriter& writer) {
  writer.Key("symmetry");
  writer.BeginObject();
  writer.Key("order");
  writer.Integers(generators, [](const Automorphism& generator) { return generator.order; });
  writer.Key("image");
  writer.BeginArray();
  for (const Automorphism& generator : generators) writer.Value(generator.image);
  writer.EndArray();
  writer.EndObject();
}

StatusOr<std::vector<Automorphism>> ReadSymmetry(const JsonValue& value) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"order", "image"}));
  XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> orders, value.GetIntegers<int32_t>("order", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(const JsonValue image, value.Get("image"));
  XCCL_ASSIGN_OR_RETURN(const IntegerLists images, image.Lists(0, kMost));
  if (orders.empty()) return value.Error("no generators; expected one or more");
  if (images.size() != static_cast<int64_t>(orders.size()))
    return image.Error(
        fmt::format("{} entries; expected {}, as symmetry.order has", images.size(), orders.size()));
  std::vector<Automorphism> generators;
  for (int64_t g = 0; g < images.size(); ++g) {
    Automorphism& generator = generators.emplace_back(Automorphism{orders[static_cast<size_t>(g)], {}});
    for (int64_t node : images[g]) generator.image.push_back(NodeId(node));
  }
  return generators;
}

void WriteDamage(const Schedule& s, JsonWriter& writer) {
  const auto lists = [&](std::string_view key, const auto& items, const auto& list_of) {
    writer.Key(key);
    writer.BeginArray();
    for (const auto& item : items) writer.Value(list_of(item));
    writer.EndArray();
  };
  using Numbers = std::vector<int64_t>;
  writer.Key("damage");
  writer.BeginObject();
  lists("lost", s.missing.lost, [](const Link& l) {
    return Numbers{l.from.value, l.to.value, l.bandwidth_bytes_per_s, l.latency_ps, l.overhead_ps};
  });
  lists("slow", s.missing.slow, [](const auto& slow) { return Numbers{slow.first.value, slow.second}; });
  lists("links", s.detours, [](const Detour& d) { return d.links; });
  lists("by", s.detours, [](const Detour& d) { return d.by; });
  if (!s.missing.hosts.empty()) writer.Member("hosts", s.missing.hosts);
  if (!s.ways.empty()) lists("ways", s.ways, [](const std::vector<LinkId>& way) { return way; });
  writer.EndObject();
}

// Reads lists of `length` numbers each.
StatusOr<std::vector<std::vector<int64_t>>> ReadRows(const JsonValue& damage, std::string_view key,
                                                     int64_t length) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, damage.Get(key));
  XCCL_ASSIGN_OR_RETURN(const IntegerLists lists, value.Lists(0, std::numeric_limits<int64_t>::max()));
  std::vector<std::vector<int64_t>> rows;
  for (int64_t i = 0; i < lists.size(); ++i) {
    if (lists.IsBare(i) || std::ssize(lists[i]) != length)
      return value.Error(fmt::format("entry {}: expected a list of {} numbers", i, length));
    rows.emplace_back(lists[i].begin(), lists[i].end());
    for (size_t n = 0; n < std::min<size_t>(rows.back().size(), 2); ++n)
      if ((key == "lost" || n == 0) && rows.back()[n] > kMost)
        return value.Error(fmt::format("entry {} has {}; expected 0..{}", i, rows.back()[n], kMost));
  }
  return rows;
}

Status ReadDamage(const JsonValue& damage, Schedule& s) {
  XCCL_RETURN_IF_ERROR(damage.CheckKeys({"lost", "slow", "links", "by", "hosts", "ways"}));
  XCCL_ASSIGN_OR_RETURN(const auto lost, ReadRows(damage, "lost", 5));
  for (const std::vector<int64_t>& row : lost)
    s.missing.lost.push_back({NodeId(row[0]), NodeId(row[1]), row[2], row[3], row[4]});
  XCCL_ASSIGN_OR_RETURN(const auto slow, ReadRows(damage, "slow", 2));
  for (const std::vector<int64_t>& row : slow) s.missing.slow.emplace_back(LinkId(row[0]), row[1]);
  PathTable rows;
  XCCL_ASSIGN_OR_RETURN(const JsonValue links_value, damage.Get("links"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<PathId> links, ReadPaths(links_value, rows));
  XCCL_ASSIGN_OR_RETURN(const JsonValue by_value, damage.Get("by"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<PathId> by, ReadPaths(by_value, rows));
  if (links.size() != by.size())
    return by_value.Error(
        fmt::format("{} entries; expected {}, as damage.links has", by.size(), links.size()));
  for (size_t d = 0; d < links.size(); ++d)
    s.detours.push_back(
        {{rows[links[d]].begin(), rows[links[d]].end()}, {rows[by[d]].begin(), rows[by[d]].end()}});
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> hosts, damage.Find("hosts"));
  if (hosts) {
    XCCL_ASSIGN_OR_RETURN(s.missing.hosts, damage.GetIntegers<HostId>("hosts", 0, kMost));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> ways_value, damage.Find("ways"));
  if (ways_value) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<PathId> ways, ReadPaths(*ways_value, rows));
    for (const PathId way : ways) s.ways.emplace_back(rows[way].begin(), rows[way].end());
  }
  return OkStatus();
}

}  // namespace

void WriteScheduleJson(const Schedule& s, const Topology& topology, JsonWriter& writer) {
  writer.BeginObject(JsonWriter::Layout::kLines);
  writer.Member("chunks", s.num_chunks);
  writer.Member("first", s.first);
  writer.Member("count", s.count);
  const bool has_table = HasPathTable(s, topology);
  writer.Key("src");
  WriteEnds(s, topology, true, has_table, writer);
  writer.Key("dst");
  WriteEnds(s, topology, false, has_table, writer);
  writer.Key(has_table ? "paths" : "path");
  writer.BeginArray();
  if (has_table)
    for (int32_t p = 0; p < s.paths.size(); ++p) writer.Value(s.paths[PathId(p)]);
  else
    for (PathId p : s.path) writer.Value(s.paths[p]);
  writer.EndArray();
  if (has_table) writer.Member("path", s.path);
  std::string ops;
  ops.reserve(s.op.size());
  for (TransferOp op : s.op) ops += op == TransferOp::kCopy ? 'c' : 'r';
  writer.Member("op", ops);
  writer.Member("step", s.step);
  if (!s.symmetry.empty()) WriteSymmetry(s.symmetry, writer);
  if (!s.missing.empty() || !s.detours.empty() || !s.ways.empty()) WriteDamage(s, writer);
  writer.EndObject();
}

StatusOr<Schedule> ReadScheduleJson(const JsonValue& value, const Topology& topology) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys(
      {"chunks", "first", "count", "src", "dst", "paths", "path", "op", "step", "symmetry", "damage"}));
  Schedule s;
  XCCL_ASSIGN_OR_RETURN(s.num_chunks, value.GetInteger("chunks", 0, kMostOfAlltoall * kMostOfAlltoall));
  XCCL_ASSIGN_OR_RETURN(s.first, value.GetIntegers<ChunkId>("first", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(s.count, value.GetIntegers<int32_t>("count", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(const JsonValue src, value.Get("src"));
  XCCL_ASSIGN_OR_RETURN(s.src, ReadRanks(src));
  XCCL_ASSIGN_OR_RETURN(const JsonValue dst, value.Get("dst"));
  XCCL_ASSIGN_OR_RETURN(s.dst, ReadRanks(dst));
  XCCL_ASSIGN_OR_RETURN(const JsonValue path, value.Get("path"));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> table, value.Find("paths"));
  if (table) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<PathId> ids, ReadPaths(*table, s.paths));
    XCCL_ASSIGN_OR_RETURN(s.path, value.GetIntegers<PathId>("path", 0, std::ssize(ids) - 1));
    for (PathId& p : s.path) p = ids[p.index()];
  } else {
    XCCL_ASSIGN_OR_RETURN(s.path, ReadPaths(path, s.paths));
  }
  XCCL_ASSIGN_OR_RETURN(const JsonValue op, value.Get("op"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view ops, op.String());
  for (size_t t = 0; t < ops.size(); ++t) {
    if (ops[t] != 'c' && ops[t] != 'r')
      return op.Error(fmt::format("character {} is '{}'; expected c (copy) or r (reduce)", t, ops[t]));
    s.op.push_back(ops[t] == 'c' ? TransferOp::kCopy : TransferOp::kReduce);
  }
  XCCL_ASSIGN_OR_RETURN(s.step, value.GetIntegers<int32_t>("step", 0, kMost));
  const std::pair<std::string_view, size_t> lengths[] = {{"count", s.count.size()}, {"src", s.src.size()},
                                                         {"dst", s.dst.size()},     {"path", s.path.size()},
                                                         {"op", s.op.size()},       {"step", s.step.size()}};
  for (const auto& [key, length] : lengths) {
    if (length == s.first.size()) continue;
    XCCL_ASSIGN_OR_RETURN(const JsonValue column, value.Get("first"));
    return column.Error(
        fmt::format("{} entries; expected {}, as schedule.{} has", s.first.size(), length, key));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> symmetry, value.Find("symmetry"));
  if (symmetry) {
    XCCL_ASSIGN_OR_RETURN(s.symmetry, ReadSymmetry(*symmetry));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> damage, value.Find("damage"));
  if (damage) XCCL_RETURN_IF_ERROR(ReadDamage(*damage, s));
  XCCL_RETURN_IF_ERROR(CheckLists(src, s, topology, true, table.has_value()));
  XCCL_RETURN_IF_ERROR(CheckLists(dst, s, topology, false, table.has_value()));
  return s;
}

}  // namespace xccl
