// The topology files of other tools, without and with the flag for what they leave out.
#include "tests/fuzz/fuzz.h"
#include "topologies/peers/peers.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  if (!IsPeerTopology(text)) return;
  for (const bool flag : {false, true}) {
    LoadOptions options;
    if (flag) options.link = "bandwidth=25GB/s,latency=700ns";
    const StatusOr<Topology> topology = ReadPeerTopology(text, "fuzz.txt", options);
    if (!topology.ok()) CheckRefusal(topology.status());
    if (!topology.ok() || topology->num_nodes() + topology->num_links() > 20'000) continue;
    XCCL_CHECK(ReadNativeXml(WriteNativeXml(*topology), "written.xml").value() == *topology);
  }
}

}  // namespace xccl::testing
