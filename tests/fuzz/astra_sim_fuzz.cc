// ASTRA-sim's network files.
#include "tests/fuzz/fuzz.h"
#include "topologies/peers/peers.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  if (!IsPeerTopology(text)) return;
  const StatusOr<Topology> topology = ReadPeerTopology(text, "fuzz", LoadOptions());
  if (!topology.ok()) CheckRefusal(topology.status());
  if (!topology.ok() || topology->num_nodes() + topology->num_links() > 20'000) return;
  XCCL_CHECK(ReadNativeXml(WriteNativeXml(*topology), "written.xml").value() == *topology);
}

}  // namespace xccl::testing
