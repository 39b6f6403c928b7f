// nlohmann's SAX parser drives a builder that keeps a stack of open containers. An array stays a column of
// integers until it gets an entry that is neither an integer nor a list of integers. Key paths for messages
// are found by searching the tree, so only errors pay for them.
#include "base/json/json_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/diagnostics.h"
#include "base/strings.h"

namespace xccl {
namespace {

struct Columns {
  std::vector<int64_t> items, first;  // as IntegerLists
  std::vector<uint8_t> bare;

  void Add(std::span<const int64_t> entry, bool is_bare) {
    items.insert(items.end(), entry.begin(), entry.end());
    if (!is_bare) BeginListsBefore(entry.size());
    if (!first.empty()) {
      first.push_back(static_cast<int64_t>(items.size()));
      bare.push_back(is_bare);
    }
  }
  // The last `pending` items belong to the entry that is being added.
  void BeginListsBefore(size_t pending) {
    if (!first.empty()) return;
    const size_t entries = items.size() - pending;
    first.resize(entries + 1);
    for (size_t i = 0; i <= entries; ++i) first[i] = static_cast<int64_t>(i);
    bare.assign(entries, 1);
  }
  IntegerLists Lists() const { return {items, first, bare}; }
};

}  // namespace

struct JsonObject {
  std::vector<std::string> keys;
  std::vector<JsonNode> values;
};

struct JsonNode {
  using Array = std::vector<JsonNode>;
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::unique_ptr<std::string>,
               std::unique_ptr<Columns>, std::unique_ptr<Array>, std::unique_ptr<JsonObject>>
      value;

  const Columns* columns() const { return Of<Columns>(); }
  const Array* array() const { return Of<Array>(); }
  const JsonObject* object() const { return Of<JsonObject>(); }
  template <typename T>
  const T* Of() const {
    const auto* held = std::get_if<std::unique_ptr<T>>(&value);
    return held ? held->get() : nullptr;
  }
};

namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 100;
constexpr int kNumberOverflow = 406;  // the id of nlohmann's exception

class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Attach({std::monostate()}); }
  bool boolean(bool value) override { return Attach({value}); }
  bool number_integer(int64_t value) override { return AttachInteger(value); }
  bool number_unsigned(uint64_t value) override {
    return value <= static_cast<uint64_t>(INT64_MAX) ? AttachInteger(static_cast<int64_t>(value))
                                                     : Attach({value});
  }
  bool number_float(double value, const std::string&) override { return Attach({value}); }
  bool string(std::string& value) override {
    return Attach({std::make_unique<std::string>(std::move(value))});
  }
  bool binary(json::binary_t&) override { return false; }

  bool start_object(size_t) override { return Open({std::make_unique<JsonObject>()}); }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const std::string& key : std::get<std::unique_ptr<JsonObject>>(open_.back().value)->keys)
      keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return Close();
    error_ = fmt::format("key '{}' is given twice; expected each key once", *twice);
    return false;
  }
  bool start_array(size_t) override { return Open({std::make_unique<Columns>()}); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    std::get<std::unique_ptr<JsonObject>>(open_.back().value)->keys.push_back(std::move(name));
    return true;
  }
  bool parse_error(size_t position, const std::string& token, const json::exception& error) override {
    position_ = position;
    if (error.id != kNumberOverflow) return false;
    position_ = position - token.size() + 1;
    error_ = fmt::format("{} is too large; expected a number below 1.8e308", token);
    return false;
  }

  JsonNode root;
  const std::string& error() const { return error_; }
  // Bytes read when the parser gave up, or up to the first of a number that is too large; the end of the text
  // counts as one.
  std::optional<size_t> position() const { return position_; }

 private:
  bool AttachInteger(int64_t value) {
    if (Columns* columns = OpenColumns()) {
      columns->Add(std::span(&value, 1), true);
      return true;
    }
    return Attach({value});
  }
  Columns* OpenColumns() {
    if (open_.empty()) return nullptr;
    const auto* held = std::get_if<std::unique_ptr<Columns>>(&open_.back().value);
    return held ? held->get() : nullptr;
  }
  bool Open(JsonNode node) {
    if (open_.size() >= kMaxDepth) {
      error_ = fmt::format("nested deeper than {}", kMaxDepth);
      return false;
    }
    open_.push_back(std::move(node));
    return true;
  }
  bool Close() {
    JsonNode node = std::move(open_.back());
    open_.pop_back();
    const Columns* entry = node.columns();
    if (Columns* columns = OpenColumns(); columns && entry && entry->first.empty()) {
      columns->Add(entry->items, false);
      return true;
    }
    return Attach(std::move(node));
  }
  bool Attach(JsonNode node) {
    if (open_.empty()) {
      root = std::move(node);
      return true;
    }
    JsonNode& parent = open_.back();
    if (OpenColumns()) parent.value = std::make_unique<JsonNode::Array>(Entries(*OpenColumns()));
    if (auto* array = std::get_if<std::unique_ptr<JsonNode::Array>>(&parent.value))
      (*array)->push_back(std::move(node));
    else
      std::get<std::unique_ptr<JsonObject>>(parent.value)->values.push_back(std::move(node));
    return true;
  }
  static JsonNode::Array Entries(const Columns& columns) {
    JsonNode::Array entries;
    const IntegerLists lists = columns.Lists();
    for (int64_t i = 0; i < lists.size(); ++i) {
      if (lists.IsBare(i)) {
        entries.push_back({lists[i][0]});
      } else {
        auto list = std::make_unique<Columns>();
        list->items.assign(lists[i].begin(), lists[i].end());
        entries.push_back({std::move(list)});
      }
    }
    return entries;
  }

  std::vector<JsonNode> open_;
  std::string error_;
  std::optional<size_t> position_;
};

