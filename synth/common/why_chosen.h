// The words that say why auto kept a plan and not the plan of another engine. Every text and page uses them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/analysis/schedule_stats.h"

namespace xccl {

// Returns whether the fixed cost of a mean message of the plan exceeds the cost of its bytes on the slowest
// link that the plan uses. In place of such a plan, auto may keep a plan of fewer messages that takes up to
// kToleratedRatio (ir/tolerance.h) times as long.
bool HasShortMessages(const LinkUse& use);

// An engine's plan, or the program of its plan.
struct Contender {
  std::string engine;
  int64_t time_ps = 0;
  std::optional<int64_t> messages = {};  // absent: not known
};

// Returns "fastest of 14 engines" if no other plan is faster by 0.05 % or more. Otherwise names the fastest
// of the other plans: "within 2 %: tree, 28 messages; greedy 1.3 % faster with 224". A larger difference
// leaves out "within 2 %". `engines` is the number of engines that made plans, with the engine of `chosen`.
// `what` is "program" if the times are those of programs, otherwise empty. Returns no text if no other engine
// made a plan, unless another plan of the same engine is faster.
std::string WhyChosen(const Contender& chosen, std::span<const Contender> others, size_t engines,
                      const std::string& what = "");

// Returns whether the text has the form of a text of WhyChosen.
bool IsWhyChosen(std::string_view text);

}  // namespace xccl
