// A result as ordered name/value cells: what --json prints and what tables are made of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace xccl {

// The empty alternative prints as null.
using Cell = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>,
                          std::vector<int64_t>>;
using Row = std::vector<std::pair<std::string, Cell>>;

}  // namespace xccl
