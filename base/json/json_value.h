// Reads JSON into a light tree. Arrays of integers, and arrays of such arrays, are flat columns of int64 (8
// bytes an entry), so that a schedule of a million transfers costs little more than its numbers; any other
// value costs about 40 bytes. Syntax errors say file:line:column, errors of meaning `file: key.path: text`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

struct JsonNode;

// Entry i of an array whose entries are integers or lists of integers: items first[i] .. first[i+1], or a
// single item where it is a bare integer.
struct IntegerLists {
  std::span<const int64_t> items;
  std::span<const int64_t> first;  // empty: every entry is a bare integer, entry i is item i
  std::span<const uint8_t> bare;   // by entry, as long as first - 1; empty where first is
  int64_t size() const { return static_cast<int64_t>(first.empty() ? items.size() : first.size() - 1); }
  std::span<const int64_t> operator[](int64_t i) const {
    return first.empty() ? items.subspan(i, 1) : items.subspan(first[i], first[i + 1] - first[i]);
  }
  bool IsBare(int64_t i) const { return first.empty() || bare[i] != 0; }
};

// A handle on one value of a JsonDocument, cheap to copy; must not outlive it. Every reader returns the value
// or an error that names its place.
class JsonValue {
 public:
  // InvalidInput("file: key.path: text").
  Status Error(std::string_view text) const;

  StatusOr<bool> Bool() const;
  // A whole number within low..high (both included).
  StatusOr<int64_t> Integer(int64_t low, int64_t high) const;
  StatusOr<uint64_t> Unsigned() const;
  StatusOr<double> Number() const;  // integers too
  StatusOr<std::string_view> String() const;
  bool IsNull() const;

  // Arrays of integers, each within low..high; the error names the first entry that is not.
  StatusOr<std::span<const int64_t>> Integers(int64_t low, int64_t high) const;
  StatusOr<IntegerLists> Lists(int64_t low, int64_t high) const;
  // The entries of an array of anything else; an array of integers or of lists of integers is an error unless
  // it is empty.
  StatusOr<std::vector<JsonValue>> Items() const;

  // Objects. Find: nullopt where there is no such key. Get: an error that names the key.
  StatusOr<std::optional<JsonValue>> Find(std::string_view key) const;
  StatusOr<JsonValue> Get(std::string_view key) const;
  // Error, with "did you mean", when the object has another key than these.
  Status CheckKeys(std::initializer_list<std::string_view> known) const;

 private:
  friend class JsonDocument;
  JsonValue(const class JsonDocument* document, const JsonNode* node) : document_(document), node_(node) {}
  Status WrongKind(std::string_view expected) const;
  Status CheckRange(std::span<const int64_t> items, int64_t low, int64_t high) const;

  const JsonDocument* document_;
  const JsonNode* node_;
};

class JsonDocument {
 public:
  // `file` is the name shown in errors. Errors: kInvalidInput for text that is not JSON or ends too early,
  // for nesting deeper than 100, and for keys given twice.
  static StatusOr<JsonDocument> Parse(std::string_view text, std::string file);
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonValue root() const { return JsonValue(this, root_.get()); }
  const std::string& file() const { return file_; }

 private:
  friend class JsonValue;
  JsonDocument(std::string file, std::unique_ptr<JsonNode> root);
  std::string PathOf(const JsonNode* node) const;

  std::string file_;
  std::unique_ptr<JsonNode> root_;
};

}  // namespace xccl
