// The native format: a topology that is read is described, and written and read again without a difference.
#include "cli/describe/describe.h"
#include "draw/draw.h"
#include "draw/layout/layout.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  const StatusOr<Topology> topology = ReadNativeXml(text, "fuzz.xml");
  if (!topology.ok()) return CheckRefusal(topology.status());
  if (topology->num_nodes() + topology->num_links() > 20'000) return;
  const std::string written = WriteNativeXml(*topology);
  const StatusOr<Topology> again = ReadNativeXml(written, "written.xml");
  XCCL_CHECK(again.ok());
  XCCL_CHECK(*again == *topology);
  if (topology->num_ranks() > 200) return;
  XCCL_CHECK(!DescribeText(*topology).empty());
  const MachineLayout layout = LayOut(*topology);
  XCCL_CHECK(!TopologySvg(*topology, layout).empty());
  XCCL_CHECK(!TopologyDot(*topology, layout).empty());
}

}  // namespace xccl::testing
