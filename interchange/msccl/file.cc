#include "interchange/msccl/file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <pugixml.hpp>
#include <span>

#include "base/diagnostics.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/xml/parse_xml.h"

namespace xccl::msccl {
namespace {

constexpr std::array<std::string_view, 9> kTypes = {"s",    "r",   "rcs", "rrs", "rrc",
                                                    "rrcs", "cpy", "re",  "nop"};  // by Opcode
constexpr std::array<std::string_view, 3> kBuffers = {"i", "o", "s"};              // by BufferKind
constexpr std::array<std::string_view, 3> kProtocols = {"Simple", "LL", "LL128"};  // by Protocol
constexpr int32_t kMostRanks = 1024;    // children of an XML element
constexpr int32_t kMostChunks = 32767;  // offsets have 16 bits
constexpr int32_t kMostChannels = 256;  // more than any executor has

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  StatusOr<File> Read() {
    pugi::xml_document document;
    XCCL_RETURN_IF_ERROR(ParseXml(text_, name_, "algo", document));
    const pugi::xml_node algo = document.document_element();
    if (std::string_view(algo.name()) != "algo")
      return At(algo, fmt::format("<{}>; expected <algo>", algo.name()));
    File file;
    int32_t ranks = 0;
    XCCL_RETURN_IF_ERROR(Number(algo, "ngpus", 1, kMostRanks, ranks));
    XCCL_RETURN_IF_ERROR(Number(algo, "nchunksperloop", 1, kMostChunks, file.chunks_per_loop));
    XCCL_RETURN_IF_ERROR(Number(algo, "nchannels", 1, kMostChannels, file.channels));
    size_t protocol = 0;
    XCCL_RETURN_IF_ERROR(Name(algo, "proto", kProtocols, protocol));
    file.protocol = static_cast<Protocol>(protocol);
    file.name = algo.attribute("name").value();
    file.collective = algo.attribute("coll").value();
    XCCL_RETURN_IF_ERROR(OptionalNumber(algo, "minBytes", file.min_bytes));
    XCCL_RETURN_IF_ERROR(OptionalNumber(algo, "maxBytes", file.max_bytes));
    if (file.max_bytes > 0 && file.max_bytes < file.min_bytes)
      return At(
          algo,
          fmt::format("minBytes=\"{}\" and maxBytes=\"{}\"; expected the second to be as large as the first",
                      file.min_bytes, file.max_bytes));
    XCCL_RETURN_IF_ERROR(Number(algo, "inplace", 0, 1, file.in_place));
    file.out_of_place = !file.in_place;
    if (algo.attribute("outofplace"))
      XCCL_RETURN_IF_ERROR(Number(algo, "outofplace", 0, 1, file.out_of_place));
    file.ranks.resize(static_cast<size_t>(ranks));
    std::vector<bool> seen(file.ranks.size());
    for (const pugi::xml_node gpu : algo.children("gpu")) {
      int32_t id = 0;
      XCCL_RETURN_IF_ERROR(Number(gpu, "id", 0, ranks - 1, id));
      if (seen[static_cast<size_t>(id)]) return At(gpu, fmt::format("a second gpu {}", id));
      seen[static_cast<size_t>(id)] = true;
      XCCL_RETURN_IF_ERROR(ReadRank(gpu, id, ranks, file.ranks[static_cast<size_t>(id)]));
    }
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end())
      return At(algo, fmt::format("no gpu {}; expected {} of them", missing - seen.begin(), ranks));
    return file;
  }

