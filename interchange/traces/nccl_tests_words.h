// Words that the readers of nccl-tests' and rccl-tests' files share.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "ir/collective.h"

namespace xccl {

// The number that the whole word is; absent where it is none.
template <typename Number>
std::optional<Number> NumberOf(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// The collective that a program of nccl-tests measures, "all_reduce_perf", or that `xccl-synth run` names.
std::optional<CollectiveKind> CollectiveOfProgram(std::string_view program);

}  // namespace xccl
