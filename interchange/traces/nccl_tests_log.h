// Tables of nccl-tests within a job's log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "interchange/traces/nccl_tests.h"

namespace xccl {

// Has a line that names the columns of a table?
bool HasNcclTestsTable(std::string_view text);

// As ReadNcclTests.
StatusOr<std::vector<NcclTestsRun>> ReadNcclTestsLog(std::string_view text, const std::string& file);

}  // namespace xccl
