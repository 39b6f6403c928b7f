// How long data occupies a link: the only assumption that simulators and lower bounds share.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace xccl {

enum class TimeModel : uint8_t {
  kPipelined,  // segments move independently and cut through; alpha delays, overhead occupies once per
               // message
  kBlocking,   // each node stores a whole message before forwarding it; alpha and overhead occupy the link
};
std::string_view ToString(TimeModel model);
StatusOr<TimeModel> ParseTimeModel(std::string_view name);

}  // namespace xccl
