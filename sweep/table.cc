#include "sweep/table.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr std::string_view kJobNames[] = {"topology", "collective", "size_bytes", "engine", "options"};
constexpr std::string_view kResultNames[] = {
    "ranks",     "made_by",    "time_us",     "time_program_us", "algbw_gb_per_s", "busbw_gb_per_s",
    "bound_us",  "bound_kind", "ratio",       "exact",           "steps",          "chunks_per_rank",
    "transfers", "messages",   "synthesis_s", "status",          "error"};
// A second in all; a job begins, or ends with its sweep, within milliseconds where it gets a core.
constexpr int32_t kLockTries = 100;
constexpr auto kLockWait = std::chrono::milliseconds(10);
constexpr size_t kColumns = std::size(kJobNames) + std::size(kResultNames);

std::vector<std::string> ColumnNames() {
  std::vector<std::string> names(std::begin(kJobNames), std::end(kJobNames));
  names.insert(names.end(), std::begin(kResultNames), std::end(kResultNames));
  return names;
}

std::string RowText(const SweepJob& job, const SweepResult& result) {
  std::vector<std::string> cells = {job.topology, job.collective, std::to_string(job.size_bytes), job.engine,
                                    job.options};
  cells.insert(cells.end(), result.begin(), result.end());
  return CsvLine(cells);
}

Status CannotWrite(const std::string& path, int error) {
  return InvalidInput(path + ": cannot write: " + std::strerror(error));
}

// Reads one cell from `at` on, which then stands behind it.
StatusOr<std::string> ReadCell(std::string_view text, size_t& at) {
  std::string cell;
  if (at == text.size() || text[at] != '"') {
    const size_t end = std::min(text.find_first_of(",\n", at), text.size());
    cell = text.substr(at, end - at);
    at = end;
    return cell;
  }
  for (++at; at < text.size(); ++at) {
    if (text[at] != '"') {
      cell += text[at];
    } else if (at + 1 < text.size() && text[at + 1] == '"') {
      cell += text[at++];
    } else {
      ++at;
      if (at == text.size() || text[at] == ',' || text[at] == '\n') return cell;
      return InvalidInput("text behind a quoted cell; expected a comma or a line break");
    }
  }
  return InvalidInput("a quote that does not end; expected '\"' behind it");
}

}  // namespace

std::span<const std::string_view> ResultNames() { return kResultNames; }

std::string CsvLine(std::span<const std::string> cells) {
  std::string line;
  for (size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) line += ',';
    if (cells[c].find_first_of(",\"\r\n") == std::string::npos) {
      line += cells[c];
      continue;
    }
    line += '"';
    for (const char letter : cells[c]) line.append(letter == '"' ? 2 : 1, letter);
    line += '"';
  }
  return line + "\n";
}

StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text) {
  text = text.substr(0, text.rfind('\n') + 1);
  std::vector<std::vector<std::string>> rows;
  for (size_t at = 0; at < text.size(); ++at) {
    rows.emplace_back();
    for (bool more = true; more; at += more ? 1 : 0) {
      StatusOr<std::string> cell = ReadCell(text, at);
      if (!cell.ok()) return Annotate(cell.status(), std::to_string(rows.size()));
      rows.back().push_back(*std::move(cell));
      more = at < text.size() && text[at] == ',';
    }
  }
  return rows;
}

std::string SweepRows::StatusOf(const SweepJob& job) const {
  const auto found = rows_.find(KeyOf(job));
  return found == rows_.end() ? "" : found->second[std::size(kResultNames) - 2];
}

Status SweepRows::Add(std::string_view text, const std::string& file) {
  const StatusOr<std::vector<std::vector<std::string>>> lines = ParseCsv(text);
  if (!lines.ok()) return InvalidInput(file + ":" + lines.status().message());
  for (size_t l = 0; l < lines->size(); ++l) {
    const std::vector<std::string>& cells = (*lines)[l];
    const auto wrong = [&](const std::string& what) {
      return InvalidInput(fmt::format("{}:{}: {}", file, l + 1, what));
    };
    if (l == 0) {
      if (cells != ColumnNames())
        return wrong("other columns than a sweep's table has; expected " + Join(ColumnNames(), ","));
      continue;
    }
    if (cells.size() != kColumns) return wrong(fmt::format("{} cells; expected {}", cells.size(), kColumns));
    const StatusOr<int64_t> size = ParseInteger(cells[2], 0, std::numeric_limits<int64_t>::max());
    if (!size.ok()) return wrong(fmt::format("{}: {}", kJobNames[2], size.status().message()));
    Set({cells[0], cells[1], *size, cells[3], cells[4]},
        SweepResult(cells.begin() + std::size(kJobNames), cells.end()));
  }
  return OkStatus();
}

