// libyaml turns the text into a flat stream of events. A stack holds the lists and maps that are open: an
// event adds a value to the innermost of them, or closes it. Nothing recurses over the text, and reading ends
// at the first event that breaks a limit.
#include "base/yaml/yaml.h"

#include <fmt/format.h>
#include <yaml.h>

#include <memory>
#include <set>
#include <utility>

#include "base/diagnostics.h"
#include "base/strings.h"

namespace xccl {
namespace {

constexpr size_t kMostBytes = size_t{16} << 20;
constexpr size_t kMostDepth = 64;

class Reader {
 public:
  Reader(std::string_view text, std::string_view file) : text_(text), file_(file) {
    XCCL_CHECK(yaml_parser_initialize(&parser_) == 1);
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Reader() { yaml_parser_delete(&parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  StatusOr<YamlNode> Read() {
    for (bool more = true; more;) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0) return NotYaml();
      const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> owner(&event, yaml_event_delete);
      more = event.type != YAML_STREAM_END_EVENT;
      XCCL_RETURN_IF_ERROR(Take(event));
    }
    return std::move(root_);
  }

 private:
  struct Open {
    YamlNode node;
    std::set<std::string> keys;
  };

  Status Error(const yaml_mark_t& mark, std::string_view text) const {
    return InvalidAt(Location{file_, static_cast<int>(mark.line + 1), static_cast<int>(mark.column + 1)},
                     text);
  }
  Status NotYaml() const {
    const std::string problem = parser_.problem == nullptr ? "it cannot be read" : parser_.problem;
    const std::string context = parser_.context == nullptr ? "" : fmt::format(" {}", parser_.context);
    const std::string what = fmt::format("not YAML: {}{}; expected YAML", problem, context);
    if (parser_.error == YAML_READER_ERROR)  // of a character: the mark is that of the token before it
      return InvalidAt(LocationOfOffset(file_, text_, parser_.problem_offset), what);
    return Error(parser_.problem_mark, what);
  }

  Status Take(const yaml_event_t& event) {
    const yaml_mark_t& mark = event.start_mark;
    YamlNode node;
    node.line = static_cast<int32_t>(mark.line + 1);
    node.column = static_cast<int32_t>(mark.column + 1);
    switch (event.type) {
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT:
        return OkStatus();
      case YAML_DOCUMENT_START_EVENT:
        if (documents_++ > 0) return Error(mark, "a second document; expected one in the file");
        return OkStatus();
      case YAML_ALIAS_EVENT:
        return Error(mark, "an alias; expected the value itself");
      case YAML_SCALAR_EVENT:
        node.text.assign(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
        return Add(std::move(node), mark);
      case YAML_SEQUENCE_START_EVENT:
        node.kind = YamlNode::Kind::kList;
        return Begin(std::move(node), mark);
      case YAML_MAPPING_START_EVENT:
        node.kind = YamlNode::Kind::kMap;
        return Begin(std::move(node), mark);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: {
        XCCL_CHECK(!open_.empty());
        YamlNode closed = std::move(open_.back().node);
        open_.pop_back();
        return Add(std::move(closed), mark);
      }
    }
    return OkStatus();
  }

  Status Begin(YamlNode node, const yaml_mark_t& mark) {
    if (open_.size() == kMostDepth)
      return Error(mark, fmt::format("nested deeper than {}; expected fewer levels", kMostDepth));
    open_.push_back({std::move(node), {}});
    return OkStatus();
  }

  Status Add(YamlNode node, const yaml_mark_t& mark) {
    if (open_.empty()) {
      root_ = std::move(node);
      return OkStatus();
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::kMap && parent.node.items.size() % 2 == 0) {
      if (node.kind != YamlNode::Kind::kScalar) return Error(mark, "a key that is no text; expected a text");
      if (!parent.keys.insert(node.text).second)
        return Error(mark,
                     fmt::format("the key '{}' a second time; expected it once", Cleaned(node.text, 80)));
    }
    parent.node.items.push_back(std::move(node));
    return OkStatus();
  }

  std::string_view text_;
  std::string file_;
  yaml_parser_t parser_;
  std::vector<Open> open_;
  YamlNode root_;
  int documents_ = 0;
};

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  if (kind != Kind::kMap) return nullptr;
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].text == key) return &items[i + 1];
  return nullptr;
}

StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view file) {
  if (text.size() > kMostBytes)
    return InvalidInput(fmt::format("{}: {} bytes; expected at most 16 MiB of YAML", file, text.size()));
  return Reader(text, file).Read();
}

}  // namespace xccl
