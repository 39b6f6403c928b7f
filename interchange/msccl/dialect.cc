// The parsers of msccl, its executor and RCCL have one origin: after `<NAME` they take NAME="VALUE" pairs, up
// to 16 of them, with one character between two. They have no prolog, no tabs, no entities and no tag of
// several lines.
#include "interchange/msccl/dialect.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace xccl::msccl {
namespace {

constexpr int32_t kMostAttributes = 16;

class Texts {
 public:
  Texts(std::string_view text, std::string_view name, std::vector<std::string>& warnings)
      : text_(text), name_(name), warnings_(warnings) {}

  void Check() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("<!--")) {
        const size_t end = text_.find("-->", at_);
        const size_t next = end == std::string_view::npos ? text_.size() : end + 3;
        line_ += static_cast<int32_t>(std::ranges::count(text_.substr(at_, next - at_), '\n'));
        at_ = next;
      } else {
        Character();
        ++at_;
      }
    }
  }

 private:
  enum Kind : uint8_t { kProlog, kTab, kBreak, kQuote, kEntity, kAttributes, kKinds };

  void Say(Kind kind, std::string_view what) {
    if (!said_[kind]) warnings_.push_back(fmt::format("{}:{}: {}", name_, line_, what));
    said_[kind] = true;
  }

  void Character() {
    const char c = text_[at_];
    if (c == '\t') Say(kTab, "a tab; the executors' parsers refuse it");
    if (c == '\n') {
      if (in_tag_ && quote_ == 0) Say(kBreak, "a tag of several lines; the executors' parsers refuse it");
      ++line_;
    } else if (quote_ != 0) {
      if (c == '&') Say(kEntity, "an entity; the executors' parsers take it as it is written");
      if (c == quote_) quote_ = 0;
    } else if (in_tag_) {
      if (c == '>') in_tag_ = false;
      if (c == '"' || c == '\'') quote_ = c;
      if (c == '\'') Say(kQuote, "single quotes; the executors' parsers expect double ones");
      if (c == ' ' && text_[at_ - 1] != '<') ++blanks_;
      if (blanks_ == kMostAttributes + 1)
        Say(kAttributes, "more than 16 attributes or blanks in a tag; the executors' parsers have no room");
    } else if (c == '<') {
      in_tag_ = true;
      blanks_ = 0;
      if (text_.substr(at_).starts_with("<?"))
        Say(kProlog, "<?xml ?> at the beginning; the executors' parsers refuse it");
    }
  }

  std::string_view text_, name_;
  std::vector<std::string>& warnings_;
  size_t at_ = 0;
  int32_t line_ = 1, blanks_ = 0;  // blanks of this tag
  bool in_tag_ = false;
  char quote_ = 0;  // that ends the value; 0: none
  bool said_[kKinds] = {};
};

// Several waits of a step are nops before it, and then it has to wait itself.
const FileStep* NopWithoutItsStep(const File& file) {
  for (const FileRank& rank : file.ranks)
    for (const FileBlock& block : rank.blocks)
      for (size_t s = 1; s < block.steps.size(); ++s) {
        const FileStep &nop = block.steps[s - 1], &step = block.steps[s];
        if (nop.op == Opcode::kNop && nop.wait_block >= 0 && step.wait_block < 0) return &step;
      }
  return nullptr;
}

const FileStep* StepOutOfOrder(const File& file) {
  for (const FileRank& rank : file.ranks)
    for (const FileBlock& block : rank.blocks)
      for (size_t s = 0; s < block.steps.size(); ++s)
        if (block.steps[s].number != static_cast<int32_t>(s)) return &block.steps[s];
  return nullptr;
}

}  // namespace

std::vector<std::string> DialectWarnings(std::string_view text, const File& file, std::string_view name) {
  std::vector<std::string> warnings;
  Texts(text, name, warnings).Check();
  if (const FileStep* const step = NopWithoutItsStep(file); step != nullptr)
    warnings.push_back(
        fmt::format("{}:{}: a step with depid=\"-1\" after a nop that waits; the executors refuse the file",
                    name, step->line));
  if (const FileStep* const step = StepOutOfOrder(file); step != nullptr)
    warnings.push_back(
        fmt::format("{}:{}: s=\"{}\" out of order; the executors, as is done here, count steps by their "
                    "place in the file",
                    name, step->line, step->number));
  for (const FileRank& rank : file.ranks)
    for (const FileBlock& block : rank.blocks)
      if (block.channel >= file.channels) {
        warnings.push_back(fmt::format("{}: chan=\"{}\" with nchannels=\"{}\"; the executors make {}", name,
                                       block.channel, file.channels, file.channels));
        return warnings;
      }
  return warnings;
}

}  // namespace xccl::msccl
