#include "interchange/traces/printed_sends.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <span>
#include <utility>
#include <variant>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace {

// No tool prints more; sums of weights stay far within 64 bits.
constexpr int64_t kMostWeight = int64_t{1} << 30;
constexpr int64_t kMostPrintedRanks = 1 << 16;

// Which (rank, chunk) was delivered where; finds a second delivery.
class Deliveries {
 public:
  // The line of an earlier delivery, or 0.
  int32_t Add(const PrintedSend& send) {
    const auto [at, added] = lines_.try_emplace({send.dst, send.chunk}, send.line);
    return added ? 0 : at->second;
  }

 private:
  std::map<std::pair<Rank, ChunkId>, int32_t> lines_;
};

// A name of a node as numbers and texts, in which order compares: Python prints tuples of both.
using NamePart = std::variant<int64_t, std::string>;
std::vector<NamePart> PartsOfName(std::string_view name) {
  std::vector<NamePart> parts;
  const std::string_view inner =
      name.size() >= 2 && name.front() == '(' && name.back() == ')' ? name.substr(1, name.size() - 2) : name;
  for (const std::string& field : Split(inner, ',')) {
    const std::string_view text = Trim(field);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size())
      parts.emplace_back(number);
    else
      parts.emplace_back(std::string(text));
  }
  return parts;
}

class ForestCollReader {
 public:
  ForestCollReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  StatusOr<PrintedSends> Read() {
    pugi::xml_document document;
    XCCL_RETURN_IF_ERROR(ParseXml(text_, file_, "Algo", document));
    const pugi::xml_node algo = document.document_element();
    if (std::string_view(algo.name()) != "Algo")
      return At(algo, fmt::format("<{}>; expected <Algo>", algo.name()));
    XCCL_RETURN_IF_ERROR(NameRanks(algo));
    XCCL_RETURN_IF_ERROR(ReadTrees(algo));
    for (const pugi::xml_node tree : algo.children("tree")) XCCL_RETURN_IF_ERROR(ReadSends(tree));
    return std::move(made_);
  }

 private:
  Status At(pugi::xml_node node, std::string_view message) const {
    const auto offset = static_cast<size_t>(std::max<ptrdiff_t>(1, node.offset_debug()) - 1);
    return InvalidAt(LocationOfOffset(file_, text_, offset), message);
  }

  // Every rank is the root of a tree.
  Status NameRanks(pugi::xml_node algo) {
    for (const pugi::xml_node tree : algo.children("tree")) {
      const std::string_view root = tree.attribute("root").value();
      if (root.empty()) return At(tree, "a tree without root=\"...\"");
      ranks_.try_emplace(PartsOfName(root), Rank(0));
    }
    if (ranks_.empty()) return At(algo, "no <tree>");
    if (std::ssize(ranks_) > kMostPrintedRanks)
      return At(algo, fmt::format("{} roots; expected {} at most", ranks_.size(), kMostPrintedRanks));
    for (auto& [name, rank] : ranks_) rank = Rank(made_.ranks++);
    made_.tool = "forestcoll";
    made_.format = "ForestColl XML";
    made_.weights.resize(ranks_.size());
    return OkStatus();
  }

  StatusOr<Rank> RankOf(pugi::xml_node node, const char* attribute) const {
    const std::string_view name = node.attribute(attribute).value();
    const auto found = ranks_.find(PartsOfName(name));
    if (found == ranks_.end())
      return At(node, fmt::format("{}=\"{}\"; expected the root of a tree", attribute, Shortened(name)));
    return found->second;
  }

