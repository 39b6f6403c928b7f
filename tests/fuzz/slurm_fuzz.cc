// Slurm's topology.conf and topology.yaml, and its lists of host names.
#include "tests/fuzz/fuzz.h"
#include "topologies/fabric/host_list.h"
#include "topologies/fabric/slurm.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  IsSlurmTopology(text);
  const StatusOr<Fabric> fabric = ReadSlurmTopology(text, "fuzz");
  if (!fabric.ok()) CheckRefusal(fabric.status());
  if (fabric.ok())
    for (const FabricCable& cable : fabric->cables)
      for (const FabricEnd& end : {cable.a, cable.b})
        XCCL_CHECK(static_cast<size_t>(end.index) <
                   (end.is_switch ? fabric->switches.size() : fabric->adapters.size()));
  const StatusOr<std::vector<std::string>> names = ExpandHostList(text);
  if (!names.ok()) return CheckRefusal(names.status());
  if (names->size() <= 20'000) XCCL_CHECK(ExpandHostList(CompressHostList(*names)).value() == *names);
}

}  // namespace xccl::testing
