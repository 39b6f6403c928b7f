// Parses the arguments of a collective from the command line or a CSV file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

// Parses "0,2,4-7"; keeps the order. Errors: kUsage for malformed text, ranks outside 0..num_ranks-1 and
// ranks given twice.
StatusOr<std::vector<Rank>> ParseRankList(std::string_view text, int32_t num_ranks);

// Parses "0>1,2>3": source > destination. Errors: kUsage as above, and for pairs given twice.
StatusOr<std::vector<std::pair<Rank, Rank>>> ParsePairs(std::string_view text, int32_t num_ranks);

// Parses counts from CSV text: for alltoallv one row per source with one count per destination, for other
// kinds one count per member on one or more rows. Blank lines and lines that start with # are skipped.
// `file` is the name shown in errors. Errors: kInvalidInput as file:line:column.
StatusOr<std::vector<int64_t>> ParseCounts(std::string_view text, std::string_view file, CollectiveKind kind,
                                           int32_t members);
StatusOr<std::vector<int64_t>> ReadCountsFile(const std::string& path, CollectiveKind kind, int32_t members);

}  // namespace xccl
