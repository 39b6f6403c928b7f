// The hosts of a fabric: adapters that belong together, under one name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "topologies/fabric/fabric.h"

namespace xccl {

// An adapter and the cables at it.
struct FabricPort {
  int32_t adapter = 0;
  std::vector<int32_t> cables;
};

struct FabricHost {
  std::string name;
  std::vector<FabricPort> ports;  // by device and guid; mlx5_2 comes before mlx5_10
  // No adapter has a device or a guid: together they stand for all of the host's network.
  bool whole = false;
};

// True if `a` comes before `b`, where the numbers in names count as numbers: gpu2 before gpu10.
bool NaturallyBefore(std::string_view a, std::string_view b);

// The hosts that a cable reaches, in the order of their names. An adapter without a host belongs to the host
// that its system guid names; else the adapters of one system guid, or the adapter alone, are a host named
// "ca-GUID"; one warning says so.
std::vector<FabricHost> HostsOf(const Fabric& fabric, std::string_view file,
                                std::vector<std::string>& warnings);

// The index of each name among the hosts, in the order of the names. A name fits a host of that name; else
// the one host whose name is the same up to its first dot and case. Errors: kInvalidInput "no host 'gpu9';
// did you mean ...?"; a host named twice.
StatusOr<std::vector<size_t>> FindHosts(std::span<const std::string> names,
                                        std::span<const std::string> hosts);

// Hosts by a list such as gpu[001-016], or by a pattern with * and ?.
class HostPattern {
 public:
  // Errors: those of ExpandHostList.
  static StatusOr<HostPattern> Read(std::string_view text);
  // Names of a list fit up to their first dot and case.
  bool Names(std::string_view host) const;

 private:
  std::string wildcards_;                   // empty: a list
  std::unordered_set<std::string> listed_;  // first labels, in lower case
};

}  // namespace xccl
