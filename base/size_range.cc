#include "base/size_range.h"

#include <iterator>
#include <string_view>

#include "base/units.h"

namespace xccl {

std::string SizeText(int64_t bytes) {
  std::string binary = FormatSize(bytes);
  if (!binary.ends_with('B')) binary += 'B';
  int64_t count = bytes;
  size_t unit = 0;
  constexpr std::string_view kDecimal[] = {"B", "KB", "MB", "GB", "TB"};
  for (; unit + 1 < std::size(kDecimal) && count != 0 && count % 1000 == 0; ++unit) count /= 1000;
  const std::string decimal = std::to_string(count) + std::string(kDecimal[unit]);
  return decimal.size() < binary.size() ? decimal : binary;
}

std::string SizeRangeText(int64_t min_bytes, int64_t max_bytes) {
  if (min_bytes == 0 && max_bytes == 0) return "all";
  // Many sizes are shorter without the byte: "512KiB", not "524289B".
  const bool is_after = min_bytes > 1 && SizeText(min_bytes - 1).size() < SizeText(min_bytes).size();
  const std::string from = is_after ? "over " + SizeText(min_bytes - 1) : SizeText(min_bytes);
  if (max_bytes > 0) return from + " to " + SizeText(max_bytes);
  return is_after ? from : from + " and more";
}

}  // namespace xccl
