// The results that rccl-tests writes with -x FILE: CSV, or with -Z json a list of objects.
// https://github.com/ROCm/rccl-tests, class Reporter of src/common.cu.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "interchange/traces/nccl_tests.h"

namespace xccl {

// Does the text begin as either does?
bool IsRcclTests(std::string_view text);

// A run for each collective and number of GPUs. Errors: as ReadNcclTests.
StatusOr<std::vector<NcclTestsRun>> ReadRcclTests(std::string_view text, const std::string& file);

}  // namespace xccl