void SweepRows::Add(const SweepRows& others) {
  for (const auto& [key, result] : others.rows_) rows_.insert_or_assign(key, result);
}

std::string SweepRows::ToText(std::span<const SweepJob> jobs) const {
  std::string text = CsvLine(ColumnNames());
  std::set<Key> listed;
  for (const SweepJob& job : jobs) {
    const auto found = rows_.find(KeyOf(job));
    if (found != rows_.end() && listed.insert(found->first).second) text += RowText(job, found->second);
  }
  for (const auto& [key, result] : rows_)
    if (!listed.contains(key)) {
      const auto& [topology, collective, size_bytes, engine, options] = key;
      text += RowText({topology, collective, size_bytes, engine, options}, result);
    }
  return text;
}

StatusOr<SweepTable> SweepTable::Open(const std::string& path) {
  XCCL_RETURN_IF_ERROR(CheckWritable(path));  // Finish replaces the table
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0664);
  if (file < 0) return CannotWrite(path, errno);
  SweepTable table(path, file);
  struct stat found = {};
  if (fstat(file, &found) != 0) return CannotWrite(path, errno);
  if (!S_ISREG(found.st_mode)) return InvalidInput(path + ": no regular file; expected a table or no file");
  // A file system without locks serves as well, as long as one sweep writes the table.
  // A job of a killed sweep has its lock until it begins, or ends with it.
  for (int32_t tries = 1; flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++tries) {
    if (tries == kLockTries)
      return InvalidInput(path + ": another sweep is writing it; expected one at a time");
    std::this_thread::sleep_for(kLockWait);
  }
  XCCL_RETURN_IF_ERROR(table.ReadRows());
  return table;
}

SweepTable::SweepTable(SweepTable&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), rows_(std::move(other.rows_)) {}

SweepTable::~SweepTable() {
  if (file_ >= 0) close(file_);
}

Status SweepTable::ReadRows() {
  XCCL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path_));
  if (HasUtf16Mark(bytes)) return InvalidInput(path_ + ":1:1: begins with a mark of UTF-16; expected UTF-8");
  const std::string_view text = WithoutByteOrderMark(bytes);
  XCCL_RETURN_IF_ERROR(rows_.Add(text, path_));
  const size_t whole = bytes.rfind('\n') + 1;  // 0 where there is none
  if (whole == 0 && !CsvLine(ColumnNames()).starts_with(text))
    return InvalidInput(path_ + ": no table of a sweep; expected one or no file");
  if (whole < bytes.size() && ftruncate(file_, static_cast<off_t>(whole)) != 0)
    return CannotWrite(path_, errno);
  return whole == 0 ? AppendText(CsvLine(ColumnNames())) : OkStatus();
}

Status SweepTable::Append(const SweepJob& job, SweepResult result) {
  XCCL_RETURN_IF_ERROR(AppendText(RowText(job, result)));
  rows_.Set(job, std::move(result));
  return OkStatus();
}

Status SweepTable::AppendText(const std::string& text) {
  const off_t before = lseek(file_, 0, SEEK_END);
  size_t done = 0;
  ssize_t written = 0;
  while (done < text.size() && (written = write(file_, text.data() + done, text.size() - done)) > 0)
    done += static_cast<size_t>(written);
  if (done == text.size()) return OkStatus();
  const int error = written < 0 ? errno : ENOSPC;
  if (done > 0 && ftruncate(file_, before) != 0) return CannotWrite(path_, errno);
  return CannotWrite(path_, error);
}

Status SweepTable::Finish(std::span<const SweepJob> jobs) const {
  return WriteFileAtomically(path_, rows_.ToText(jobs));
}

}  // namespace xccl