  // A tree is a chunk of its root, of a size in proportion to nchunks.
  Status ReadTrees(pugi::xml_node algo) {
    for (const pugi::xml_node tree : algo.children("tree")) {
      XCCL_ASSIGN_OR_RETURN(const Rank root, RankOf(tree, "root"));
      const std::string_view text = tree.attribute("nchunks").value();
      const StatusOr<int64_t> weight = ParseInteger(text, 1, kMostWeight);
      if (!weight.ok())
        return At(tree, fmt::format("nchunks=\"{}\"; expected 1..{}", Shortened(text), kMostWeight));
      made_.weights[root.index()].push_back(*weight);
    }
    first_.push_back(0);
    for (const auto& weights : made_.weights)
      first_.push_back(first_.back() + static_cast<int32_t>(weights.size()));
    next_.assign(first_.begin(), first_.end() - 1);
    return OkStatus();
  }

  Status ReadSends(pugi::xml_node tree) {
    XCCL_ASSIGN_OR_RETURN(const Rank root, RankOf(tree, "root"));
    const ChunkId chunk(next_[root.index()]++);
    for (const pugi::xml_node node : tree.children("send")) {
      XCCL_ASSIGN_OR_RETURN(const Rank src, RankOf(node, "src"));
      XCCL_ASSIGN_OR_RETURN(const Rank dst, RankOf(node, "dst"));
      const PrintedSend send{.src = src, .dst = dst, .chunk = chunk, .line = LineOf(node)};
      if (src == dst || dst == root)
        return At(node, fmt::format("a send to {}", src == dst ? "its own sender" : "the root of its tree"));
      if (const int32_t earlier = deliveries_.Add(send); earlier != 0)
        return At(node, fmt::format("dst=\"{}\" is reached twice, in line {} too",
                                    node.attribute("dst").value(), earlier));
      made_.sends.push_back(send);
    }
    return OkStatus();
  }

  // Sends come in the order of the file, so lines are counted once.
  int32_t LineOf(pugi::xml_node node) {
    const auto offset = static_cast<size_t>(std::max<ptrdiff_t>(0, node.offset_debug()));
    line_ += static_cast<int32_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(counted_),
                                             text_.begin() + static_cast<ptrdiff_t>(offset), '\n'));
    counted_ = offset;
    return line_;
  }

  std::string_view text_, file_;
  std::map<std::vector<NamePart>, Rank> ranks_;
  std::vector<int32_t> first_, next_;  // by rank: chunk ids
  Deliveries deliveries_;
  PrintedSends made_;
  size_t counted_ = 0;
  int32_t line_ = 1;
};

class TacosReader {
 public:
  TacosReader(std::string_view text, std::string_view file)
      : lines_(Split(text, '\n')), file_(file), commas_(std::ranges::count(text, ',')) {}

  StatusOr<PrintedSends> Read() {
    int64_t ranks = 0, links = 0, chunks = 0;
    XCCL_RETURN_IF_ERROR(Count("NPUs Count", 2, kMostPrintedRanks, ranks));
    XCCL_RETURN_IF_ERROR(Count("Links Count", 1, kMostPrintedRanks * kMostPrintedRanks, links));
    XCCL_RETURN_IF_ERROR(Count("Chunks Count", 1, commas_, chunks));
    if (chunks % ranks != 0)
      return At(fmt::format("Chunks Count {}; expected a multiple of the {} NPUs", chunks, ranks));
    for (const std::string_view skipped : {"Chunk Size,", "SrcID,DestID,"})
      if (!Next().starts_with(skipped)) return At(fmt::format("expected '{}...'", skipped));
    made_.tool = "tacos";
    made_.format = "TACOS CSV";
    made_.ranks = static_cast<int32_t>(ranks);
    made_.links_in_order = true;
    chunks_of_rank_ = static_cast<int32_t>(chunks / ranks);
    made_.weights.assign(static_cast<size_t>(ranks),
                         std::vector<int64_t>(static_cast<size_t>(chunks_of_rank_), 1));
    for (int64_t i = 0; i < links; ++i) XCCL_RETURN_IF_ERROR(ReadLink(Next()));
    while (line_ < lines_.size())
      if (!Next().empty()) return At(fmt::format("a line after the last of {} links", links));
    return std::move(made_);
  }