std::string_view KindName(const JsonNode& node) {
  constexpr std::string_view kNames[] = {
      "null",     "true or false",        "a number", "a number", "a number",
      "a string", "an array of integers", "an array", "an object"};
  return kNames[node.value.index()];
}

bool FindPath(const JsonNode& here, const JsonNode* wanted, std::string& path) {
  if (&here == wanted) return true;
  const size_t length = path.size();
  if (const JsonObject* object = here.object()) {
    for (size_t i = 0; i < object->values.size(); ++i) {
      path += (length > 0 ? "." : "") + object->keys[i];
      if (FindPath(object->values[i], wanted, path)) return true;
      path.resize(length);
    }
  } else if (const JsonNode::Array* array = here.array()) {
    for (size_t i = 0; i < array->size(); ++i) {
      path += fmt::format("[{}]", i);
      if (FindPath((*array)[i], wanted, path)) return true;
      path.resize(length);
    }
  }
  return false;
}

}  // namespace

// ---- JsonDocument ----

JsonDocument::JsonDocument(std::string file, std::unique_ptr<JsonNode> root)
    : file_(std::move(file)), root_(std::move(root)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

StatusOr<JsonDocument> JsonDocument::Parse(std::string_view text, std::string file) {
  // The parser skips a byte-order mark and takes a zero byte for the end of the text.
  if (WithoutByteOrderMark(text).size() < text.size())
    return InvalidAt(LocationOfOffset(file, text, 0), "begins with a byte-order mark; expected JSON");
  if (HasUtf16Mark(text))
    return InvalidAt(LocationOfOffset(file, text, 0), "begins with a mark of UTF-16; expected JSON in UTF-8");
  if (const size_t zero = text.find('\0'); zero != text.npos)
    return InvalidAt(LocationOfOffset(file, text, zero), "not JSON: unexpected byte 0x00");
  TreeBuilder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder))
    return JsonDocument(std::move(file), std::make_unique<JsonNode>(std::move(builder.root)));
  if (!builder.position()) return InvalidInput(fmt::format("{}: {}", file, builder.error()));
  const size_t at = *builder.position() > 0 ? *builder.position() - 1 : 0;
  const Location location = LocationOfOffset(file, text, at);
  if (!builder.error().empty()) return InvalidAt(location, builder.error());
  if (at >= text.size())
    return InvalidAt(location, "truncated: the text ends inside its value; expected the rest");
  const char seen = text[at];
  return InvalidAt(location, seen >= 0x20 && seen < 0x7F ? fmt::format("not JSON: unexpected '{}'", seen)
                                                         : fmt::format("not JSON: unexpected byte 0x{:02x}",
                                                                       static_cast<unsigned char>(seen)));
}

std::string JsonDocument::PathOf(const JsonNode* node) const {
  std::string path;
  FindPath(*root_, node, path);
  return path;
}

// ---- JsonValue ----

Status JsonValue::Error(std::string_view text) const {
  const std::string path = document_->PathOf(node_);
  return InvalidInput(fmt::format("{}: {}{}{}", document_->file(), path, path.empty() ? "" : ": ", text));
}

Status JsonValue::WrongKind(std::string_view expected) const {
  return Error(fmt::format("{}; expected {}", KindName(*node_), expected));
}

bool JsonValue::IsNull() const { return std::holds_alternative<std::monostate>(node_->value); }
bool JsonValue::IsBool() const { return std::holds_alternative<bool>(node_->value); }
bool JsonValue::IsNumber() const {
  return std::holds_alternative<int64_t>(node_->value) || std::holds_alternative<uint64_t>(node_->value) ||
         std::holds_alternative<double>(node_->value);
}
bool JsonValue::IsString() const { return node_->Of<std::string>() != nullptr; }

StatusOr<bool> JsonValue::Bool() const {
  if (const bool* value = std::get_if<bool>(&node_->value)) return *value;
  return WrongKind("true or false");
}

