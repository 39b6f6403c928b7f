// Reads JSON into a compact tree. Arrays of integers, and arrays of such arrays, are flat columns of int64
// (8 bytes an entry), so a schedule of a million transfers costs little more than its numbers. Any other
// value costs about 40 bytes. Syntax errors say file:line:column; other errors say `file: key.path: text`.
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

// An array whose entries are integers or lists of integers. Entry i holds items first[i] up to first[i+1],
// or one item where it is a bare integer.
struct IntegerLists {
  std::span<const int64_t> items;
  std::span<const int64_t> first;  // empty: every entry is a bare integer, entry i is item i
  std::span<const uint8_t> bare;   // 1 where entry i is a bare integer; empty if `first` is
  int64_t size() const { return static_cast<int64_t>(first.empty() ? items.size() : first.size() - 1); }
  std::span<const int64_t> operator[](int64_t i) const {
    return first.empty() ? items.subspan(i, 1) : items.subspan(first[i], first[i + 1] - first[i]);
  }
  bool IsBare(int64_t i) const { return first.empty() || bare[i] != 0; }
};

// A handle on one value of a JsonDocument; cheap to copy, and must not outlive the document. Every reader
// returns the value or an error that names its place.
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
  bool IsBool() const;
  bool IsNumber() const;
  bool IsString() const;

  // Arrays of integers, each within low..high; the error names the first entry that is not.
  StatusOr<std::span<const int64_t>> Integers(int64_t low, int64_t high) const;
  StatusOr<IntegerLists> Lists(int64_t low, int64_t high) const;
  // The entries of any other array. A non-empty array of integers, or of lists of integers, is an error.
  StatusOr<std::vector<JsonValue>> Items() const;

  // Members of an object. Find returns nullopt if the key is missing; Get returns an error that names it.
  StatusOr<std::optional<JsonValue>> Find(std::string_view key) const;
  StatusOr<JsonValue> Get(std::string_view key) const;
  StatusOr<bool> GetBool(std::string_view key) const;
  StatusOr<int64_t> GetInteger(std::string_view key, int64_t low, int64_t high) const;
  StatusOr<std::string_view> GetString(std::string_view key) const;
  StatusOr<std::vector<JsonValue>> GetItems(std::string_view key) const;
  // Integers as numbers or ids of type T.
  template <typename T>
  StatusOr<std::vector<T>> GetIntegers(std::string_view key, int64_t low, int64_t high) const {
    XCCL_ASSIGN_OR_RETURN(const JsonValue value, Get(key));
    XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> items, value.Integers(low, high));
    std::vector<T> all;
    all.reserve(items.size());
    for (const int64_t item : items) all.push_back(T(item));
    return all;
  }
  // An error, with "did you mean", if the object has a key that is not in `known`.
  Status CheckKeys(std::initializer_list<std::string_view> known) const;

 private:
  friend class JsonDocument;
  JsonValue(const class JsonDocument* document, const JsonNode* node) : document_(document), node_(node) {}
  Status WrongKind(std::string_view expected) const;

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