 private:
  std::string_view Next() {
    if (line_ == lines_.size()) return {};
    return Trim(lines_[line_++]);
  }
  Status At(std::string_view message) const {
    return InvalidInput(fmt::format("{}:{}: {}", file_, line_, message));
  }

  Status Count(std::string_view name, int64_t low, int64_t high, int64_t& out) {
    const std::string_view line = Next();
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ',')
      if (const StatusOr<int64_t> value = ParseInteger(line.substr(name.size() + 1), low, high); value.ok()) {
        out = *value;
        return OkStatus();
      }
    return At(fmt::format("'{}'; expected '{},' and {}..{}", Shortened(line), name, low, high));
  }

  // SrcID,DestID,latency,bandwidth and the chunks in the order in which the link carries them, or None.
  Status ReadLink(std::string_view line) {
    constexpr size_t kFirstChunk = 4;
    const std::vector<std::string> fields = Split(line, ',');
    if (fields.size() <= kFirstChunk)
      return At(fmt::format("'{}'; expected source, destination, latency, bandwidth and chunks or None",
                            Shortened(line)));
    int64_t src = 0, dst = 0;
    XCCL_RETURN_IF_ERROR(Field("source", fields[0], made_.ranks, src));
    XCCL_RETURN_IF_ERROR(Field("destination", fields[1], made_.ranks, dst));
    if (src == dst) return At(fmt::format("a link from {} to itself; expected another end", src));
    if (fields.size() == kFirstChunk + 1 && Trim(fields.back()) == "None") return OkStatus();
    for (const std::string& field : std::span(fields).subspan(kFirstChunk)) {
      int64_t printed = 0;
      XCCL_RETURN_IF_ERROR(Field("chunk", field, int64_t{chunks_of_rank_} * made_.ranks, printed));
      const int64_t owner = printed % made_.ranks;
      if (owner == dst) return At(fmt::format("chunk {} to rank {}, which begins with it", printed, dst));
      const PrintedSend send{
          .src = Rank(static_cast<int32_t>(src)),
          .dst = Rank(static_cast<int32_t>(dst)),
          .chunk = ChunkId(static_cast<int32_t>(owner * chunks_of_rank_ + printed / made_.ranks)),
          .line = static_cast<int32_t>(line_)};
      if (const int32_t earlier = deliveries_.Add(send); earlier != 0)
        return At(fmt::format("chunk {} to rank {} twice, in line {} too", printed, dst, earlier));
      made_.sends.push_back(send);
    }
    return OkStatus();
  }

  Status Field(std::string_view what, std::string_view text, int64_t end, int64_t& out) const {
    const StatusOr<int64_t> value = ParseInteger(Trim(text), 0, end - 1);
    if (!value.ok()) return At(fmt::format("{} '{}'; expected 0..{}", what, Shortened(Trim(text)), end - 1));
    out = *value;
    return OkStatus();
  }

  std::vector<std::string> lines_;
  std::string_view file_;
  int64_t commas_;   // no file lists more chunks
  size_t line_ = 0;  // lines read; that of the last one, from 1
  int32_t chunks_of_rank_ = 0;
  Deliveries deliveries_;
  PrintedSends made_;
};

}  // namespace

std::optional<StatusOr<PrintedSends>> ReadPrintedSends(std::string_view text, std::string_view file) {
  const std::string_view begin = Trim(text.substr(0, std::min<size_t>(text.size(), 1000)));
  if (begin.starts_with("<Algo")) return ReadForestCollXml(text, file);
  if (begin.starts_with("NPUs Count")) return ReadTacosCsv(text, file);
  return std::nullopt;
}

StatusOr<PrintedSends> ReadForestCollXml(std::string_view text, std::string_view file) {
  return ForestCollReader(text, file).Read();
}

StatusOr<PrintedSends> ReadTacosCsv(std::string_view text, std::string_view file) {
  return TacosReader(text, file).Read();
}

}  // namespace xccl
