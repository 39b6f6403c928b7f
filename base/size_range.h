// Sizes, and ranges of sizes, as texts and tables show them to people.
#pragma once

#include <cstdint>
#include <string>

namespace xccl {

// "64MiB", "64MB", "1000005B": exact, always with a unit. The shorter of the texts with the largest binary
// and the largest decimal unit that divide the size; the binary one if both are as short.
std::string SizeText(int64_t bytes);

// A range of whole bytes, both ends inclusive; max_bytes is 0 if there is no upper limit. A range that begins
// one byte after a size is written as beginning after it: "all", "64KiB to 2MiB", "over 512KiB to 4MiB",
// "1KiB and more", "over 4MiB".
std::string SizeRangeText(int64_t min_bytes, int64_t max_bytes);

}  // namespace xccl
