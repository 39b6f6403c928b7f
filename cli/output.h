// Output of commands on standard output: text, tables for people, and rows as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace xccl {

// A result as ordered name/value cells. The empty alternative and numbers that are not finite print as null;
// in a list of CSV, as "-".
using Cell = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>,
                          std::vector<int64_t>, std::vector<double>>;
using Row = std::vector<std::pair<std::string, Cell>>;

// The value, or null where there is none.
Cell OrNull(const std::optional<double>& value);

// JSON text, one line break at the end.
std::string ToJson(const std::vector<Row>& rows);
// One row. A name adds a cell: an array of rows.
std::string ToJson(const Row& row, const std::string& name = "", const std::vector<Row>& rows = {});

// A line of names, then a line a row; RFC 4180. Requires: the same names in every row.
std::string ToCsv(const std::vector<Row>& rows, bool with_names = true);

// Columns are as wide as their widest cell, and as `least_widths` says; columns of numbers are right-aligned.
std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      std::vector<size_t> least_widths = {});

// The line "file      page.html, 1.3 MB" for files that a command has written; "" where none is a regular
// file, as /dev/stdout is none. Several files are named by the first and the last.
std::string FileLine(const std::vector<std::string>& files);

// The word as a shell takes it: in quotes where it needs them.
std::string ShellWord(std::string_view word);

// Writes to standard output at once. Errors: kInvalidInput "standard output: cannot write: REASON".
Status Print(std::string_view text);

}  // namespace xccl
