#include "runtime/plan_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/file_kinds.h"
#include "base/files.h"
#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/strings.h"

namespace xccl {
namespace {

// In the order of the enums.
constexpr std::array<std::string_view, 3> kTypeClasses = {"any", "floating", "integer"};
constexpr std::array<std::string_view, 3> kInPlaceModes = {"both", "only", "never"};

template <typename Enum, const auto& kNames>
StatusOr<Enum> ParseName(std::string_view text) {
  const auto found = std::ranges::find(kNames, text);
  if (found == kNames.end())
    return InvalidInput(
        fmt::format("'{}'; expected {}{}", text, fmt::join(kNames, ", "), DidYouMean(text, kNames)));
  return static_cast<Enum>(found - kNames.begin());
}

StatusOr<std::string> ParseFileName(std::string_view name) {
  if (name.empty() || name.find('/') != std::string_view::npos)
    return InvalidInput(fmt::format("'{}'; expected a file in the book's own directory", name));
  return std::string(name);
}

StatusOr<uint64_t> ParseHash(std::string_view text) {
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
    return InvalidInput(fmt::format("'{}'; expected 16 hexadecimal digits", text));
  return hash;
}

// Sets `to` to what `parse` makes of a member's text. If the member is not needed and missing, `to` stays.
template <typename T>
Status Read(const JsonValue& object, std::string_view key, StatusOr<T> parse(std::string_view), T& to,
            bool needed = true) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(key));
  if (!value) return needed ? object.Get(key).status() : OkStatus();
  XCCL_ASSIGN_OR_RETURN(const std::string_view text, value->String());
  StatusOr<T> parsed = parse(text);
  if (!parsed.ok()) return value->Error(parsed.status().message());
  to = *std::move(parsed);
  return OkStatus();
}

StatusOr<std::optional<int64_t>> FindInteger(const JsonValue& object, std::string_view key, int64_t low,
                                             int64_t high) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(key));
  if (!value) return std::optional<int64_t>();
  XCCL_ASSIGN_OR_RETURN(const int64_t number, value->Integer(low, high));
  return std::optional<int64_t>(number);
}

StatusOr<PlanCubin> ReadCubin(const JsonValue& object) {
  XCCL_RETURN_IF_ERROR(object.CheckKeys({"file", "arch", "type", "op", "made_from"}));
  PlanCubin cubin;
  XCCL_RETURN_IF_ERROR(Read(object, "file", ParseFileName, cubin.file));
  XCCL_ASSIGN_OR_RETURN(cubin.arch, object.GetInteger("arch", 10, 999));
  XCCL_RETURN_IF_ERROR(Read(object, "type", ParseDataType, cubin.type));
  XCCL_RETURN_IF_ERROR(Read(object, "op", ParseReduceOp, cubin.op));
  XCCL_RETURN_IF_ERROR(Read(object, "made_from", ParseHash, cubin.made_from));
  return cubin;
}