 private:
  Status At(pugi::xml_node node, std::string_view message) const {
    const auto offset = static_cast<size_t>(std::max<ptrdiff_t>(1, node.offset_debug()) - 1);
    return InvalidAt(LocationOfOffset(name_, text_, offset), message);
  }
  // Steps come in the order of the file, so lines are counted once.
  int32_t LineOf(pugi::xml_node node) {
    const auto offset = static_cast<size_t>(std::max<ptrdiff_t>(0, node.offset_debug()));
    line_ += static_cast<int32_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(counted_),
                                             text_.begin() + static_cast<ptrdiff_t>(offset), '\n'));
    counted_ = offset;
    return line_;
  }

  template <typename T>
  Status Number(pugi::xml_node node, const char* attribute, int64_t low, int64_t high, T& out) const {
    const std::string_view text = node.attribute(attribute).value();
    const StatusOr<int64_t> value = ParseInteger(text, low, high);
    if (!value.ok())
      return At(node, fmt::format("{}=\"{}\"; expected {}..{}", attribute, Shortened(text), low, high));
    out = static_cast<T>(*value);
    return OkStatus();
  }

  Status OptionalNumber(pugi::xml_node node, const char* attribute, int64_t& out) const {
    if (!node.attribute(attribute)) return OkStatus();
    return Number(node, attribute, 0, std::numeric_limits<int64_t>::max(), out);
  }

  Status Name(pugi::xml_node node, const char* attribute, std::span<const std::string_view> known,
              size_t& out) const {
    const std::string_view text = node.attribute(attribute).value();
    const auto found = std::ranges::find(known, text);
    if (found == known.end())
      return At(node, fmt::format("{}=\"{}\"; expected one of {}", attribute, Shortened(text),
                                  Join(std::vector<std::string>(known.begin(), known.end()), ", ")));
    out = static_cast<size_t>(found - known.begin());
    return OkStatus();
  }

  Status ReadRank(pugi::xml_node gpu, int32_t rank, int32_t ranks, FileRank& out) {
    XCCL_RETURN_IF_ERROR(Number(gpu, "i_chunks", 0, kMostChunks, out.input));
    XCCL_RETURN_IF_ERROR(Number(gpu, "o_chunks", 0, kMostChunks, out.output));
    XCCL_RETURN_IF_ERROR(Number(gpu, "s_chunks", 0, kMostChunks, out.scratch));
    const auto blocks = static_cast<int32_t>(std::ranges::distance(gpu.children("tb")));
    out.blocks.resize(static_cast<size_t>(blocks));
    std::vector<bool> seen(out.blocks.size());
    for (const pugi::xml_node tb : gpu.children("tb")) {
      int32_t id = 0;
      XCCL_RETURN_IF_ERROR(Number(tb, "id", 0, blocks - 1, id));
      if (seen[static_cast<size_t>(id)]) return At(tb, fmt::format("a second tb {} of gpu {}", id, rank));
      seen[static_cast<size_t>(id)] = true;
      FileBlock& block = out.blocks[static_cast<size_t>(id)];
      XCCL_RETURN_IF_ERROR(Number(tb, "send", -1, ranks - 1, block.send));
      XCCL_RETURN_IF_ERROR(Number(tb, "recv", -1, ranks - 1, block.recv));
      XCCL_RETURN_IF_ERROR(Number(tb, "chan", 0, kMostChannels - 1, block.channel));
      XCCL_RETURN_IF_ERROR(ReadLinks(tb, block.links));
      for (const pugi::xml_node step : tb.children("step"))
        XCCL_RETURN_IF_ERROR(ReadStep(step, blocks, block.steps.emplace_back()));
    }
    return OkStatus();
  }

  // An attribute of our own, at which no executor looks.
  Status ReadLinks(pugi::xml_node tb, std::vector<LinkId>& out) const {
    const std::string_view text = tb.attribute("links").value();
    if (text.empty()) return OkStatus();
    for (const std::string& number : Split(text, ',')) {
      const StatusOr<int64_t> link = ParseInteger(number, 0, std::numeric_limits<int32_t>::max());
      if (!link.ok())
        return At(tb, fmt::format("links=\"{}\"; expected numbers of links with commas between them",
                                  Shortened(text)));
      out.emplace_back(*link);
    }
    return OkStatus();
  }

  Status ReadOperand(pugi::xml_node node, const char* buffer, const char* offset, Operand& out) const {
    size_t kind = 0;
    XCCL_RETURN_IF_ERROR(Name(node, buffer, kBuffers, kind));
    out.buffer = static_cast<BufferKind>(kind);
    return Number(node, offset, 0, kMostChunks, out.slot);
  }

  Status ReadStep(pugi::xml_node node, int32_t blocks, FileStep& step) {
    step.line = LineOf(node);
    step.number = node.attribute("s").as_int(-1);
    size_t type = 0;
    XCCL_RETURN_IF_ERROR(Name(node, "type", kTypes, type));
    step.op = static_cast<Opcode>(type);
    if (ReadsSource(step.op)) XCCL_RETURN_IF_ERROR(ReadOperand(node, "srcbuf", "srcoff", step.src));
    if (WritesDestination(step.op)) XCCL_RETURN_IF_ERROR(ReadOperand(node, "dstbuf", "dstoff", step.dst));
    if (step.op != Opcode::kNop) XCCL_RETURN_IF_ERROR(Number(node, "cnt", 1, kMostChunks, step.count));
    XCCL_RETURN_IF_ERROR(Number(node, "depid", -1, blocks - 1, step.wait_block));
    if (step.wait_block >= 0) XCCL_RETURN_IF_ERROR(Number(node, "deps", 0, kMostChunks, step.wait_step));
    return Number(node, "hasdep", 0, 1, step.posts);
  }

  std::string_view text_, name_;
  size_t counted_ = 0;
  int32_t line_ = 1;
};

}  // namespace

StatusOr<File> ReadFile(std::string_view text, std::string_view name) { return Parser(text, name).Read(); }

}  // namespace xccl::msccl
