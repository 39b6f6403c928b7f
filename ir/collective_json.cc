#include "ir/collective_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "base/file_kinds.h"

namespace xccl {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

void WriteTable(std::string_view key, const std::vector<TableEntry>& table, JsonWriter& writer) {
  writer.Key(key);
  writer.BeginArray(JsonWriter::Layout::kLines);
  for (const TableEntry& entry : table) {
    writer.BeginObject();
    writer.Member("rank", entry.rank);
    writer.Member("part", entry.part);
    writer.Member("contributions", entry.contributions);
    writer.EndObject();
  }
  writer.EndArray();
}

StatusOr<std::vector<TableEntry>> ReadTable(const JsonValue& value, std::string_view key, int32_t num_ranks) {
  std::vector<TableEntry> table;
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> entries, value.GetItems(key));
  for (const JsonValue& entry : entries) {
    XCCL_RETURN_IF_ERROR(entry.CheckKeys({"rank", "part", "contributions"}));
    XCCL_ASSIGN_OR_RETURN(const int64_t rank, entry.GetInteger("rank", 0, num_ranks - 1));
    XCCL_ASSIGN_OR_RETURN(const int64_t part, entry.GetInteger("part", 0, kMostParts - 1));
    XCCL_ASSIGN_OR_RETURN(std::vector<Rank> contributions,
                          entry.GetIntegers<Rank>("contributions", 0, num_ranks - 1));
    std::sort(contributions.begin(), contributions.end());
    table.push_back(TableEntry{Rank(rank), PartId(part), std::move(contributions)});
  }
  return table;
}

StatusOr<std::vector<std::pair<Rank, Rank>>> ReadPairs(const JsonValue& value, int32_t num_ranks) {
  std::vector<std::pair<Rank, Rank>> pairs;
  XCCL_ASSIGN_OR_RETURN(const IntegerLists lists, value.Lists(0, num_ranks - 1));
  for (int64_t i = 0; i < lists.size(); ++i) {
    if (lists[i].size() != 2)
      return value.Error(fmt::format("entry {} has {} ranks; expected 2", i, lists[i].size()));
    pairs.emplace_back(Rank(lists[i][0]), Rank(lists[i][1]));
  }
  return pairs;
}

Status ReadCustom(const JsonValue& value, int32_t num_ranks, CollectiveSpec& spec) {
  for (std::string_view key : {"root", "counts", "pairs"}) {
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> found, value.Find(key));
    if (found && !found->IsNull())
      return found->Error("not for a user-defined collective; expected pre and post alone");
  }
  XCCL_ASSIGN_OR_RETURN(spec.custom_weights, value.GetIntegers<int64_t>("part_sizes", 0, kMostWeight));
  XCCL_ASSIGN_OR_RETURN(const JsonValue sizes, value.Get("part_sizes"));
  if (spec.custom_weights.empty()) return sizes.Error("no parts; expected at least one");
  XCCL_ASSIGN_OR_RETURN(spec.pre, ReadTable(value, "pre", num_ranks));
  XCCL_ASSIGN_OR_RETURN(spec.post, ReadTable(value, "post", num_ranks));
  return OkStatus();
}

StatusOr<CollectiveSpec> ReadSpec(const JsonValue& value, int32_t num_ranks) {
  CollectiveSpec spec;
  XCCL_ASSIGN_OR_RETURN(const JsonValue name, value.Get("name"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name_text, name.String());
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> ranks, value.Find("ranks"));
  spec.ranks = AllRanks(num_ranks);
  if (ranks) {
    XCCL_ASSIGN_OR_RETURN(spec.ranks, value.GetIntegers<Rank>("ranks", 0, num_ranks - 1));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> pre, value.Find("pre"));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> post, value.Find("post"));
  if (pre || post) {
    spec.kind = CollectiveKind::kCustom;
    spec.custom_name = name_text;
    XCCL_RETURN_IF_ERROR(ReadCustom(value, num_ranks, spec));
    return spec;
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> part_sizes, value.Find("part_sizes"));
  if (part_sizes) return part_sizes->Error("given without pre and post; expected all three or none");
  const StatusOr<CollectiveKind> kind = ParseCollectiveKind(name_text);
  if (!kind.ok()) return name.Error(kind.status().message());
  spec.kind = *kind;
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> root, value.Find("root"));
  if (root && !root->IsNull()) {
    XCCL_ASSIGN_OR_RETURN(const int64_t rank, root->Integer(0, num_ranks - 1));
    spec.root = Rank(rank);
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> counts, value.Find("counts"));
  if (counts) {
    XCCL_ASSIGN_OR_RETURN(spec.counts, value.GetIntegers<int64_t>("counts", 0, INT64_MAX));
    if (spec.counts.empty()) return counts->Error("no entries; expected one or more");
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> pairs, value.Find("pairs"));
  if (pairs) {
    XCCL_ASSIGN_OR_RETURN(spec.pairs, ReadPairs(*pairs, num_ranks));
    if (spec.pairs.empty() && spec.kind != CollectiveKind::kSendrecv)
      return pairs->Error("no entries; expected one or more");
  }
  return spec;
}

