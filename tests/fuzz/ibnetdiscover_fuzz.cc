// The output of ibnetdiscover.
#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include "topologies/fabric/ibnetdiscover.h"
#include "topologies/fabric/infiniband_for_tests.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  IsIbnetdiscover(text);
  const StatusOr<Fabric> fabric = ReadIbnetdiscover(text, "fuzz.txt");
  if (!fabric.ok()) return CheckRefusal(fabric.status());
  CheckFabric(*fabric, static_cast<int32_t>(std::ranges::count(text, '\n')) + 1);
}

}  // namespace xccl::testing
