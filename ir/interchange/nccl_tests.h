// What nccl-tests measured: the table that it prints, and the JSON that it writes with -J. `xccl-synth run`
// prints the same table. Times are out of place; sizes are those of the size column, in bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"

namespace xccl {

struct NcclTestsTime {
  int64_t bytes = 0;
  double us = 0;      // out of place, more than 0
  int64_t wrong = 0;  // elements; 0 where they were not checked
};
struct NcclTestsRun {
  std::string program;  // "all_reduce_perf"; empty: the table does not say, as before nccl-tests 2.17
  std::optional<CollectiveKind> collective;           // absent: of an unknown program
  int64_t ranks = 0;                                  // 0: the file does not say
  int64_t hosts = 0;                                  // 0: likewise
  std::optional<int64_t> root;                        // of a rooted collective
  std::map<std::string, std::string> variables = {};  // of the environment, which only JSON lists
  bool is_json = false;
  std::string program_place, ranks_place;  // "file:2", "file: args": where errors about them are
  std::vector<NcclTestsTime> times = {};   // in the order of the file
};

// Reads either. Lines of a table that are neither its comments nor its rows, as what NCCL_DEBUG prints, count
// for nothing. Errors: kInvalidInput "file:line: ..." in a table, "file: key: ..." in JSON.
StatusOr<NcclTestsRun> ReadNcclTests(std::string_view text, const std::string& file);

// Do these begin as nccl-tests' JSON or table do? Cost: linear in the text.
bool IsNcclTests(std::string_view text);

}  // namespace xccl