// The least number of parts for which files say nothing about chunks if every part is one chunk. An alltoall
// of 8,192 ranks would otherwise take 270 MB to say so.
constexpr int32_t kManyParts = 1 << 20;

// How every part is cut into chunks, as Collective::WithWeights takes it.
struct PartCuts {
  std::vector<int32_t> chunks;
  std::vector<int64_t> weights;
};

// Reads `parts` and `weights`, if they are there. Checks them against `num_parts` before it allocates.
StatusOr<std::optional<PartCuts>> ReadCuts(const JsonValue& value, int64_t num_parts) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> parts, value.Find("parts"));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> lone_weights, value.Find("weights"));
  if (!parts && lone_weights) return lone_weights->Error("given without parts; expected both or neither");
  if (!parts) return std::optional<PartCuts>();
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> sizes, parts->Integers(1, kMost));
  XCCL_ASSIGN_OR_RETURN(const JsonValue weights_value, value.Get("weights"));
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> weights, weights_value.Integers(0, kMostWeight));
  if (std::ssize(sizes) != num_parts)
    return parts->Error(
        fmt::format("{} entries; expected {}, the parts of the collective", sizes.size(), num_parts));
  const int64_t chunks = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (chunks != std::ssize(weights))
    return weights_value.Error(
        fmt::format("{} entries; expected {}, the chunks of parts", weights.size(), chunks));
  int64_t begin = 0;
  for (size_t p = 0; p < sizes.size(); begin += sizes[p++]) {
    if (std::ranges::max(weights.subspan(begin, sizes[p])) == 0)
      return weights_value.Error(fmt::format("part {} has only zeros; expected a weight above 0", p));
    if (sizes[p] > kMostPartChunks)
      return parts->Error(
          fmt::format("part {} has {} chunks; at most {} are supported", p, sizes[p], kMostPartChunks));
  }
  return std::optional(PartCuts{{sizes.begin(), sizes.end()}, {weights.begin(), weights.end()}});
}

}  // namespace

void WriteCutJson(const Collective& collective, JsonWriter& writer) {
  writer.Key("parts");
  writer.BeginArray();
  for (int32_t p = 0; p < collective.num_parts(); ++p) writer.Value(collective.ChunksOf(PartId(p)));
  writer.EndArray();
  writer.Key("weights");
  writer.BeginArray();
  for (int32_t c = 0; c < collective.num_chunks(); ++c) writer.Value(collective.Weight(ChunkId(c)));
  writer.EndArray();
}

StatusOr<Collective> ReadCutJson(const JsonValue& value, const Collective& collective) {
  XCCL_ASSIGN_OR_RETURN(const auto cuts, ReadCuts(value, collective.num_parts()));
  return cuts ? collective.WithWeights(cuts->chunks, cuts->weights) : collective;
}

void WriteCollectiveJson(const Collective& collective, JsonWriter& writer) {
  const CollectiveSpec& spec = collective.spec();
  writer.BeginObject(JsonWriter::Layout::kLines);
  writer.Member("name", collective.name());
  writer.Member("ranks", spec.ranks);
  writer.Key("root");
  spec.root ? writer.Value(*spec.root) : writer.Null();
  if (collective.even_chunks() != 1 || collective.num_parts() < kManyParts) WriteCutJson(collective, writer);
  if (!spec.counts.empty()) writer.Member("counts", spec.counts);
  if (spec.kind == CollectiveKind::kSendrecv) {
    writer.Key("pairs");
    writer.BeginArray();
    for (const auto& pair : spec.pairs) writer.Value(std::array{pair.first, pair.second});
    writer.EndArray();
  }
  if (spec.kind == CollectiveKind::kCustom) {
    writer.Member("part_sizes", spec.custom_weights);
    WriteTable("pre", spec.pre, writer);
    WriteTable("post", spec.post, writer);
  }
  writer.EndObject();
}

StatusOr<Collective> ReadCollectiveJson(const JsonValue& value, int32_t num_ranks) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys(
      {"name", "ranks", "root", "parts", "weights", "counts", "pairs", "part_sizes", "pre", "post"}));
  XCCL_ASSIGN_OR_RETURN(CollectiveSpec spec, ReadSpec(value, num_ranks));
  XCCL_ASSIGN_OR_RETURN(const auto cuts, ReadCuts(value, NumParts(spec)));
  StatusOr<Collective> whole = Collective::Create(std::move(spec));
  if (!whole.ok()) return value.Error(whole.status().message());
  return cuts ? whole->WithWeights(cuts->chunks, cuts->weights) : std::move(whole);
}

StatusOr<Collective> ReadCollectiveFile(const std::string& path, int32_t num_ranks) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFileOfKind(path, FileKind::kCollective));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  for (std::string_view key : {"name", "pre", "post"})
    XCCL_RETURN_IF_ERROR(document.root().Get(key).status());
  return ReadCollectiveJson(document.root(), num_ranks);
}

}  // namespace xccl
