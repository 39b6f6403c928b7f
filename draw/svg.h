// Pieces of SVG, as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "draw/layout/layout.h"

namespace xccl::svg {

std::string Escaped(std::string_view text);
std::string Number(double value);  // at most two decimals

// Colours that people with any kind of colour vision tell apart (Okabe and Ito, 2008), darkest first.
std::string_view SeriesColour(size_t i);
inline constexpr size_t kNumSeries = 7;

std::string Text(double x, double y, std::string_view anchor, double size, std::string_view fill,
                 std::string_view text, std::string_view more = "");
std::string Rect(double x, double y, double width, double height, std::string_view more);
std::string Line(double x1, double y1, double x2, double y2, std::string_view more);
// The cable's line, without its stroke: the attribute d of a path.
std::string PathOf(const DrawnCable& cable);

// The frame of a document: `body` in a picture of that size, with a title for screen readers.
std::string Document(double width, double height, std::string_view title, std::string_view body);

// Frames and items of a layout, without cables.
std::string Frames(const MachineLayout& layout);
std::string Items(const MachineLayout& layout, const Topology& topology);

}  // namespace xccl::svg