StatusOr<PlanBookEntry> ReadEntry(const JsonValue& object) {
  XCCL_RETURN_IF_ERROR(object.CheckKeys({"file", "collective", "ranks", "root", "min_bytes", "max_bytes",
                                         "types", "in_place", "kernel", "cubins"}));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  PlanBookEntry entry;
  XCCL_RETURN_IF_ERROR(Read(object, "file", ParseFileName, entry.file));
  XCCL_RETURN_IF_ERROR(Read(object, "kernel", ParseFileName, entry.kernel, false));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> cubins, object.Find("cubins"));
  if (cubins) {
    if (entry.kernel.empty())
      return cubins->Error("cubins without a kernel; expected the source that they are made from");
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, cubins->Items());
    for (const JsonValue& item : items) {
      XCCL_ASSIGN_OR_RETURN(PlanCubin cubin, ReadCubin(item));
      entry.cubins.push_back(std::move(cubin));
    }
  }
  XCCL_RETURN_IF_ERROR(Read(object, "collective", ParseCollectiveKind, entry.collective));
  XCCL_ASSIGN_OR_RETURN(entry.ranks, object.GetInteger("ranks", 1, std::numeric_limits<int32_t>::max()));
  XCCL_ASSIGN_OR_RETURN(const std::optional<int64_t> root, FindInteger(object, "root", 0, entry.ranks - 1));
  if (root) entry.root = Rank(*root);
  if (IsRooted(entry.collective) != root.has_value())
    return object.Error(root ? fmt::format("a root of {}; expected none", ToString(entry.collective))
                             : fmt::format("no root of {}; expected \"root\"", ToString(entry.collective)));
  XCCL_ASSIGN_OR_RETURN(const std::optional<int64_t> low, FindInteger(object, "min_bytes", 0, kMost));
  entry.min_bytes = low.value_or(0);
  XCCL_ASSIGN_OR_RETURN(entry.max_bytes, FindInteger(object, "max_bytes", entry.min_bytes, kMost));
  XCCL_RETURN_IF_ERROR(Read(object, "types", ParseName<TypeClass, kTypeClasses>, entry.types, false));
  XCCL_RETURN_IF_ERROR(
      Read(object, "in_place", ParseName<InPlaceMode, kInPlaceModes>, entry.in_place, false));
  return entry;
}

void WriteCubins(const std::vector<PlanCubin>& cubins, JsonWriter& json) {
  json.Key("cubins");
  json.BeginArray();
  for (const PlanCubin& cubin : cubins) {
    json.BeginObject();
    json.Member("file", cubin.file);
    json.Member("arch", cubin.arch);
    json.Member("type", ToString(cubin.type));
    json.Member("op", ToString(cubin.op));
    json.Member("made_from", fmt::format("{:016x}", cubin.made_from));
    json.EndObject();
  }
  json.EndArray();
}

bool Serves(const PlanBookEntry& entry, const PlanQuery& query) {
  return entry.collective == query.collective && entry.ranks == query.ranks && entry.root == query.root &&
         query.size_bytes >= entry.min_bytes && (!entry.max_bytes || query.size_bytes <= *entry.max_bytes) &&
         (entry.types == TypeClass::kAny ||
          (entry.types == TypeClass::kFloating) == IsFloating(query.type)) &&
         (entry.in_place == InPlaceMode::kBoth || !query.in_place ||
          (entry.in_place == InPlaceMode::kOnly) == *query.in_place);
}

std::string Describe(const PlanBookEntry& entry) {
  std::string text = fmt::format("{} ranks", entry.ranks);
  if (entry.root) text += fmt::format(" root {}", entry.root->value);
  text += entry.max_bytes ? fmt::format(" {}..{} bytes", entry.min_bytes, *entry.max_bytes)
                          : fmt::format(" {} bytes and more", entry.min_bytes);
  if (entry.types != TypeClass::kAny)
    text += fmt::format(" {} types", kTypeClasses[static_cast<size_t>(entry.types)]);
  if (entry.in_place == InPlaceMode::kOnly) text += " in place";
  if (entry.in_place == InPlaceMode::kNever) text += " out of place";
  return text;
}

}  // namespace

std::vector<PlanCubin> PlanBook::CubinPathsOf(const PlanBookEntry& entry) const {
  std::vector<PlanCubin> cubins = entry.cubins;
  for (PlanCubin& cubin : cubins) cubin.file = directory + "/" + cubin.file;
  return cubins;
}

bool IsPlanBook(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path + "/index.json", error);
}

StatusOr<PlanBook> ReadPlanBook(const std::string& directory) {
  const std::string path = directory + "/index.json";
  if (PathExists(directory) && !IsDirectory(directory))
    return InvalidInput(directory + ": this is a file; expected a plan book, which is a directory");
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostIndexBytes));
  XCCL_RETURN_IF_ERROR(CheckKind(text, path, FileKind::kBookIndex));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  const JsonValue root = document.root();
  XCCL_RETURN_IF_ERROR(root.CheckKeys({"format", "plans"}));
  XCCL_RETURN_IF_ERROR(root.GetInteger("format", 1, 1).status());
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, root.GetItems("plans"));
  PlanBook book;
  book.directory = directory;
  for (const JsonValue& item : items) {
    XCCL_ASSIGN_OR_RETURN(PlanBookEntry entry, ReadEntry(item));
    book.entries.push_back(std::move(entry));
  }
  return book;
}

