// The table of a sweep: a CSV file (RFC 4180) with a line of names and a row for each job. Rows are appended
// whole as jobs end, so a killed sweep leaves a table that the next one continues. At the end the rows are
// put into the order of the work list.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sweep/work_list.h"

namespace xccl {

// The result of a job: one value for each name of ResultNames(), in that order.
using SweepResult = std::vector<std::string>;
std::span<const std::string_view> ResultNames();

// "a,b": a cell with a comma, a quote or a line break is quoted.
std::string CsvLine(std::span<const std::string> cells);
// The cells of each line. A last line that has no line break at its end is left out. Errors: kInvalidInput
// "LINE: text" for a quote that does not end, or text behind one.
StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text);

// The rows of one table or of several. The last row of a job counts.
class SweepRows {
 public:
  bool Has(const SweepJob& job) const { return rows_.contains(KeyOf(job)); }
  // The cell "status" of the job's row; empty where it has none.
  std::string StatusOf(const SweepJob& job) const;
  size_t size() const { return rows_.size(); }
  void Set(const SweepJob& job, SweepResult result) { rows_[KeyOf(job)] = std::move(result); }
  // Adds the rows of a table's text. Errors: kInvalidInput with `file` in front for a text that is no table.
  Status Add(std::string_view text, const std::string& file);
  void Add(const SweepRows& others);
  // The whole table: rows in the order of the list's jobs, then rows of jobs that the list lacks.
  std::string ToText(std::span<const SweepJob> jobs) const;

 private:
  using Key = std::tuple<std::string, std::string, int64_t, std::string, std::string>;
  static Key KeyOf(const SweepJob& job) {
    return {job.topology, job.collective, job.size_bytes, job.engine, job.options};
  }

  std::map<Key, SweepResult> rows_;
};

// A table on disk, held by one process at a time.
class SweepTable {
 public:
  // Makes the file, or reads it and removes a torn last line. Errors: kInvalidInput where it cannot be
  // written, is no table, or is held by another sweep.
  static StatusOr<SweepTable> Open(const std::string& path);
  SweepTable(SweepTable&& other) noexcept;
  SweepTable& operator=(SweepTable&&) = delete;
  ~SweepTable();

  const SweepRows& rows() const { return rows_; }
  SweepRows& rows() { return rows_; }
  // Appends a row. Where that fails the file keeps the whole rows that it had.
  Status Append(const SweepJob& job, SweepResult result);
  // Replaces the file by one whose rows are in order.
  Status Finish(std::span<const SweepJob> jobs) const;

 private:
  SweepTable(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status ReadRows();
  Status AppendText(const std::string& text);

  std::string path_;
  int file_ = -1;
  SweepRows rows_;
};

}  // namespace xccl
