#include "bench/markdown_table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/standard_streams.h"
#include "base/strings.h"

namespace xccl {
namespace {

// Characters of a text in UTF-8.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

bool OfFigures(const std::string& column) { return column.ends_with(':'); }
std::string NameOf(const std::string& column) {
  return column.substr(0, column.size() - (OfFigures(column) ? 1 : 0));
}

}  // namespace

void ShowProgress(std::string_view line) {
  if (isatty(STDERR_FILENO) != 0) PrintError(fmt::format("{}\n", line));
}

MarkdownTable::MarkdownTable(std::vector<std::string> columns) : columns_(std::move(columns)) {}

void MarkdownTable::Add(std::vector<std::string> cells) {
  XCCL_CHECK(cells.size() == columns_.size());
  if (prints_as_added_) {
    PrintRow(cells, Widths());
    std::fflush(stdout);
  } else {
    ShowProgress(Join(cells, "  "));
  }
  rows_.push_back(std::move(cells));
}

std::string MarkdownTable::TakeOutEqualColumns() {
  std::vector<std::string> taken;
  if (rows_.size() < 2) return "";
  for (size_t c = columns_.size(); c-- > 0;) {
    const std::string same = rows_[0][c];
    if (!std::ranges::all_of(rows_, [&](const auto& row) { return row[c] == same; })) continue;
    if (!same.empty()) taken.insert(taken.begin(), NameOf(columns_[c]) + " " + same);
    for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
    columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(c));
  }
  return Join(taken, ", ");
}

std::vector<size_t> MarkdownTable::Widths() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(std::max<size_t>(Width(NameOf(columns_[c])), 3));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], Width(row[c]));
  }
  return widths;
}

void MarkdownTable::PrintRow(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const {
  for (size_t c = 0; c < cells.size(); ++c) {
    const std::string blanks(widths[c] - std::min(widths[c], Width(cells[c])), ' ');
    fmt::print("| {} ", OfFigures(columns_[c]) ? blanks + cells[c] : cells[c] + blanks);
  }
  fmt::print("|\n");
}

void MarkdownTable::PrintHead(const std::vector<size_t>& widths) const {
  std::vector<std::string> head, rule;
  for (size_t c = 0; c < columns_.size(); ++c) {
    head.push_back(NameOf(columns_[c]));
    rule.push_back(std::string(widths[c] - 1, '-') + (OfFigures(columns_[c]) ? ":" : "-"));
  }
  PrintRow(head, widths);
  PrintRow(rule, widths);
}

void MarkdownTable::Print() const {
  const std::vector<size_t> widths = Widths();
  PrintHead(widths);
  for (const auto& row : rows_) PrintRow(row, widths);
}

void MarkdownTable::PrintAsAdded() {
  XCCL_CHECK(rows_.empty());
  prints_as_added_ = true;
  PrintHead(Widths());
  std::fflush(stdout);
}

}  // namespace xccl
