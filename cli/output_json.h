// Rows as JSON text, one line break at the end.
#pragma once

#include <string>
#include <vector>

#include "cli/row.h"

namespace xccl {

std::string ToJson(const Row& row);
std::string ToJson(const std::vector<Row>& rows);

}  // namespace xccl
