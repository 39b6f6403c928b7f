// How a link is occupied while data passes: the one choice that simulators and lower bounds have in common.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace xccl {

enum class TimeModel : uint8_t {
  kPipelined,  // segments move singly and cut through; alpha delays, overhead occupies once per message
  kBlocking,   // a message is stored and forwarded whole; alpha and overhead occupy the link
};
std::string_view ToString(TimeModel model);
StatusOr<TimeModel> ParseTimeModel(std::string_view name);

}  // namespace xccl
