#include "base/json/json_writer.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "base/status.h"
#include "base/strings.h"

namespace xccl {

void JsonWriter::Flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

void JsonWriter::Finish() {
  XCCL_CHECK(levels_.empty() && done_);
  buffer_ += '\n';
  Flush();
}

void JsonWriter::Separate() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.empty) buffer_ += ',';
  if (level.lines) {
    buffer_ += '\n';
    buffer_.append(levels_.size(), ' ');
  }
  level.empty = false;
}

void JsonWriter::BeforeValue() {
  XCCL_CHECK(!done_);
  if (levels_.empty()) {
    done_ = true;
  } else if (levels_.back().close == '}') {
    XCCL_CHECK(after_key_);
    after_key_ = false;
  } else {
    Separate();
  }
}

void JsonWriter::Key(std::string_view key) {
  XCCL_CHECK(!levels_.empty() && levels_.back().close == '}' && !after_key_);
  Separate();
  Quoted(key);
  Raw(":");
  after_key_ = true;
}

void JsonWriter::Begin(char open, char close, Layout layout) {
  BeforeValue();
  done_ = false;
  buffer_ += open;
  levels_.push_back(Level{close, layout == Layout::kLines});
}

void JsonWriter::End(char close) {
  XCCL_CHECK(!levels_.empty() && levels_.back().close == close && !after_key_);
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.lines && !level.empty) {
    buffer_ += '\n';
    buffer_.append(levels_.size(), ' ');
  }
  Raw(std::string_view(&close, 1));
  done_ = levels_.empty();
}

void JsonWriter::Integer(int64_t value) {
  BeforeValue();
  char text[24];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  Raw(std::string_view(text, static_cast<size_t>(end - text)));
}

void JsonWriter::Unsigned(uint64_t value) {
  BeforeValue();
  Raw(fmt::format("{}", value));
}

void JsonWriter::Number(double value) {
  XCCL_CHECK(std::isfinite(value));
  BeforeValue();
  Raw(fmt::format("{}", value));
}

void JsonWriter::Real(double value) {
  Number(value);
  if (value == std::trunc(value) && std::abs(value) < 1e15) Raw(".0");
}

void JsonWriter::Bool(bool value) {
  BeforeValue();
  Raw(value ? "true" : "false");
}

void JsonWriter::Null() {
  BeforeValue();
  Raw("null");
}

void JsonWriter::String(std::string_view value) {
  BeforeValue();
  Quoted(value);
}

void JsonWriter::Quoted(std::string_view text) {
  buffer_ += '"';
  while (!text.empty()) {
    const unsigned char c = static_cast<unsigned char>(text[0]);
    const size_t length = Utf8Length(text);
    if (c == '"' || c == '\\') {
      buffer_ += '\\';
      buffer_ += static_cast<char>(c);
    } else if (c == '\n') {
      buffer_ += "\\n";
    } else if (c < 0x20 || length == 0) {
      buffer_ += fmt::format("\\u{:04x}", c);
    } else {
      buffer_ += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(1, length));
  }
  Raw("\"");
}

}  // namespace xccl
