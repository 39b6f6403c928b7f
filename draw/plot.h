// The look that all plots of times share, and the texts around their axes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace xccl::svg {

// Colours, and lengths in pixels.
struct PlotStyle {
  std::string_view ink, soft;          // of texts; of less important texts
  std::string_view grey, grid;         // of less important lines; of the grid
  double width, margin;                // of the whole picture; around it
  double top, height;                  // above the axes, for titles; of an axis
  double numbers, labels;              // beside the axes: for numbers; for the names of lines
  double row, label, letter;           // from one row, label or letter to the next
  size_t label_letters, name_letters;  // that the name of a line, and of a row, has at most
  size_t most_rows;                    // in one picture
};
inline constexpr PlotStyle kPlot = {.ink = "#16191c",
                                    .soft = "#565d64",
                                    .grey = "#b9bec4",
                                    .grid = "#e4e7ea",
                                    .width = 1320,
                                    .margin = 18,
                                    .top = 112,
                                    .height = 320,
                                    .numbers = 70,
                                    .labels = 138,
                                    .row = 22,
                                    .label = 14,
                                    .letter = 7,
                                    .label_letters = 21,
                                    .name_letters = 34,
                                    .most_rows = 60};

// The title of the picture, and a line below it that says what is shown.
std::string PlotTitle(std::string_view title, std::string_view shown);
// The notes below the axes, broken into lines. Begins at `y`, which becomes the place of the next line.
std::string PlotNotes(const std::vector<std::string>& notes, double& y);
// The name with ".." in place of its end where it has more letters than there is room for.
std::string FittedName(const std::string& name, size_t most_letters);

}  // namespace xccl::svg
