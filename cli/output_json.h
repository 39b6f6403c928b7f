// Rows as JSON text, one line break at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/row.h"
#include "ir/verify/verify_schedule.h"

namespace xccl {

// The value, or null where there is none.
Cell OrNull(const std::optional<double>& value);

std::string ToJson(const Row& row);
std::string ToJson(const std::vector<Row>& rows);
// The row as text: an array of rows with one cell more.
std::string ToJson(const Row& row, const std::string& name, const std::vector<Row>& rows);
// {"ok": ..., "violations": [{"rule", "where", "text"}]}
std::string ViolationsJson(const std::vector<Violation>& violations);

}  // namespace xccl
