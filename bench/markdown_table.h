// A table in Markdown, as benches print theirs; bench/page puts it into docs/benchmarks.md as it is.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

namespace xccl {

// Shows a line on standard error where that is a terminal: how far a long bench is.
void ShowProgress(std::string_view line);

class MarkdownTable {
 public:
  // Takes the names of the columns. A name that ends in ':' is of figures, which stand at the right.
  explicit MarkdownTable(std::vector<std::string> columns);

  // Adds a row, each cell as fmt writes it, and shows it as progress. Requires: a cell for each column.
  template <typename... Cells>
  void Row(const Cells&... cells) {
    Add({fmt::format("{}", cells)...});
  }
  void Add(std::vector<std::string> cells);

  // Takes out the columns whose cells are the same in all rows, if there are several: "size 1GiB, engine
  // auto".
  std::string TakeOutEqualColumns();

  // Prints the table to standard output.
  void Print() const;
  // Prints the head to standard output, and from then on each row as it is added. A column is as wide as its
  // name, to which a caller may add blanks, and the rows before. Requires: no rows yet.
  void PrintAsAdded();

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
  bool prints_as_added_ = false;

  std::vector<size_t> Widths() const;
  void PrintRow(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;
  void PrintHead(const std::vector<size_t>& widths) const;
};

}  // namespace xccl
