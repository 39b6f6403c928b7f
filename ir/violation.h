// A verifier's finding: the rule that is broken, the place, and what was seen there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace xccl {

// Shown as `[rule] where: text`.
struct Violation {
  std::string rule;   // "S3"
  std::string where;  // "step 1"
  std::string text;   // "rank 2 sends chunk 5, which it first holds at step 3"
  bool operator==(const Violation&) const = default;
};
std::string ToString(const Violation& violation);
// Returns OK, or kInvalidInput with the first violation and the number of further ones.
Status ToStatus(const std::vector<Violation>& violations);

inline constexpr int32_t kMaxViolations = 20;

}  // namespace xccl
