#include "ir/collective_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/files.h"

namespace xccl {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostWeight = int64_t{1} << 40;
constexpr int64_t kMostParts = int64_t{1} << 30;

int64_t ValueOf(Rank r) { return r.value; }
int64_t Same(int64_t value) { return value; }

void WriteTable(const std::vector<TableEntry>& table, JsonWriter& writer) {
  writer.BeginArray(JsonWriter::Layout::kLines);
  for (const TableEntry& entry : table) {
    writer.BeginObject();
    writer.Key("rank");
    writer.Integer(entry.rank.value);
    writer.Key("part");
    writer.Integer(entry.part.value);
    writer.Key("contributions");
    writer.Integers(entry.contributions, ValueOf);
    writer.EndObject();
  }
  writer.EndArray();
}

StatusOr<std::vector<Rank>> ReadRanks(const JsonValue& value, int32_t num_ranks) {
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> items, value.Integers(0, num_ranks - 1));
  std::vector<Rank> ranks;
  for (int64_t item : items) ranks.push_back(Rank(item));
  return ranks;
}

StatusOr<std::vector<TableEntry>> ReadTable(const JsonValue& value, int32_t num_ranks) {
  std::vector<TableEntry> table;
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> entries, value.Items());
  for (const JsonValue& entry : entries) {
    XCCL_RETURN_IF_ERROR(entry.CheckKeys({"rank", "part", "contributions"}));
    XCCL_ASSIGN_OR_RETURN(const JsonValue rank, entry.Get("rank"));
    XCCL_ASSIGN_OR_RETURN(const int64_t rank_value, rank.Integer(0, num_ranks - 1));
    XCCL_ASSIGN_OR_RETURN(const JsonValue part, entry.Get("part"));
    XCCL_ASSIGN_OR_RETURN(const int64_t part_value, part.Integer(0, kMostParts - 1));
    XCCL_ASSIGN_OR_RETURN(const JsonValue contributions, entry.Get("contributions"));
    XCCL_ASSIGN_OR_RETURN(std::vector<Rank> ranks, ReadRanks(contributions, num_ranks));
    std::sort(ranks.begin(), ranks.end());
    table.push_back(TableEntry{Rank(rank_value), PartId(part_value), std::move(ranks)});
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

StatusOr<std::vector<int64_t>> ReadWeights(const JsonValue& value) {
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> items, value.Integers(0, kMostWeight));
  return std::vector<int64_t>(items.begin(), items.end());
}

Status ReadCustom(const JsonValue& value, int32_t num_ranks, CollectiveSpec& spec) {
  for (std::string_view key : {"root", "counts", "pairs"}) {
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> found, value.Find(key));
    if (found && !found->IsNull())
      return found->Error("not for a user-defined collective; expected pre and post alone");
  }
  XCCL_ASSIGN_OR_RETURN(const JsonValue sizes, value.Get("part_sizes"));
  XCCL_ASSIGN_OR_RETURN(spec.custom_weights, ReadWeights(sizes));
  if (spec.custom_weights.empty()) return sizes.Error("no parts; expected at least one");
  XCCL_ASSIGN_OR_RETURN(const JsonValue pre, value.Get("pre"));
  XCCL_ASSIGN_OR_RETURN(spec.pre, ReadTable(pre, num_ranks));
  XCCL_ASSIGN_OR_RETURN(const JsonValue post, value.Get("post"));
  XCCL_ASSIGN_OR_RETURN(spec.post, ReadTable(post, num_ranks));
  return OkStatus();
}

StatusOr<CollectiveSpec> ReadSpec(const JsonValue& value, int32_t num_ranks) {
  CollectiveSpec spec;
  XCCL_ASSIGN_OR_RETURN(const JsonValue name, value.Get("name"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name_text, name.String());
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> ranks, value.Find("ranks"));
  if (ranks) {
    XCCL_ASSIGN_OR_RETURN(spec.ranks, ReadRanks(*ranks, num_ranks));
  } else {
    spec.ranks = AllRanks(num_ranks);
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> pre, value.Find("pre"));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> post, value.Find("post"));
  if (pre || post) {
    spec.kind = CollectiveKind::kCustom;
    spec.custom_name = name_text;
    XCCL_RETURN_IF_ERROR(ReadCustom(value, num_ranks, spec));
    return spec;
  }
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
    XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> items, counts->Integers(0, INT64_MAX));
    spec.counts.assign(items.begin(), items.end());
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> pairs, value.Find("pairs"));
  if (pairs) {
    XCCL_ASSIGN_OR_RETURN(spec.pairs, ReadPairs(*pairs, num_ranks));
  }
  return spec;
}

