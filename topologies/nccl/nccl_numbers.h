// Numbers of a dump's attributes, read as NCCL reads them: the number at the start of the text, and 0 where
// there is none. No locale plays a part.
#pragma once

#include <cstdint>
#include <string_view>

namespace xccl {

template <typename T>
struct LeadingNumber {
  T value = 0;
  // The text is one number, with blanks around it at most. A whole number with a leading 0, which is octal to
  // NCCL and decimal to most readers, is not plain.
  bool plain = false;
};

// As C's strtol with base 0: "16", " +16", "0x10" and "020" are 16, and so is "16x". A number that is too
// large becomes the largest.
LeadingNumber<int64_t> ReadLeadingInteger(std::string_view text);
// As C's strtof: "2.75", "1e3", "0x1p-1".
LeadingNumber<double> ReadLeadingFloat(std::string_view text);

}  // namespace xccl
