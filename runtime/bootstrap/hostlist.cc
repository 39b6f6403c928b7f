#include "runtime/bootstrap/hostlist.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "base/units.h"

namespace xccl::bootstrap {
namespace {

// Splits at commas outside of brackets.
std::vector<std::string> Items(std::string_view list) {
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0)
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

// "07-09" as 07, 08, 09.
Status AddRange(const std::string& range, size_t most, std::vector<std::string>& numbers) {
  const std::vector<std::string> ends = Split(range, '-');
  if (ends.size() > 2) return InvalidInput(fmt::format("'{}': expected a range of numbers", range));
  constexpr int64_t kMost = 1'000'000'000'000;
  XCCL_ASSIGN_OR_RETURN(const int64_t first, ParseInteger(ends[0], 0, kMost));
  XCCL_ASSIGN_OR_RETURN(const int64_t last, ParseInteger(ends.back(), first, kMost));
  for (int64_t n = first; n <= last && numbers.size() < most; ++n)
    numbers.push_back(fmt::format("{:0{}}", n, ends[0].size()));
  return OkStatus();
}

// The names of one item, from its first bracket on.
Status Expand(const std::string& before, std::string_view item, size_t most,
              std::vector<std::string>& names) {
  const size_t open = item.find('[');
  if (open == std::string_view::npos) {
    if (item.find(']') != std::string_view::npos) return InvalidInput("a bracket that does not open");
    std::string name = before;
    name += item;
    if (name.empty()) return InvalidInput("an empty name");
    names.push_back(std::move(name));
    return OkStatus();
  }
  const size_t close = item.find(']', open);
  if (close == std::string_view::npos) return InvalidInput("a bracket that does not close");
  std::vector<std::string> numbers;
  for (const std::string& range : Split(item.substr(open + 1, close - open - 1), ','))
    XCCL_RETURN_IF_ERROR(AddRange(range, most, numbers));
  for (const std::string& number : numbers) {
    if (names.size() >= most) break;
    std::string start = before;
    start += item.substr(0, open);
    start += number;
    XCCL_RETURN_IF_ERROR(Expand(start, item.substr(close + 1), most, names));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> ExpandHostlist(std::string_view list, size_t most) {
  std::vector<std::string> names;
  for (const std::string& item : Items(list)) {
    if (names.size() >= most) break;
    if (const Status status = Expand("", item, most, names); !status.ok())
      return Annotate(status, fmt::format("host list '{}'", Shortened(list)));
  }
  return names;
}

}  // namespace xccl::bootstrap