// Reads `parts` and `weights`, the chunks of every part. Checks them against `num_parts` before it allocates.
StatusOr<std::vector<std::vector<int64_t>>> ReadCut(const JsonValue& value, const JsonValue& parts,
                                                    int64_t num_parts) {
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> sizes, parts.Integers(1, kMost));
  XCCL_ASSIGN_OR_RETURN(const JsonValue weights_value, value.Get("weights"));
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> weights, weights_value.Integers(0, kMostWeight));
  if (static_cast<int64_t>(sizes.size()) != num_parts)
    return parts.Error(fmt::format("{} entries; the collective has {} parts", sizes.size(), num_parts));
  int64_t chunks = 0;
  for (int64_t size : sizes) chunks += size;
  if (chunks != static_cast<int64_t>(weights.size()))
    return weights_value.Error(fmt::format("{} entries; parts has {} chunks in all", weights.size(), chunks));
  std::vector<std::vector<int64_t>> cut;
  cut.reserve(sizes.size());
  for (int64_t size : sizes) {
    const int64_t begin = static_cast<int64_t>(weights.size()) - chunks;
    chunks -= size;
    const std::span<const int64_t> own = weights.subspan(begin, size);
    if (*std::max_element(own.begin(), own.end()) == 0)
      return weights_value.Error(fmt::format("part {} has only zeros", cut.size()));
    if (size > int64_t{1} << 22)
      return parts.Error(fmt::format("part {} has {} chunks; at most 2^22 are supported", cut.size(), size));
    cut.emplace_back(own.begin(), own.end());
  }
  return cut;
}

}  // namespace

void WriteCutJson(const Collective& collective, JsonWriter& writer) {
  writer.Key("parts");
  writer.BeginArray();
  for (int32_t p = 0; p < collective.num_parts(); ++p) writer.Integer(collective.ChunksOf(PartId(p)));
  writer.EndArray();
  writer.Key("weights");
  writer.BeginArray();
  for (int32_t c = 0; c < collective.num_chunks(); ++c) writer.Integer(collective.Weight(ChunkId(c)));
  writer.EndArray();
}

StatusOr<Collective> ReadCutJson(const JsonValue& value, const Collective& collective) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> parts, value.Find("parts"));
  if (!parts) return collective;
  XCCL_ASSIGN_OR_RETURN(const auto cut, ReadCut(value, *parts, collective.num_parts()));
  return collective.WithWeights(cut);
}

void WriteCollectiveJson(const Collective& collective, JsonWriter& writer) {
  const CollectiveSpec& spec = collective.spec();
  const bool custom = spec.kind == CollectiveKind::kCustom;
  writer.BeginObject(JsonWriter::Layout::kLines);
  writer.Key("name");
  writer.String(collective.name());
  writer.Key("ranks");
  writer.Integers(spec.ranks, ValueOf);
  writer.Key("root");
  spec.root ? writer.Integer(spec.root->value) : writer.Null();
  WriteCutJson(collective, writer);
  if (!spec.counts.empty()) {
    writer.Key("counts");
    writer.Integers(spec.counts, Same);
  }
  if (spec.kind == CollectiveKind::kSendrecv) {
    writer.Key("pairs");
    writer.BeginArray();
    for (const auto& [from, to] : spec.pairs) writer.Integers(std::array{from, to}, ValueOf);
    writer.EndArray();
  }
  if (custom) {
    writer.Key("part_sizes");
    writer.Integers(spec.custom_weights, Same);
    writer.Key("pre");
    WriteTable(spec.pre, writer);
    writer.Key("post");
    WriteTable(spec.post, writer);
  }
  writer.EndObject();
}

StatusOr<Collective> ReadCollectiveJson(const JsonValue& value, int32_t num_ranks) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys(
      {"name", "ranks", "root", "parts", "weights", "counts", "pairs", "part_sizes", "pre", "post"}));
  XCCL_ASSIGN_OR_RETURN(CollectiveSpec spec, ReadSpec(value, num_ranks));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> parts, value.Find("parts"));
  std::optional<std::vector<std::vector<int64_t>>> cut;
  if (parts) {
    XCCL_ASSIGN_OR_RETURN(cut, ReadCut(value, *parts, NumParts(spec)));
  }
  StatusOr<Collective> whole = Collective::Create(std::move(spec));
  if (!whole.ok()) return value.Error(whole.status().message());
  return cut ? whole->WithWeights(*cut) : std::move(whole);
}

StatusOr<Collective> ReadCollectiveFile(const std::string& path, int32_t num_ranks) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  for (std::string_view key : {"name", "pre", "post"})
    XCCL_RETURN_IF_ERROR(document.root().Get(key).status());
  return ReadCollectiveJson(document.root(), num_ranks);
}

}  // namespace xccl