StatusOr<int64_t> JsonValue::Integer(int64_t low, int64_t high) const {
  if (const int64_t* value = std::get_if<int64_t>(&node_->value)) {
    if (*value >= low && *value <= high) return *value;
    return Error(fmt::format("{}; expected {}..{}", *value, low, high));
  }
  if (const uint64_t* value = std::get_if<uint64_t>(&node_->value))
    return Error(fmt::format("{}; expected {}..{}", *value, low, high));
  if (const double* value = std::get_if<double>(&node_->value))
    return Error(fmt::format("{}; expected a whole number", *value));
  return WrongKind("a whole number");
}

StatusOr<uint64_t> JsonValue::Unsigned() const {
  if (const uint64_t* value = std::get_if<uint64_t>(&node_->value)) return *value;
  XCCL_ASSIGN_OR_RETURN(const int64_t value, Integer(0, INT64_MAX));
  return static_cast<uint64_t>(value);
}

StatusOr<double> JsonValue::Number() const {
  if (const int64_t* value = std::get_if<int64_t>(&node_->value)) return static_cast<double>(*value);
  if (const uint64_t* value = std::get_if<uint64_t>(&node_->value)) return static_cast<double>(*value);
  if (const double* value = std::get_if<double>(&node_->value)) return *value;
  return WrongKind("a number");
}

StatusOr<std::string_view> JsonValue::String() const {
  if (const std::string* value = node_->Of<std::string>()) return std::string_view(*value);
  return WrongKind("a string");
}

StatusOr<std::span<const int64_t>> JsonValue::Integers(int64_t low, int64_t high) const {
  constexpr std::string_view kExpected = "an array of whole numbers that fit 64 bits";
  const Columns* columns = node_->columns();
  if (!columns) return WrongKind(kExpected);
  if (!columns->first.empty()) {
    const auto list = std::find(columns->bare.begin(), columns->bare.end(), 0);
    return Error(fmt::format("entry {} is a list; expected {}", list - columns->bare.begin(), kExpected));
  }
  const std::span<const int64_t> items = columns->items;
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i] < low || items[i] > high)
      return Error(fmt::format("entry {} is {}; expected {}..{}", i, items[i], low, high));
  return items;
}

StatusOr<IntegerLists> JsonValue::Lists(int64_t low, int64_t high) const {
  const Columns* columns = node_->columns();
  if (!columns) return WrongKind("an array of lists of whole numbers that fit 64 bits");
  const IntegerLists lists = columns->Lists();
  for (int64_t i = 0; i < lists.size(); ++i)
    for (int64_t item : lists[i])
      if (item < low || item > high)
        return Error(fmt::format("entry {} has {}; expected {}..{}", i, item, low, high));
  return lists;
}

StatusOr<std::vector<JsonValue>> JsonValue::Items() const {
  std::vector<JsonValue> items;
  if (const Columns* columns = node_->columns(); columns && columns->Lists().size() == 0) return items;
  const JsonNode::Array* array = node_->array();
  if (!array) return WrongKind("an array of other values");
  items.reserve(array->size());
  for (const JsonNode& node : *array) items.push_back(JsonValue(document_, &node));
  return items;
}

StatusOr<std::optional<JsonValue>> JsonValue::Find(std::string_view key) const {
  const JsonObject* object = node_->object();
  if (!object) return WrongKind("an object");
  for (size_t i = 0; i < object->keys.size(); ++i)
    if (object->keys[i] == key) return std::optional(JsonValue(document_, &object->values[i]));
  return std::optional<JsonValue>();
}

StatusOr<JsonValue> JsonValue::Get(std::string_view key) const {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, Find(key));
  if (!value) return Error(fmt::format("no key '{}'; expected one", key));
  return *value;
}

StatusOr<bool> JsonValue::GetBool(std::string_view key) const {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  return value.Bool();
}

StatusOr<int64_t> JsonValue::GetInteger(std::string_view key, int64_t low, int64_t high) const {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  return value.Integer(low, high);
}

StatusOr<std::string_view> JsonValue::GetString(std::string_view key) const {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  return value.String();
}

StatusOr<std::vector<JsonValue>> JsonValue::GetItems(std::string_view key) const {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, Get(key));
  return value.Items();
}

Status JsonValue::CheckKeys(std::initializer_list<std::string_view> known) const {
  const JsonObject* object = node_->object();
  if (!object) return WrongKind("an object");
  for (const std::string& key : object->keys) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string meant = DidYouMean(key, std::span(known.begin(), known.size()));
    if (meant.empty()) meant = "; expected " + Either(std::vector<std::string>(known.begin(), known.end()));
    return Error(fmt::format("unknown key '{}'{}", key, meant));
  }
  return OkStatus();
}

}  // namespace xccl