StatusOr<std::string> ReadKernel(const PlanBook& book, const PlanBookEntry& entry) {
  XCCL_RETURN_IF_ERROR(CheckTrusted(book.directory + "/index.json"));
  XCCL_RETURN_IF_ERROR(CheckTrusted(book.PathOf(entry)));
  XCCL_RETURN_IF_ERROR(CheckTrusted(book.KernelPathOf(entry)));
  for (const PlanCubin& cubin : book.CubinPathsOf(entry)) XCCL_RETURN_IF_ERROR(CheckTrusted(cubin.file));
  return ReadFile(book.KernelPathOf(entry));
}

Status MakePlanBookDirectory(const std::string& directory) {
  XCCL_RETURN_IF_ERROR(MakeFolders(directory));
  return CheckWritable(directory + "/index.json");
}

Status WritePlanBook(const PlanBook& book) {
  return WriteFileAtomically(book.directory + "/index.json", [&](std::ostream& out) {
    JsonWriter json(out);
    json.BeginObject(JsonWriter::Layout::kLines);
    json.Member("format", 1);
    json.Key("plans");
    json.BeginArray(JsonWriter::Layout::kLines);
    for (const PlanBookEntry& entry : book.entries) {
      json.BeginObject();
      json.Member("file", entry.file);
      json.Member("collective", ToString(entry.collective));
      json.Member("ranks", entry.ranks);
      json.Member("root", entry.root);
      json.Member("min_bytes", entry.min_bytes);
      json.Member("max_bytes", entry.max_bytes);
      json.Member("types", kTypeClasses[static_cast<size_t>(entry.types)]);
      json.Member("in_place", kInPlaceModes[static_cast<size_t>(entry.in_place)]);
      if (!entry.kernel.empty()) json.Member("kernel", entry.kernel);
      if (!entry.cubins.empty()) WriteCubins(entry.cubins, json);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
    json.Finish();
    return OkStatus();
  });
}

std::optional<size_t> FindPlan(const PlanBook& book, const PlanQuery& query) {
  std::optional<size_t> any;
  for (size_t i = 0; i < book.entries.size(); ++i) {
    if (!Serves(book.entries[i], query)) continue;
    if (query.in_place || book.entries[i].in_place == InPlaceMode::kBoth) return i;
    if (!any) any = i;
  }
  return any;
}

Status NoPlan(std::span<const PlanBook* const> books, const PlanQuery& query) {
  std::vector<std::string> directories, others;
  for (const PlanBook* book : books) {
    directories.push_back(book->directory);
    for (const PlanBookEntry& entry : book->entries)
      if (entry.collective == query.collective) others.push_back(Describe(entry));
  }
  std::string place;
  if (query.in_place) place = *query.in_place ? " in place" : " out of place";
  return InvalidInput(fmt::format(
      "{}: no plan for {} of {} bytes of {} on {} ranks{}{}; the {} {}", Join(directories, ", "),
      ToString(query.collective), query.size_bytes, ToString(query.type), query.ranks,
      query.root ? fmt::format(" from root {}", query.root->value) : "", place,
      books.size() == 1 ? "book has" : "books have", others.empty() ? "nothing" : Join(others, "; ")));
}

StatusOr<size_t> SelectPlan(const PlanBook& book, const PlanQuery& query) {
  if (const std::optional<size_t> found = FindPlan(book, query)) return *found;
  const std::array<const PlanBook*, 1> books = {&book};
  return NoPlan(books, query);
}

}  // namespace xccl
