// A comparison of engines, or of machines, as a page and as a picture.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "pipeline/compare.h"

namespace xccl {

// The program and the command that made a page or a picture.
struct Origin {
  std::string version;  // xccl-synth's: "0.1.0 (commit 0123456789ab)"
  std::string command;  // as it was typed
};

// The page: `page` with the JSON that view/src/compare/data.ts describes in place of its mark @XCCL_DATA@:
// the times, the machines drawn, and the command line that made them. Requires: the mark, once; the machines
// that were compared.
std::string ComparisonPage(std::string_view page, const Comparison& comparison,
                           std::span<const ComparedMachine> machines, const Origin& origin);

// An SVG for a paper, on white: time, bus bandwidth and time over bound, by size; where there is one size
// alone, by engine. auto, the engines that are the fastest at some size, and what was measured have colours
// and labels, all other lines are grey; where there are few engines all have colours. Measured lines are
// dashed.
std::string ComparisonSvg(const Comparison& comparison, const Origin& origin);

}  // namespace xccl
