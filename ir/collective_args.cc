#include "ir/collective_args.h"

#include <fmt/core.h>

#include <cstdint>
#include <set>

#include "base/diagnostics.h"
#include "base/file_kinds.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

StatusOr<Rank> ParseRank(std::string_view text, std::string_view whole, int32_t num_ranks) {
  const StatusOr<int64_t> value = ParseInteger(Trim(text), 0, INT64_MAX);
  if (!value.ok() || text.find('-') != text.npos)
    return UsageError(fmt::format("'{}': '{}'; expected a rank", whole, Trim(text)));
  if (*value >= num_ranks)
    return UsageError(fmt::format("'{}': rank {}; ranks are 0..{}", whole, *value, num_ranks - 1));
  return Rank(*value);
}

}  // namespace

StatusOr<std::vector<Rank>> ParseRankList(std::string_view text, int32_t num_ranks) {
  std::vector<Rank> ranks;
  std::set<Rank> seen;
  for (const std::string& item : Split(text, ',')) {
    const size_t dash = item.find('-');
    const bool range = dash != item.npos && dash > 0;
    XCCL_ASSIGN_OR_RETURN(const Rank first, ParseRank(range ? item.substr(0, dash) : item, text, num_ranks));
    Rank last = first;
    if (range) {
      XCCL_ASSIGN_OR_RETURN(last, ParseRank(item.substr(dash + 1), text, num_ranks));
    }
    if (last < first)
      return UsageError(
          fmt::format("'{}': {} runs backwards; expected {}-{}", text, item, last.value, first.value));
    for (int32_t r = first.value; r <= last.value; ++r) {
      if (!seen.insert(Rank(r)).second)
        return UsageError(fmt::format("'{}': rank {} is given twice; expected each rank once", text, r));
      ranks.push_back(Rank(r));
    }
  }
  return ranks;
}

StatusOr<std::vector<std::pair<Rank, Rank>>> ParsePairs(std::string_view text, int32_t num_ranks) {
  std::vector<std::pair<Rank, Rank>> pairs;
  std::set<std::pair<Rank, Rank>> seen;
  for (const std::string& item : Split(text, ',')) {
    const std::vector<std::string> ends = Split(item, '>');
    if (ends.size() != 2)
      return UsageError(fmt::format("'{}': '{}'; expected a pair such as 0>1", text, item));
    XCCL_ASSIGN_OR_RETURN(const Rank from, ParseRank(ends[0], text, num_ranks));
    XCCL_ASSIGN_OR_RETURN(const Rank to, ParseRank(ends[1], text, num_ranks));
    if (!seen.emplace(from, to).second)
      return UsageError(fmt::format("'{}': pair {}>{} is given twice; expected each pair once", text,
                                    from.value, to.value));
    pairs.emplace_back(from, to);
  }
  return pairs;
}

StatusOr<std::vector<int64_t>> ParseCounts(std::string_view text, std::string_view file, CollectiveKind kind,
                                           int32_t members) {
  const bool matrix = kind == CollectiveKind::kAlltoallv;
  std::vector<int64_t> counts;
  int line = 0;
  int64_t rows = 0;
  for (const std::string& row : Split(text, '\n')) {
    ++line;
    if (Trim(row).empty() || Trim(row).front() == '#') continue;
    int column = 1;
    int64_t in_row = 0;
    for (const std::string& field : Split(row, ',')) {
      const StatusOr<int64_t> count = ParseInteger(Trim(field), 0, INT64_MAX);
      if (!count.ok())
        return InvalidAt(Location{std::string(file), line, column},
                         fmt::format("'{}'; expected a whole number of zero or more", Trim(field)));
      counts.push_back(*count);
      ++in_row;
      column += static_cast<int>(field.size()) + 1;
    }
    ++rows;
    if (matrix && in_row != members)
      return InvalidAt(Location{std::string(file), line, 1},
                       fmt::format("{} counts; expected {}, one per destination", in_row, members));
  }
  if (matrix && rows != members)
    return InvalidInput(fmt::format("{}: {} rows; expected {}, one per source", file, rows, members));
  if (!matrix && static_cast<int64_t>(counts.size()) != members)
    return InvalidInput(
        fmt::format("{}: {} counts; expected {}, one per rank", file, counts.size(), members));
  return counts;
}

StatusOr<std::vector<int64_t>> ReadCountsFile(const std::string& path, CollectiveKind kind, int32_t members) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  XCCL_RETURN_IF_ERROR(CheckKind(text, path, FileKind::kCsv));
  return ParseCounts(text, path, kind, members);
}

}  // namespace xccl
