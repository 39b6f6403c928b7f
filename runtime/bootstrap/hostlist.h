// Slurm's lists of hosts: "n[0-1,07-09],login,r[1-2]c[1-3]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl::bootstrap {

// The names, in order; numbers keep their leading zeros. At most `most` of them. Errors: kInvalidInput naming
// what cannot be read.
StatusOr<std::vector<std::string>> ExpandHostlist(std::string_view list, size_t most = 1 << 20);

}  // namespace xccl::bootstrap
