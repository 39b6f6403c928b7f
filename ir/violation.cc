#include "ir/violation.h"

#include <fmt/core.h>

namespace xccl {

std::string ToString(const Violation& violation) {
  return fmt::format("[{}] {}: {}", violation.rule, violation.where, violation.text);
}

Status ToStatus(const std::vector<Violation>& violations) {
  if (violations.empty()) return OkStatus();
  std::string text = ToString(violations.front());
  const size_t more = violations.size() - 1;
  if (more > 0)
    text += fmt::format(" (and {}{} more)", violations.size() >= kMaxViolations ? "at least " : "", more);
  return InvalidInput(std::move(text));
}

}  // namespace xccl
