#include "synth/groups/groups.h"

#include <fmt/core.h>

#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/file_kinds.h"
#include "base/json/json_value.h"
#include "base/units.h"
#include "ir/collective_args.h"

namespace xccl {
namespace {

StatusOr<std::vector<Rank>> RanksOf(const JsonValue& group, int32_t num_ranks) {
  std::vector<Rank> ranks;
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, group.Find("ranks"));
  if (!value) return AllRanks(num_ranks);
  if (const StatusOr<std::string_view> text = value->String(); text.ok()) {
    StatusOr<std::vector<Rank>> listed = ParseRankList(*text, num_ranks);
    if (!listed.ok()) return value->Error(listed.status().message());
    return listed;
  }
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> items, value->Integers(0, num_ranks - 1));
  for (int64_t item : items) ranks.push_back(Rank(item));
  return ranks;
}

StatusOr<int64_t> SizeOf(const JsonValue& group) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, group.Get("size"));
  const StatusOr<std::string_view> text = value.String();
  if (!text.ok()) return value.Integer(1, kMaxSizeBytes);
  StatusOr<int64_t> size = ParseSize(*text);
  if (!size.ok()) return value.Error(size.status().message());
  if (*size < 1 || *size > kMaxSizeBytes)
    return value.Error(fmt::format("{}; expected 1 to {}", *text, FormatSize(kMaxSizeBytes)));
  return size;
}

StatusOr<CollectiveSpec> SpecOf(const JsonValue& group, int32_t num_ranks) {
  CollectiveSpec spec;
  XCCL_ASSIGN_OR_RETURN(const JsonValue collective, group.Get("collective"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, collective.String());
  const StatusOr<CollectiveKind> kind = ParseCollectiveKind(name);
  if (!kind.ok()) return collective.Error(kind.status().message());
  if (*kind == CollectiveKind::kBarrier)
    return collective.Error("a barrier moves no bytes; expected another collective");
  spec.kind = *kind;
  XCCL_ASSIGN_OR_RETURN(spec.ranks, RanksOf(group, num_ranks));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> root, group.Find("root"));
  if (root) {
    XCCL_ASSIGN_OR_RETURN(const int64_t rank, root->Integer(0, num_ranks - 1));
    spec.root = Rank(rank);
  } else if (IsRooted(spec.kind) && !spec.ranks.empty()) {
    spec.root = spec.ranks.front();
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> counts, group.Find("counts"));
  if (counts) {
    XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> items, counts->Integers(0, kMaxSizeBytes));
    spec.counts.assign(items.begin(), items.end());
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> pairs, group.Find("pairs"));
  if (pairs) {
    XCCL_ASSIGN_OR_RETURN(const std::string_view text, pairs->String());
    StatusOr<std::vector<std::pair<Rank, Rank>>> parsed = ParsePairs(text, num_ranks);
    if (!parsed.ok()) return pairs->Error(parsed.status().message());
    spec.pairs = *std::move(parsed);
  }
  if (spec.kind == CollectiveKind::kSendrecv && spec.pairs.empty())
    return group.Error("sendrecv: no pairs; expected pairs such as \"0>1,1>0\"");
  return spec;
}

StatusOr<ProcessGroup> ReadGroup(const JsonValue& value, int32_t num_ranks) {
  XCCL_RETURN_IF_ERROR(
      value.CheckKeys({"name", "collective", "size", "ranks", "root", "counts", "pairs", "count"}));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, value.GetString("name"));
  XCCL_ASSIGN_OR_RETURN(CollectiveSpec spec, SpecOf(value, num_ranks));
  XCCL_ASSIGN_OR_RETURN(const int64_t size_bytes, SizeOf(value));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> count, value.Find("count"));
  int64_t times = 1;
  if (count) {
    XCCL_ASSIGN_OR_RETURN(times, count->Integer(1, kMostGroupCount));
  }
  StatusOr<Collective> collective = Collective::Create(std::move(spec));
  if (!collective.ok()) return value.Error(collective.status().message());
  return ProcessGroup{std::string(name), *std::move(collective), size_bytes, times};
}

}  // namespace

StatusOr<GroupRequest> ReadGroups(const std::string& path, int32_t num_ranks) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFileOfKind(path, FileKind::kGroups));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  const JsonValue root = document.root();
  XCCL_RETURN_IF_ERROR(root.CheckKeys({"name", "groups"}));
  GroupRequest request;
  XCCL_ASSIGN_OR_RETURN(request.name, root.GetString("name"));
  XCCL_ASSIGN_OR_RETURN(const JsonValue groups, root.Get("groups"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, groups.Items());
  if (items.empty()) return groups.Error("no groups; expected at least one");
  std::set<std::string> names;
  for (const JsonValue& item : items) {
    XCCL_ASSIGN_OR_RETURN(ProcessGroup group, ReadGroup(item, num_ranks));
    if (!names.insert(group.name).second)
      return item.Error(fmt::format("a second group '{}'; expected another name", group.name));
    request.groups.push_back(std::move(group));
  }
  return request;
}

}  // namespace xccl
