// The machine: a directed multigraph of GPUs (ranks), switches, NICs and CPUs joined by links. Readers and
// generators fill in a TopologySpec; Topology::Create validates it once, after which it never changes. XML:
// topologies/xml/native_xml.h; NCCL dumps: topologies/nccl/nccl_xml.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/graph/grouped.h"
#include "base/ids.h"
#include "base/status.h"

namespace xccl {

enum class NodeKind : uint8_t {
  kGpu,     // a rank: holds data, sends, receives, reduces
  kSwitch,  // forwards and holds no data
  kNic,     // forwards between a host and a fabric
  kCpu,     // forwards between PCIe trees
};
inline constexpr NodeKind kNodeKinds[] = {NodeKind::kGpu, NodeKind::kSwitch, NodeKind::kNic, NodeKind::kCpu};
std::string_view NodeKindName(NodeKind kind);  // "gpu"

struct Host {
  std::string name;  // unique
  bool operator==(const Host&) const = default;
};

struct Node {
  NodeKind kind = NodeKind::kGpu;
  std::string id;              // as in XML; unique within (host, kind)
  std::optional<HostId> host;  // absent for fabric switches; every GPU has one
  bool multicast = false;      // switches: can copy one input to many outputs (NVLS)
  bool reduce = false;         // switches: can sum many inputs into one output (NVLS, SHARP)
  bool operator==(const Node&) const = default;
};

// One direction of a cable. Equal links are parallel links.
struct Link {
  NodeId from;
  NodeId to;
  int64_t bandwidth_bytes_per_s = 0;  // > 0
  int64_t latency_ps = 0;             // alpha: delays arrival, does not occupy the link; >= 0
  int64_t overhead_ps = 0;            // occupies the link once per message; >= 0
  bool operator==(const Link&) const = default;
};

struct TopologySpec {
  std::string name;
  std::string source;         // source of the numbers; may be empty
  std::string gpu_arch = {};  // architecture of all its GPUs: "sm90", "gfx942"; empty: not known
  std::vector<Host> hosts;    // indexed by HostId; never empty in a Topology
  std::vector<Node> nodes;    // indexed by NodeId, document order
  std::vector<Link> links;    // indexed by LinkId, document order; a duplex cable is two, forward first
  std::vector<std::string> warnings;  // each says what a reader had to guess or where a file contradicts
                                      // itself; not part of the value
  bool operator==(const TopologySpec& other) const {
    return name == other.name && source == other.source && gpu_arch == other.gpu_arch &&
           hosts == other.hosts && nodes == other.nodes && links == other.links;
  }
};

// Checks the name of a host or the id of a node. It must not be empty or contain '/', ',', '*', '<', '>',
// '"', "..", blanks or control characters, which mean something in references. It is UTF-8. Errors:
// "'a/b': expected a name without ...".
Status CheckNodeName(std::string_view name);

// Checks the name of an architecture: "sm" and a number, or "gfx" and hexadecimal digits. Errors: "arch
// 'h100':
// ...".
Status CheckGpuArch(std::string_view arch);

// A machine of at least so many ranks is large: work for each rank, let alone for each pair of ranks, takes
// longer than all other work for compressed schedules.
inline constexpr int32_t kLargeMachine = 4096;

// Invariants: 1. there is at least one GPU; 2. ranks are the GPUs in node order; 3. every GPU has a host;
// 4. links join different existing nodes and have bandwidth > 0, latency and overhead >= 0, within the limits
// of base/units.h; all bandwidths together are at most 2000000000GB/s; 5. ids are unique in (host, kind),
// host names are unique, and all pass CheckNodeName; 6. all text is UTF-8; 7. gpu_arch is empty or passes
// CheckGpuArch. Immutable, safe to share between threads.
class Topology {
 public:
  // Errors: kInvalidInput naming the node or link that breaks an invariant. GPUs without a host get the
  // implicit host. Bytes of the name and the source that are not UTF-8 (a file's name may have some) become
  // U+FFFD.
  static StatusOr<Topology> Create(TopologySpec spec);

  const TopologySpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  const std::string& gpu_arch() const { return spec_.gpu_arch; }
  int32_t num_ranks() const { return static_cast<int32_t>(rank_node_.size()); }
  int32_t num_nodes() const { return static_cast<int32_t>(spec_.nodes.size()); }
  int32_t num_links() const { return static_cast<int32_t>(spec_.links.size()); }
  int32_t num_hosts() const { return static_cast<int32_t>(spec_.hosts.size()); }
  const Node& node(NodeId n) const { return spec_.nodes[n.index()]; }
  const Link& link(LinkId l) const { return spec_.links[l.index()]; }
  NodeId NodeOf(Rank r) const { return rank_node_[r.index()]; }
  std::optional<Rank> RankOf(NodeId n) const { return node_rank_[n.index()]; }
  bool IsGpu(NodeId n) const { return node(n).kind == NodeKind::kGpu; }
  HostId HostOf(Rank r) const { return *node(NodeOf(r)).host; }
  // Out: the links that leave n; In: the links that enter n; by id.
  std::span<const LinkId> Out(NodeId n) const { return out_[n.value]; }
  std::span<const LinkId> In(NodeId n) const { return in_[n.value]; }
  // Node name for messages: "gpu 3", "switch nvswitch", with "h0/" before the id if there are several hosts.
  std::string NodeName(NodeId n) const;
  std::string LinkName(LinkId l) const;  // "0->1", with node names as in XML references

  bool operator==(const Topology& other) const { return spec_ == other.spec_; }

 private:
  Topology() = default;

  TopologySpec spec_;
  std::vector<NodeId> rank_node_;
  std::vector<std::optional<Rank>> node_rank_;
  Grouped<LinkId> out_, in_;  // by node
};

}  // namespace xccl
