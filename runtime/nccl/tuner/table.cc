// Both formats fill a row through the same function, one field at a time; they differ in how a line is cut
// into fields, in a few names, and in -1, which stands for an absent field in a list. The file uses no
// library beside the C++ one, since the plugin is loaded into containers that have nothing else.
#include "runtime/nccl/tuner/table.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/diagnostics.h"
#include "base/strings.h"

namespace xccl::nccl_tuner {
namespace {

constexpr std::string_view kFormatName = "xccl-tuner";
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

// The fields of a row in the order of a list; the last is in our own format only.
enum class Key {
  kCollective,
  kMinBytes,
  kMaxBytes,
  kAlgorithm,
  kProtocol,
  kChannels,
  kNodes,
  kRanks,
  kPipeOps,
  kRegistered,
  kChunkBytes
};
constexpr std::array<std::string_view, 11> kKeys = {"collective", "min_bytes",  "max_bytes",  "algorithm",
                                                    "protocol",   "channels",   "nodes",      "ranks",
                                                    "pipe_ops",   "registered", "chunk_bytes"};
constexpr size_t kListFieldsLeast = 8, kListFieldsMost = 10;

constexpr std::array<std::string_view, kNumCollectives> kCollectives = {"broadcast", "reduce", "allgather",
                                                                        "reduce_scatter", "allreduce"};
constexpr std::array<std::string_view, kNumCollectives> kListCollectives = {
    "broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
constexpr std::array<std::string_view, kNumAlgorithms> kAlgorithms = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, kNumProtocols> kProtocols = {"ll", "ll128", "simple"};

enum class Format { kOwn, kList };

struct Field {
  std::string_view text;
  int column;  // from 1
};

std::string Quoted(std::string_view text) { return "'" + Shortened(text) + "'"; }

template <typename T>
Status SetName(T& target, std::string_view what, std::string_view text,
               std::span<const std::string_view> known) {
  XCCL_ASSIGN_OR_RETURN(const size_t index, IndexOfName(what, Shortened(text), known));
  target = static_cast<T>(index);
  return OkStatus();
}

StatusOr<uint64_t> Number(std::string_view key, std::string_view text, uint64_t low, uint64_t high,
                          bool or_absent) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return value;
  return InvalidInput(std::string(key) + " " + Quoted(text) + "; expected a whole number from " +
                      std::to_string(low) + " to " + std::to_string(high) + (or_absent ? ", or -1" : ""));
}

template <typename T>
Status SetNumber(std::optional<T>& target, Key key, std::string_view text, int64_t low, int64_t high,
                 Format format) {
  const bool list = format == Format::kList;
  if (list && text == "-1") return OkStatus();
  XCCL_ASSIGN_OR_RETURN(const uint64_t value, Number(kKeys[static_cast<size_t>(key)], text, low, high, list));
  target = static_cast<T>(value);
  return OkStatus();
}

Status SetRegistered(Row& row, std::string_view text, Format format) {
  const bool list = format == Format::kList;
  if (list && text == "-1") return OkStatus();
  const std::string_view no = list ? "0" : "no", yes = list ? "1" : "yes";
  if (text != no && text != yes)
    return InvalidInput("registered " + Quoted(text) + "; expected " + (list ? "0, 1 or -1" : "yes or no"));
  row.registered = text == yes;
  return OkStatus();
}

Status Set(Row& row, Key key, std::string_view text, Format format) {
  // The largest size that a list can name; it is what C's strtoull makes of -1, and stands for no limit.
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max();
  const bool list = format == Format::kList;
  switch (key) {
    case Key::kCollective:
      return SetName(row.collective, "collective", text, list ? kListCollectives : kCollectives);
    case Key::kMinBytes: {
      XCCL_ASSIGN_OR_RETURN(const uint64_t value, Number("min_bytes", text, 0, kMostBytes, false));
      row.min_bytes = static_cast<int64_t>(value);
      return OkStatus();
    }
    case Key::kMaxBytes: {
      if (list && text == "-1") return OkStatus();
      XCCL_ASSIGN_OR_RETURN(const uint64_t value, Number("max_bytes", text, 0, kMost, list));
      row.max_bytes = static_cast<int64_t>(std::min<uint64_t>(value, kMostBytes));
      return OkStatus();
    }
    case Key::kAlgorithm:
      return SetName(row.algorithm, "algorithm", text, kAlgorithms);
    case Key::kProtocol:
      return SetName(row.protocol, "protocol", text, kProtocols);
    case Key::kChannels:
      return SetNumber(row.channels, key, text, 1, kMaxChannels, format);
    case Key::kNodes:
      return SetNumber(row.nodes, key, text, 1, kMaxInt, format);
    case Key::kRanks:
      return SetNumber(row.ranks, key, text, 1, kMaxInt, format);
    case Key::kPipeOps:
      return SetNumber(row.pipe_ops, key, text, 1, kMaxInt, format);
    case Key::kRegistered:
      return SetRegistered(row, text, format);
    case Key::kChunkBytes:
      return SetNumber(row.chunk_bytes, key, text, kChunkUnitBytes, kMaxChunkBytes, format);
  }
  return BugError("a key of no row");
}

using Columns = std::array<int, kKeys.size()>;  // where a row's fields stand; 0: not given

// Checks the conditions on several fields of a row together.
Status CheckTogether(const Row& row, const Columns& columns, const Location& at) {
  const auto wrong = [&](Key key, const std::string& what) {
    return InvalidAt({at.file, at.line, columns[static_cast<size_t>(key)]}, what);
  };
  if (row.min_bytes > row.max_bytes)
    return wrong(Key::kMinBytes, "min_bytes " + std::to_string(row.min_bytes) +
                                     "; expected at most max_bytes, " + std::to_string(row.max_bytes));
  if (!row.chunk_bytes) return OkStatus();
  if (*row.chunk_bytes % kChunkUnitBytes != 0)
    return wrong(Key::kChunkBytes, "chunk_bytes " + std::to_string(*row.chunk_bytes) +
                                       "; expected a multiple of " + std::to_string(kChunkUnitBytes));
  if (row.protocol != Protocol::kSimple)
    return wrong(Key::kChunkBytes, "chunk_bytes; expected with protocol=simple only");
  if (row.pipe_ops || row.registered)
    return wrong(Key::kChunkBytes,
                 "chunk_bytes with pipe_ops or registered; expected without, as NCCL asks for chunks without "
                 "saying these");
  return OkStatus();
}

// Has NCCL kernels for what the row chooses?
Status CheckHasKernels(const Row& row, const Columns& columns, const Location& at) {
  if (HasKernels(row.collective, row.algorithm, row.protocol)) return OkStatus();
  return InvalidAt({at.file, at.line, columns[static_cast<size_t>(Key::kAlgorithm)]},
                   std::string(kCollectives[static_cast<size_t>(row.collective)]) + " by " +
                       std::string(kAlgorithms[static_cast<size_t>(row.algorithm)]) + ", " +
                       std::string(kProtocols[static_cast<size_t>(row.protocol)]) +
                       "; expected a combination that NCCL has");
}

// Without a row where NCCL has no kernels for it, which NVIDIA's own example has; a note says so.
StatusOr<std::optional<Row>> ReadListRow(std::string_view line, const Location& at,
                                         std::vector<std::string>* notes) {
  std::vector<Field> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    const std::string_view text = Trim(line.substr(begin, end - begin));
    const size_t offset = text.empty() ? begin : static_cast<size_t>(text.data() - line.data());
    fields.push_back({text, static_cast<int>(offset) + 1});
    begin = end + 1;
  }
  if (fields.size() < kListFieldsLeast || fields.size() > kListFieldsMost)
    return InvalidAt(at, std::to_string(fields.size()) +
                             " fields; expected 8 to 10: collective,min_bytes,max_bytes,algorithm,protocol,"
                             "channels,nodes,ranks[,pipe_ops[,registered]]");
  Row row;
  Columns columns = {};
  for (size_t i = 0; i < fields.size(); ++i) {
    columns[i] = fields[i].column;
    if (const Status set = Set(row, static_cast<Key>(i), fields[i].text, Format::kList); !set.ok())
      return InvalidAt({at.file, at.line, fields[i].column}, set.message());
  }
  XCCL_RETURN_IF_ERROR(CheckTogether(row, columns, at));
  if (const Status kernels = CheckHasKernels(row, columns, at); !kernels.ok()) {
    if (notes != nullptr) notes->push_back(kernels.message() + "; the row is left out");
    return std::optional<Row>();
  }
  return std::optional(row);
}

// The words of a line up to a '#'.
std::vector<Field> FieldsOf(std::string_view line) {
  std::vector<Field> fields;
  for (const std::string_view word : WordsOf(line.substr(0, line.find('#'))))
    fields.push_back({word, static_cast<int>(word.data() - line.data()) + 1});
  return fields;
}

StatusOr<Row> ReadOwnRow(std::span<const Field> words, const Location& at) {
  Row row;
  Columns columns = {};
  for (const Field& word : words) {
    const Location here = {at.file, at.line, word.column};
    size_t key = 0;
    std::string_view value = word.text;
    if (&word != &words.front()) {
      const size_t equals = word.text.find('=');
      if (equals == std::string_view::npos)
        return InvalidAt(here, Quoted(word.text) + "; expected key=value");
      const auto keys = std::span(kKeys).subspan(1);
      const StatusOr<size_t> known = IndexOfName("key", Shortened(word.text.substr(0, equals)), keys);
      if (!known.ok()) return InvalidAt(here, known.status().message());
      key = *known + 1;
      value = word.text.substr(equals + 1);
    }
    if (columns[key] > 0) return InvalidAt(here, "a second " + std::string(kKeys[key]) + "; expected one");
    columns[key] = word.column;
    if (const Status set = Set(row, static_cast<Key>(key), value, Format::kOwn); !set.ok())
      return InvalidAt(here, set.message());
  }
  for (const Key key : {Key::kAlgorithm, Key::kProtocol})
    if (const size_t index = static_cast<size_t>(key); columns[index] == 0)
      return InvalidAt(at, "no " + std::string(kKeys[index]) + "; expected " + std::string(kKeys[index]) +
                               "=" + (key == Key::kAlgorithm ? "ring, for example" : "ll, ll128 or simple"));
  XCCL_RETURN_IF_ERROR(CheckHasKernels(row, columns, at));
  XCCL_RETURN_IF_ERROR(CheckTogether(row, columns, at));
  return row;
}

// The first line of our own format; kList where it is another one.
StatusOr<Format> FormatOf(std::string_view first_line, const std::string& file) {
  const std::vector<Field> words = FieldsOf(first_line);
  if (words.empty() || words[0].text != kFormatName) return Format::kList;
  if (words.size() != 2 || words[1].text != "1")
    return InvalidAt({file, 1, words.size() > 1 ? words[1].column : words[0].column},
                     "another version of the format; expected 'xccl-tuner 1'");
  return Format::kOwn;
}

}  // namespace

