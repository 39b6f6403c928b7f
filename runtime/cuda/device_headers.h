// The text of device/*.h, made by the build.
#pragma once

#include <span>
#include <string_view>

namespace xccl::cuda {

struct EmbeddedHeader {
  std::string_view name;  // "device/abi.h"
  std::string_view text;
};
extern const std::span<const EmbeddedHeader> kDeviceHeaders;  // sorted by name

}  // namespace xccl::cuda
