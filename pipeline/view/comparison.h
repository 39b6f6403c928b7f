// Shows a comparison of engines or of machines as an HTML page and as an SVG picture.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "pipeline/compare.h"

namespace xccl {

// The program and the command that made a page or a picture.
struct Origin {
  std::string version;  // xccl-synth's: "0.1.0 (commit 0123456789ab)"
  std::string command;  // the command line as it was typed
};

// Returns `page` with the mark @XCCL_DATA@ replaced by JSON (view/src/compare/data.ts): the times, drawings
// of the machines, and the command line. `machines` are the machines that were compared. Requires that `page`
// has the mark once.
std::string ComparisonPage(std::string_view page, const Comparison& comparison,
                           std::span<const ComparedMachine> machines, const Origin& origin);

// Returns an SVG for a paper, on white. It shows time, bus bandwidth and time ÷ bound over size; if there is
// only one size, it shows one row per engine. Colours and labels mark auto, the engines that are fastest at
// some size, machines, and measured times (dashed). All other lines are grey, unless there are few lines.
std::string ComparisonSvg(const Comparison& comparison, const Origin& origin);

}  // namespace xccl
