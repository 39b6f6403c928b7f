// Lines of the protocols that send flags among data. A line is stored at once, and its flag says that it is
// there: 8 of 16 bytes are data in LL, 120 of 128 in LL128 (NCCL's formats; device/ll.h). Simple has none.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace xccl {

struct ProtocolLine {
  int32_t data_bytes = 1, wire_bytes = 1;
};

constexpr ProtocolLine LineOf(Protocol protocol) {
  switch (protocol) {
    case Protocol::kSimple:
      return {};
    case Protocol::kLl:
      return {8, 16};
    case Protocol::kLl128:
      return {120, 128};
  }
  return {};
}

}  // namespace xccl
