// One chart for a paper, at a physical size: lines over sizes, or a row for each name where there is one
// size.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace xccl {

struct FigureAxis {
  std::string title;
  bool logarithmic = false;  // otherwise from 0; the figure says which
  std::function<std::string(double)> show;
};

struct FigureLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by x; of both coordinates only positive values are drawn
  bool is_first_choice = false;                   // black and wide
  bool is_dashed = false;
  bool is_grey = false;  // without mark; the legend lists all such lines as one entry
};

struct Figure {
  std::string title, description;  // for screen readers and search; not drawn
  FigureAxis x, y;                 // x is logarithmic
  std::vector<FigureLine> lines;
};

// In points: 1/72 of an inch.
struct FigureSize {
  double width_pt = 0, font_pt = 0;
  // The least width, so that numbers, names and axis leave room for each other.
  static constexpr double kLeastWidthInFonts = 18;
};

// An SVG of exactly that width; all texts have the font's size. Lines have marks beside colours, so that they
// are told apart in grey. No text is shortened, leaves the figure or overlaps another; labels of an axis that
// would overlap are left out. If all lines have one point at the same x, they become bars from 0, in their
// order, or dots where the greatest value is over 30 times the least. Requires: width_pt is at least
// kLeastWidthInFonts fonts; a line.
std::string FigureSvg(const Figure& figure, const FigureSize& size);

}  // namespace xccl
