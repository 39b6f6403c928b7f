// The output of iblinkinfo.
#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include "topologies/fabric/iblinkinfo.h"
#include "topologies/fabric/infiniband_for_tests.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  IsIblinkinfo(text);
  const StatusOr<Fabric> fabric = ReadIblinkinfo(text, "fuzz.txt");
  if (!fabric.ok()) return CheckRefusal(fabric.status());
  CheckFabric(*fabric, static_cast<int32_t>(std::ranges::count(text, '\n')) + 1);
}

}  // namespace xccl::testing
