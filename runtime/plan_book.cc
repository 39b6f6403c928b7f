#include "runtime/plan_book.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/strings.h"

namespace xccl {
namespace {

constexpr std::array<std::pair<TypeClass, std::string_view>, 3> kTypeClasses = {
    {{TypeClass::kAny, "any"}, {TypeClass::kFloating, "floating"}, {TypeClass::kInteger, "integer"}}};
constexpr std::array<std::pair<InPlaceMode, std::string_view>, 3> kInPlaceModes = {
    {{InPlaceMode::kBoth, "both"}, {InPlaceMode::kOnly, "only"}, {InPlaceMode::kNever, "never"}}};

template <typename Enum, size_t kSize>
std::string_view NameOf(const std::array<std::pair<Enum, std::string_view>, kSize>& names, Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return "";
}

template <typename Enum, size_t kSize>
Status ReadName(const JsonValue& object, std::string_view key,
                const std::array<std::pair<Enum, std::string_view>, kSize>& names, Enum& value) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> found, object.Find(key));
  if (!found) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(const std::string_view text, found->String());
  std::vector<std::string_view> known;
  for (const auto& [each, name] : names) {
    if (name == text) {
      value = each;
      return OkStatus();
    }
    known.push_back(name);
  }
  return found->Error(
      fmt::format("'{}'; expected {}{}", text, fmt::join(known, ", "), DidYouMean(text, known)));
}

StatusOr<std::string> FileName(const JsonValue& value) {
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, value.String());
  if (name.empty() || name.find('/') != std::string_view::npos)
    return value.Error(fmt::format("'{}'; expected a file in the book's own directory", name));
  return std::string(name);
}

