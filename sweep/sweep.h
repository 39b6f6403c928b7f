// A sweep: the jobs of a work list that a table lacks, handed out one after the other, and their rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "sweep/table.h"
#include "sweep/work_list.h"

namespace xccl {

// One of several processes that share a list: job j of the list belongs to part j mod `parts`.
struct SweepPart {
  int64_t part = 0, parts = 1;
};
// "2/8", part 2 of parts 0 to 7. Errors: kInvalidInput.
StatusOr<SweepPart> ParseSweepPart(std::string_view text);
std::vector<SweepJob> JobsOfPart(std::vector<SweepJob> jobs, const SweepPart& part);

struct SweepRequest {
  std::vector<SweepJob> jobs;
  std::string table;   // the file
  bool retry = false;  // jobs whose row is an error are done again
};

class Sweep {
 public:
  // Errors: as SweepTable::Open.
  static StatusOr<Sweep> Open(SweepRequest request);

  size_t num_jobs() const { return request_.jobs.size(); }
  size_t num_left() const { return order_.size() - next_; }        // not handed out
  size_t num_found() const { return num_jobs() - order_.size(); }  // in the table from the start
  // The next job, or none. Jobs that may take long come first, so that the last ones end together: engines
  // that search for long, then many ranks.
  const SweepJob* Next();
  // Writes the row of a job. Errors: as SweepTable::Append.
  Status Record(const SweepJob& job, SweepResult result) { return table_.Append(job, std::move(result)); }
  // Puts the table into the order of the list.
  Status Finish() const { return table_.Finish(request_.jobs); }
  // "results.csv: 60 jobs: 57 ok, 2 infeasible, 1 limit; 20 were there".
  std::string Summary() const;

 private:
  Sweep(SweepRequest request, SweepTable table) : request_(std::move(request)), table_(std::move(table)) {}

  SweepRequest request_;
  SweepTable table_;
  std::vector<size_t> order_;  // jobs without a row, in order
  size_t next_ = 0;
};

// Does all jobs on this machine, `workers` at a time, each in a process of `program`. `said` is told the
// number of rows after each. Errors: those of writing; kLimit where the deadline passes: jobs that run are
// ended and have no row.
Status RunSweep(Sweep& sweep, const std::string& program, int32_t workers, const Deadline& deadline,
                const std::function<void(size_t rows)>& said);

// Writes one table with the rows of all, the last row of a job counting. Rows that `table` has are kept where
// `tables` have none. Returns how many jobs have no row. Errors: kInvalidInput for a file that is no table.
StatusOr<size_t> MergeTables(std::span<const SweepJob> jobs, std::span<const std::string> tables,
                             const std::string& table);

}  // namespace xccl
