// Named values as a user wrote them, in an XML element or a short form; read by name, with units. The
// reader keeps the first error, so that its user reads every value and checks once at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace xccl {

using Attribute = std::pair<std::string_view, std::string_view>;  // name, value; views of the user's text

// Appends the attributes of name=value,name=value. A part without '=' continues the value before it (one
// value per dimension). The texts are views of `text`.
Status ReadPairs(std::string_view text, std::vector<Attribute>& attributes);

class AttributeReader {
 public:
  // `element` opens the messages: "torus: bandwidth '50': no unit; ...".
  AttributeReader(std::string_view element, std::vector<Attribute> attributes)
      : element_(element), attributes_(std::move(attributes)) {}

  std::string_view element() const { return element_; }
  bool Has(std::string_view name);
  std::optional<std::string_view> Text(std::string_view name);
  // The attributes read by these functions are required: a missing one is the error "ELEMENT: no attribute
  // 'NAME'", unless Finish finds an unknown one.
  std::string_view RequiredText(std::string_view name);
  int64_t RequiredInteger(std::string_view name, int64_t low, int64_t high);
  int64_t RequiredBandwidth(std::string_view name);

  int64_t Integer(std::string_view name, int64_t low, int64_t high, int64_t otherwise);
  int64_t Bandwidth(std::string_view name, int64_t otherwise);
  int64_t Latency(std::string_view name, int64_t otherwise);
  bool Bool(std::string_view name, bool otherwise);

  // Keeps the first error: "ELEMENT: text".
  void Fail(std::string_view text);
  bool failed() const { return !status_.ok(); }
  // The names that were asked for so far.
  std::span<const std::string_view> asked() const { return asked_; }
  // The first error, or the first attribute that is given twice or that nothing read. An attribute that
  // nothing read comes before a missing one, and its message lists those that may be added. Requires: all
  // attributes of the element were asked for.
  Status Finish();

 private:
  template <typename Parse>
  int64_t Parsed(std::string_view name, int64_t otherwise, Parse parse);
  bool Asked(std::string_view name) const;
  std::string Unknown(std::string_view name) const;

  std::string element_;
  std::vector<Attribute> attributes_;
  std::vector<std::string_view> asked_;
  Status status_;
  bool misses_ = false;  // the first error is a missing attribute
};

}  // namespace xccl
