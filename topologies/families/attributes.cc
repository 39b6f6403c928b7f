#include "topologies/families/attributes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {

Status ReadPairs(std::string_view text, std::vector<Attribute>& attributes) {
  while (!text.empty()) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return InvalidInput(fmt::format("'{}': expected name=value", text));
    size_t end = text.size();
    if (const size_t next = text.find('=', equals + 1); next != std::string_view::npos) {
      end = text.rfind(',', next);
      if (end <= equals || end == std::string_view::npos)
        return InvalidInput(fmt::format("'{}': expected name=value", text));
    }
    attributes.emplace_back(text.substr(0, equals), text.substr(equals + 1, end - equals - 1));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return OkStatus();
}

std::optional<std::string_view> AttributeReader::Text(std::string_view name) {
  asked_.push_back(name);
  for (const Attribute& attribute : attributes_)
    if (attribute.first == name) return attribute.second;
  return std::nullopt;
}

bool AttributeReader::Has(std::string_view name) { return Text(name).has_value(); }

void AttributeReader::Fail(std::string_view text) {
  if (status_.ok()) status_ = InvalidInput(fmt::format("{}: {}", element_, text));
}

std::string_view AttributeReader::RequiredText(std::string_view name) {
  const std::optional<std::string_view> text = Text(name);
  if (!text) {
    // A misspelt name is more likely than a missing one.
    for (const Attribute& attribute : attributes_)
      if (NearestName(attribute.first, std::array{name}) == name)
        Fail(fmt::format("unknown attribute '{}'; did you mean '{}'?", attribute.first, name));
    Fail(fmt::format("no attribute '{}'", name));
  }
  return text.value_or("");
}

int64_t AttributeReader::RequiredInteger(std::string_view name, int64_t low, int64_t high) {
  RequiredText(name);
  return Integer(name, low, high, low);
}

int64_t AttributeReader::RequiredBandwidth(std::string_view name) {
  RequiredText(name);
  return Bandwidth(name, 1);
}

template <typename Parse>
int64_t AttributeReader::Parsed(std::string_view name, int64_t otherwise, Parse parse) {
  const std::optional<std::string_view> text = Text(name);
  if (!text) return otherwise;
  const StatusOr<int64_t> value = parse(*text);
  if (!value.ok()) Fail(fmt::format("{} {}", name, value.status().message()));
  return value.ok() ? *value : otherwise;
}

namespace {

template <StatusOr<int64_t> (*parse)(std::string_view)>
StatusOr<int64_t> NotNegative(std::string_view text) {
  if (text.starts_with('-')) return InvalidInput(fmt::format("'{}': below zero", text));
  return parse(text);
}

}  // namespace

int64_t AttributeReader::Integer(std::string_view name, int64_t low, int64_t high, int64_t otherwise) {
  return Parsed(name, otherwise, [&](std::string_view text) { return ParseInteger(text, low, high); });
}

int64_t AttributeReader::Bandwidth(std::string_view name, int64_t otherwise) {
  return Parsed(name, otherwise, NotNegative<ParseBandwidth>);
}

int64_t AttributeReader::Latency(std::string_view name, int64_t otherwise) {
  return Parsed(name, otherwise, NotNegative<ParseLatency>);
}

bool AttributeReader::Bool(std::string_view name, bool otherwise) {
  const std::optional<std::string_view> text = Text(name);
  if (!text) return otherwise;
  if (*text != "true" && *text != "false") Fail(fmt::format("{} '{}': expected true or false", name, *text));
  return *text == "true";
}

Status AttributeReader::Finish() {
  constexpr size_t kMost = 64;  // far above what any element has; the checks below are quadratic
  if (attributes_.size() > kMost) Fail(fmt::format("{} attributes", attributes_.size()));
  if (failed()) return status_;
  for (size_t i = 1; i < attributes_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (attributes_[i].first == attributes_[j].first)
        Fail(fmt::format("attribute '{}' twice", attributes_[i].first));
  for (const Attribute& attribute : attributes_) {
    if (std::find(asked_.begin(), asked_.end(), attribute.first) != asked_.end()) continue;
    Fail(fmt::format("unknown attribute '{}'{}", attribute.first, DidYouMean(attribute.first, asked_)));
  }
  return status_;
}

}  // namespace xccl
