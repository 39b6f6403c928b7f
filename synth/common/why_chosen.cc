#include "synth/common/why_chosen.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/tolerance.h"
#include "synth/common/cost_model.h"

namespace xccl {
namespace {

constexpr double kLeastPercent = 0.05;  // a smaller difference would be shown as 0.0 %

}  // namespace

bool HasShortMessages(const LinkUse& use) {
  return use.messages > 0 &&
         use.message_bytes < static_cast<double>(LeastUsefulBytes(use.slowest_bytes_per_s));
}

std::string WhyChosen(const Contender& chosen, std::span<const Contender> others, size_t engines,
                      const std::string& what) {
  const auto fastest = std::ranges::min_element(others, {}, &Contender::time_ps);
  const double faster =
      fastest == others.end() || fastest->time_ps <= 0
          ? 0
          : 100 * (static_cast<double>(chosen.time_ps) / static_cast<double>(fastest->time_ps) - 1);
  if (faster < kLeastPercent)
    return engines < 2 ? "" : fmt::format("fastest {}of {} engines", what.empty() ? "" : what + " ", engines);
  const double within_percent = 100 * (kToleratedRatio - 1);
  std::string text = faster <= within_percent ? fmt::format("within {:.0f} %: ", within_percent) : "";
  text += chosen.engine;
  if (chosen.messages)
    text += fmt::format(", {} message{}", *chosen.messages, *chosen.messages == 1 ? "" : "s");
  const std::string own = fastest->engine == chosen.engine ? "another " : "";
  text +=
      fmt::format("; {}{}{} {:.1f} % faster", own, fastest->engine, what.empty() ? "" : "'s " + what, faster);
  if (fastest->messages) text += fmt::format(" with {}", *fastest->messages);
  return text;
}

bool IsWhyChosen(std::string_view text) {
  return (text.starts_with("fastest ") && text.ends_with(" engines")) ||
         (text.find(" % faster") != std::string_view::npos && std::ranges::count(text, ';') == 1);
}

}  // namespace xccl