std::string_view ToString(Algorithm algorithm) { return kAlgorithms[static_cast<size_t>(algorithm)]; }
std::string_view ToString(Protocol protocol) { return kProtocols[static_cast<size_t>(protocol)]; }

StatusOr<std::vector<Row>> ReadTable(std::string_view text, const std::string& file,
                                     std::vector<std::string>* notes) {
  text = WithoutByteOrderMark(text);
  XCCL_ASSIGN_OR_RETURN(const Format format, FormatOf(text.substr(0, text.find('\n')), file));
  std::vector<Row> rows;
  int number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const std::vector<Field> words = FieldsOf(line);
    if (words.empty() || (format == Format::kOwn && number == 1)) continue;
    const Location at = {file, number, words[0].column};
    if (rows.size() == kMaxRows)
      return InvalidAt(at, "one more row; expected at most " + std::to_string(kMaxRows));
    if (format == Format::kOwn) {
      XCCL_ASSIGN_OR_RETURN(const Row row, ReadOwnRow(words, at));
      rows.push_back(row);
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(const std::optional<Row> row, ReadListRow(line, at, notes));
    if (row) rows.push_back(*row);
  }
  return rows;
}

std::string WriteTable(std::span<const Row> rows) {
  std::string text = std::string(kFormatName) + " 1\n";
  const auto add = [&](Key key, std::string_view value) {
    text += " ";
    text += kKeys[static_cast<size_t>(key)];
    text += "=";
    text += value;
  };
  for (const Row& row : rows) {
    text += kCollectives[static_cast<size_t>(row.collective)];
    if (row.min_bytes > 0) add(Key::kMinBytes, std::to_string(row.min_bytes));
    if (row.max_bytes < std::numeric_limits<int64_t>::max())
      add(Key::kMaxBytes, std::to_string(row.max_bytes));
    if (row.nodes) add(Key::kNodes, std::to_string(*row.nodes));
    if (row.ranks) add(Key::kRanks, std::to_string(*row.ranks));
    if (row.pipe_ops) add(Key::kPipeOps, std::to_string(*row.pipe_ops));
    if (row.registered) add(Key::kRegistered, *row.registered ? "yes" : "no");
    add(Key::kAlgorithm, kAlgorithms[static_cast<size_t>(row.algorithm)]);
    add(Key::kProtocol, kProtocols[static_cast<size_t>(row.protocol)]);
    if (row.channels) add(Key::kChannels, std::to_string(*row.channels));
    if (row.chunk_bytes) add(Key::kChunkBytes, std::to_string(*row.chunk_bytes));
    text += "\n";
  }
  return text;
}

bool IsFor(const Row& row, std::optional<int64_t> nodes, std::optional<int64_t> ranks) {
  return (!row.nodes || row.nodes == nodes) && (!row.ranks || row.ranks == ranks);
}

bool HasKernels(Collective collective, Algorithm algorithm, Protocol protocol) {
  const bool allreduce = collective == Collective::kAllreduce;
  const bool sharded = collective == Collective::kAllgather || collective == Collective::kReduceScatter;
  switch (algorithm) {
    case Algorithm::kRing:
      return true;
    case Algorithm::kTree:
      return allreduce;
    case Algorithm::kCollnetDirect:
    case Algorithm::kNvls:
      return (allreduce || sharded) && protocol == Protocol::kSimple;
    case Algorithm::kCollnetChain:
    case Algorithm::kNvlsTree:
      return allreduce && protocol == Protocol::kSimple;
    case Algorithm::kPat:
      return sharded && protocol == Protocol::kSimple;
  }
  return false;
}

}  // namespace xccl::nccl_tuner
