// Times measured by nccl-tests and rccl-tests: the table that they print, also where a job's log has other
// lines and prefixes around it; the JSON that they write with -J; and the CSV and JSON that rccl-tests writes
// with -x and -Z. `xccl-synth run` prints the same table. Times are out of place; sizes are the numbers of
// the size column, in bytes.
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
  std::string place;    // "file:2": where it begins; "file" in nccl-tests' JSON
  std::string program;  // "all_reduce_perf"; empty: the table does not say, as before nccl-tests 2.17
  std::optional<CollectiveKind> collective;  // absent: the program is unknown
  int64_t ranks = 0;                         // 0: the file does not say
  int64_t hosts = 0;                         // 0: likewise
  std::optional<int64_t> root;               // root of a rooted collective
  bool names_root = true;                    // false: the format has no place for a root
  std::map<std::string, std::string> variables =
      {};  // variables of the environment, which nccl-tests' JSON alone lists
  bool lists_variables = false;
  std::string program_place, ranks_place;  // "file:2", "file: args": where errors about them are
  std::vector<NcclTestsTime> times = {};   // in the order of the file
  int64_t cut_rows = 0;                    // rows left out, since other lines stand in the middle of them
};

// The runs of a file in its order, at least one. A run of a log begins with the comments before its table.
// Each line begins with the prefix of its table, if it has one: mpirun's tag, srun's label, a pod's name,
// time stamps. Lines of a log that are neither a table's comments nor its rows, such as those of NCCL_DEBUG,
// are ignored. Errors: kInvalidInput "file:line: ..." in a log or CSV, "file: key: ..." in JSON.
StatusOr<std::vector<NcclTestsRun>> ReadNcclTests(std::string_view text, const std::string& file);

// Has the text a table, or does it begin as their JSON or CSV do? Cost: linear in the text.
bool IsNcclTests(std::string_view text);

}  // namespace xccl
