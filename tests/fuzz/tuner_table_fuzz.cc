// Tables of the NCCL tuner plugin, in both formats.
#include <algorithm>

#include "runtime/nccl/tuner/table.h"
#include "tests/fuzz/fuzz.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  const StatusOr<std::vector<nccl_tuner::Row>> rows = nccl_tuner::ReadTable(text, "fuzz");
  if (!rows.ok()) return CheckRefusal(rows.status());
  // A list may have rows for kernels that NCCL lacks; our own format refuses them.
  if (!std::ranges::all_of(*rows, [](const nccl_tuner::Row& row) {
        return nccl_tuner::HasKernels(row.collective, row.algorithm, row.protocol);
      }))
    return;
  XCCL_CHECK(nccl_tuner::ReadTable(nccl_tuner::WriteTable(*rows), "written").value() == *rows);
}

}  // namespace xccl::testing
