// NCCL's and RCCL's dumps, and copies of hosts that are made of them. The first byte, if it is no '<',
// chooses what flags say that the file leaves out.
#include "cli/describe/describe.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/families/modify.h"
#include "topologies/host_facts.h"
#include "topologies/nccl/nccl_xml.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {

void FuzzOne(std::string_view text) {
  LoadOptions options;
  if (!text.empty() && text[0] != '<') {
    const auto choice = static_cast<unsigned char>(text[0]);
    constexpr const char* kArchs[] = {"sm70", "sm80", "sm86", "sm90", "gfx90a", "gfx942"};
    if (choice & 1) options.gpu_arch = kArchs[choice / 4 % 6];
    if (choice & 2) options.gpus_per_switch = 1 + choice / 4 % 3;
    if (choice % 5 == 0) options.gpu_busids = "0000:00:16.0,00:17.0";
    if (choice % 3 == 0) options.nvlink_domain = 1 + choice / 4 % 9;
    text.remove_prefix(1);
  }
  HostFacts facts;
  const StatusOr<Topology> topology = ReadNcclXml(text, "fuzz.xml", options, &facts);
  if (!topology.ok()) return CheckRefusal(topology.status());
  if (topology->num_nodes() + topology->num_links() > 20'000) return;
  const StatusOr<Topology> again = ReadNativeXml(WriteNativeXml(*topology), "written.xml");
  XCCL_CHECK(again.ok());
  XCCL_CHECK(*again == *topology);
  options.hosts = 3;
  const StatusOr<Topology> hosts = Modify(*topology, options, facts);
  if (!hosts.ok()) CheckRefusal(hosts.status());
  if (topology->num_ranks() <= 200) XCCL_CHECK(!DescribeText(*topology).empty());
}

}  // namespace xccl::testing