StatusOr<PlanCubin> ReadCubin(const JsonValue& object) {
  XCCL_RETURN_IF_ERROR(object.CheckKeys({"file", "arch", "type", "op", "made_from"}));
  PlanCubin cubin;
  XCCL_ASSIGN_OR_RETURN(const JsonValue file, object.Get("file"));
  XCCL_ASSIGN_OR_RETURN(cubin.file, FileName(file));
  XCCL_ASSIGN_OR_RETURN(const JsonValue arch, object.Get("arch"));
  XCCL_ASSIGN_OR_RETURN(const int64_t capability, arch.Integer(10, 999));
  cubin.arch = static_cast<int32_t>(capability);
  XCCL_ASSIGN_OR_RETURN(const JsonValue type, object.Get("type"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view type_name, type.String());
  const StatusOr<DataType> known_type = ParseDataType(type_name);
  if (!known_type.ok()) return type.Error(known_type.status().message());
  cubin.type = *known_type;
  XCCL_ASSIGN_OR_RETURN(const JsonValue op, object.Get("op"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view op_name, op.String());
  const StatusOr<ReduceOp> known_op = ParseReduceOp(op_name);
  if (!known_op.ok()) return op.Error(known_op.status().message());
  cubin.op = *known_op;
  XCCL_ASSIGN_OR_RETURN(const JsonValue made_from, object.Get("made_from"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view hash, made_from.String());
  const auto [end, error] = std::from_chars(hash.data(), hash.data() + hash.size(), cubin.made_from, 16);
  if (error != std::errc() || end != hash.data() + hash.size() || hash.size() != 16)
    return made_from.Error(fmt::format("'{}'; expected 16 hexadecimal digits", hash));
  return cubin;
}

StatusOr<PlanBookEntry> ReadEntry(const JsonValue& object) {
  XCCL_RETURN_IF_ERROR(object.CheckKeys({"file", "collective", "ranks", "root", "min_bytes", "max_bytes",
                                         "types", "in_place", "kernel", "cubins"}));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  PlanBookEntry entry;
  XCCL_ASSIGN_OR_RETURN(const JsonValue file, object.Get("file"));
  XCCL_ASSIGN_OR_RETURN(entry.file, FileName(file));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> kernel, object.Find("kernel"));
  if (kernel) {
    XCCL_ASSIGN_OR_RETURN(entry.kernel, FileName(*kernel));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> cubins, object.Find("cubins"));
  if (cubins) {
    if (!kernel) return cubins->Error("cubins without a kernel; expected the source that they are made from");
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, cubins->Items());
    for (const JsonValue& item : items) {
      XCCL_ASSIGN_OR_RETURN(PlanCubin cubin, ReadCubin(item));
      entry.cubins.push_back(std::move(cubin));
    }
  }
  XCCL_ASSIGN_OR_RETURN(const JsonValue collective, object.Get("collective"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, collective.String());
  const StatusOr<CollectiveKind> kind = ParseCollectiveKind(name);
  if (!kind.ok()) return collective.Error(kind.status().message());
  entry.collective = *kind;
  XCCL_ASSIGN_OR_RETURN(const JsonValue ranks, object.Get("ranks"));
  XCCL_ASSIGN_OR_RETURN(const int64_t rank_count, ranks.Integer(1, std::numeric_limits<int32_t>::max()));
  entry.ranks = static_cast<int32_t>(rank_count);
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> root, object.Find("root"));
  if (root) {
    XCCL_ASSIGN_OR_RETURN(const int64_t rank, root->Integer(0, entry.ranks - 1));
    entry.root = Rank(rank);
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> low, object.Find("min_bytes"));
  if (low) {
    XCCL_ASSIGN_OR_RETURN(entry.min_bytes, low->Integer(0, kMost));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> high, object.Find("max_bytes"));
  if (high) {
    XCCL_ASSIGN_OR_RETURN(entry.max_bytes, high->Integer(entry.min_bytes, kMost));
  }
  XCCL_RETURN_IF_ERROR(ReadName(object, "types", kTypeClasses, entry.types));
  XCCL_RETURN_IF_ERROR(ReadName(object, "in_place", kInPlaceModes, entry.in_place));
  return entry;
}

void WriteCubins(const std::vector<PlanCubin>& cubins, JsonWriter& json) {
  json.Key("cubins");
  json.BeginArray();
  for (const PlanCubin& cubin : cubins) {
    json.BeginObject();
    json.Key("file");
    json.String(cubin.file);
    json.Key("arch");
    json.Integer(cubin.arch);
    json.Key("type");
    json.String(ToString(cubin.type));
    json.Key("op");
    json.String(ToString(cubin.op));
    json.Key("made_from");
    json.String(fmt::format("{:016x}", cubin.made_from));
    json.EndObject();
  }
  json.EndArray();
}

bool Serves(const PlanBookEntry& entry, const PlanQuery& query) {
  return entry.collective == query.collective && entry.ranks == query.ranks && entry.root == query.root &&
         query.size_bytes >= entry.min_bytes && (!entry.max_bytes || query.size_bytes <= *entry.max_bytes) &&
         (entry.types == TypeClass::kAny ||
          (entry.types == TypeClass::kFloating) == IsFloating(query.type)) &&
         (entry.in_place == InPlaceMode::kBoth || (entry.in_place == InPlaceMode::kOnly) == query.in_place);
}

std::string Describe(const PlanBookEntry& entry) {
  std::string text = fmt::format("{} ranks", entry.ranks);
  if (entry.root) text += fmt::format(" root {}", entry.root->value);
  text += entry.max_bytes ? fmt::format(" {}..{} bytes", entry.min_bytes, *entry.max_bytes)
                          : fmt::format(" {} bytes and more", entry.min_bytes);
  if (entry.types != TypeClass::kAny) text += fmt::format(" {} types", NameOf(kTypeClasses, entry.types));
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
  struct stat found = {};
  return stat((path + "/index.json").c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

StatusOr<PlanBook> ReadPlanBook(const std::string& directory) {
  const std::string path = directory + "/index.json";
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  const JsonValue root = document.root();
  XCCL_RETURN_IF_ERROR(root.CheckKeys({"format", "plans"}));
  XCCL_ASSIGN_OR_RETURN(const JsonValue format, root.Get("format"));
  XCCL_RETURN_IF_ERROR(format.Integer(1, 1).status());
  XCCL_ASSIGN_OR_RETURN(const JsonValue plans, root.Get("plans"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, plans.Items());
  PlanBook book;
  book.directory = directory;
  for (const JsonValue& item : items) {
    XCCL_ASSIGN_OR_RETURN(PlanBookEntry entry, ReadEntry(item));
    book.entries.push_back(std::move(entry));
  }
  return book;
}

Status MakePlanBookDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return InvalidInput(directory + ": cannot make the directory: " + error.message());
  return CheckWritable(directory + "/index.json");
}

Status WritePlanBook(const PlanBook& book) {
  return WriteFileAtomically(book.directory + "/index.json", [&](std::ostream& out) {
    JsonWriter json(out);
    json.BeginObject(JsonWriter::Layout::kLines);
    json.Key("format");
    json.Integer(1);
    json.Key("plans");
    json.BeginArray(JsonWriter::Layout::kLines);
    for (const PlanBookEntry& entry : book.entries) {
      json.BeginObject();
      json.Key("file");
      json.String(entry.file);
      json.Key("collective");
      json.String(ToString(entry.collective));
      json.Key("ranks");
      json.Integer(entry.ranks);
      if (entry.root) {
        json.Key("root");
        json.Integer(entry.root->value);
      }
      json.Key("min_bytes");
      json.Integer(entry.min_bytes);
      if (entry.max_bytes) {
        json.Key("max_bytes");
        json.Integer(*entry.max_bytes);
      }
      json.Key("types");
      json.String(NameOf(kTypeClasses, entry.types));
      json.Key("in_place");
      json.String(NameOf(kInPlaceModes, entry.in_place));
      if (!entry.kernel.empty()) {
        json.Key("kernel");
        json.String(entry.kernel);
      }
      if (!entry.cubins.empty()) WriteCubins(entry.cubins, json);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
    json.Finish();
    return OkStatus();
  });
}

StatusOr<size_t> SelectPlan(const PlanBook& book, const PlanQuery& query) {
  std::vector<std::string> others;
  for (size_t i = 0; i < book.entries.size(); ++i) {
    if (Serves(book.entries[i], query)) return i;
    if (book.entries[i].collective == query.collective) others.push_back(Describe(book.entries[i]));
  }
  const std::string has = others.empty() ? "nothing" : Join(others, "; ");
  return InvalidInput(fmt::format("{}: no plan for {} of {} bytes of {} on {} ranks{} {}; the book has {}",
                                  book.directory, ToString(query.collective), query.size_bytes,
                                  ToString(query.type), query.ranks,
                                  query.root ? fmt::format(" from root {}", query.root->value) : "",
                                  query.in_place ? "in place" : "out of place", has));
}

}  // namespace xccl
