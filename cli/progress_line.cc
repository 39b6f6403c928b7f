#include "cli/progress_line.h"

#include <fmt/core.h>

namespace xccl {
namespace {

constexpr int kSecondsInPipes = 10;

}  // namespace

bool IsLineDue(bool is_terminal, int seconds) {
  return seconds > 0 && (is_terminal || seconds % kSecondsInPipes == 0);
}

std::string ProgressLine(const ProgressState& state, bool is_terminal, int seconds) {
  const std::string left =
      state.part_done > 0 ? fmt::format(", about {:.0f} s left", seconds * (1 / state.part_done - 1)) : "";
  const std::string text = fmt::format("{}, {} s{}{}{}", state.what, seconds, left,
                                       state.detail.empty() ? "" : ": ", state.detail);
  return is_terminal ? fmt::format("\r{}\033[K", text) : fmt::format("progress: {}\n", text);
}

}  // namespace xccl
