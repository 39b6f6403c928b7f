// Which NICs of a host its copies are joined by, and by which rails.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "topologies/host_facts.h"
#include "topologies/topology.h"

namespace xccl {

// How far a NIC is from a GPU, as NCCL counts it: by what lies between.
enum class NicDistance : uint8_t {
  kSwitch,    // at most one PCIe switch (NCCL's PIX)
  kSwitches,  // several switches (PXB)
  kCpu,       // a CPU (PHB)
  kCpus,      // several CPUs (SYS)
  kNone,      // no path through switches and CPUs
};

struct HostNic {
  NodeId node;
  int64_t bandwidth_bytes_per_s = 0;  // the bandwidth of its fastest link
  NicFacts facts;
  std::vector<NicDistance> distance;  // by rank
};

// The NICs to join, in document order. NICs that are not for the ranks' traffic are left out, and one warning
// names the place and them: interfaces of software where other NICs are devices; NICs without gdr where other
// NICs have it; NICs with less than a quarter of the fastest NIC's bandwidth; NICs that are nearest to no
// GPU. Each rule looks at the NICs that the rules before it have left, and leaves at least one.
std::vector<HostNic> NicsToJoin(const Topology& topology, const HostFacts& facts, std::string_view place,
                                std::vector<std::string>& warnings);

// True if each NIC reaches a GPU without a CPU between, or is nearer to some GPUs than to others, and all
// GPUs reach each other.
bool SuitsRails(const Topology& topology, std::span<const HostNic> nics);

// The rails that the facts of the NICs name. Absent: they name none.
struct NamedRails {
  std::vector<std::string> names;  // "rail2", "plane1", "rail2-plane1"
  std::vector<int64_t> of_nic;     // by NIC: an index into the names
};
std::optional<NamedRails> RailsOfFacts(std::span<const HostNic> nics);

}  // namespace xccl
