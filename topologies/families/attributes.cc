#include "topologies/families/attributes.h"

#include <fmt/core.h>

#include <algorithm>

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
  if (!text && !failed()) {
    Fail(fmt::format("no attribute '{}'; expected one", name));
    misses_ = true;
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
  if (text.starts_with('-'))
    return InvalidInput(fmt::format("'{}': below zero; expected zero or more", text));
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
  if (failed() && !misses_) return status_;
  // A misspelt name is more likely than a missing one, so unknown attributes are said first.
  for (const Attribute& attribute : attributes_)
    if (!Asked(attribute.first))
      return InvalidInput(fmt::format("{}: {}", element_, Unknown(attribute.first)));
  if (failed()) return status_;
  for (size_t i = 1; i < attributes_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (attributes_[i].first == attributes_[j].first)
        Fail(fmt::format("attribute '{}' twice; expected it once", attributes_[i].first));
  return status_;
}

bool AttributeReader::Asked(std::string_view name) const {
  return std::ranges::find(asked_, name) != asked_.end();
}

std::string AttributeReader::Unknown(std::string_view name) const {
  std::string text = fmt::format("unknown attribute '{}'", name);
  const std::string nearest = DidYouMean(name, asked_);
  if (!nearest.empty()) return text + nearest;
  std::vector<std::string> left;  // the known attributes that are not given
  for (const std::string_view known : asked_)
    if (std::ranges::find(attributes_, known, &Attribute::first) == attributes_.end() &&
        std::ranges::find(left, known) == left.end())
      left.emplace_back(known);
  return text + "; expected " + (left.empty() ? "no more attributes" : Either(left));
}

}  // namespace xccl
