// The parts of a collective that people write on a command line or in a CSV file.
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

// "0,2,4-7", in the order written. Errors: kUsage for text that is no list, ranks outside 0..num_ranks-1 and
// ranks given twice.
StatusOr<std::vector<Rank>> ParseRankList(std::string_view text, int32_t num_ranks);

// "0>1,2>3": source > destination. Errors: kUsage likewise, and for pairs given twice.
StatusOr<std::vector<std::pair<Rank, Rank>>> ParsePairs(std::string_view text, int32_t num_ranks);

// Counts from CSV text: alltoallv one row per source with one count per destination, the other kinds one
// count per member on one or several rows. Blank lines and lines that start with # are skipped. `file` is the
// name shown in errors. Errors: kInvalidInput as file:line:column.
StatusOr<std::vector<int64_t>> ParseCounts(std::string_view text, std::string_view file, CollectiveKind kind,
                                           int32_t members);
StatusOr<std::vector<int64_t>> ReadCountsFile(const std::string& path, CollectiveKind kind, int32_t members);

}  // namespace xccl
