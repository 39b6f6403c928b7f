// Files of other tools in tests.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/strings.h"
#include "topologies/families/networks.h"
#include "topologies/peers/peers.h"

namespace xccl {

inline StatusOr<Topology> ReadPeer(std::string_view text, const LoadOptions& options = {}) {
  if (!IsPeerTopology(text)) return InvalidInput("the text is of no known format");
  return ReadPeerTopology(text, "folder/peer.txt", options);
}

// The message with which a text is refused.
inline std::string Refusal(std::string_view text, const LoadOptions& options = {}) {
  const StatusOr<Topology> topology = ReadPeer(text, options);
  return topology.ok() ? "read" : topology.status().message();
}

// A seeded machine: some hosts of equally many GPUs, some switches, and cables between random nodes. GPUs
// come first. Its name is that of ReadPeer's file.
struct RandomMachine {
  RandomMachine(Random& random, uint64_t most_gpus_per_host) {
    hosts = 2 + static_cast<int>(random.Below(2));
    gpus_per_host = 1 + static_cast<int>(random.Below(most_gpus_per_host));
    switches = static_cast<int>(random.Below(4));
    spec.name = "peer";
    for (int h = 0; h < hosts; ++h) {
      spec.hosts.push_back(Host{fmt::format("h{}", h)});
      for (int g = 0; g < gpus_per_host; ++g) AddNode(NodeKind::kGpu, std::to_string(g), HostId(h), spec);
    }
    for (int s = 0; s < switches; ++s)
      AddNode(NodeKind::kSwitch, fmt::format("switch{}", hosts * gpus_per_host + s), std::nullopt, spec);
    const uint64_t nodes = spec.nodes.size();
    for (uint64_t cables = 1 + random.Below(3 * nodes); cables > 0; --cables) {
      const auto a = static_cast<int64_t>(random.Below(nodes));
      const auto b = static_cast<int64_t>((a + 1 + random.Below(nodes - 1)) % nodes);
      AddCable(NodeId(a), NodeId(b),
               {static_cast<int64_t>(1 + random.Below(800)) * 1'000'000'000,
                static_cast<int64_t>(random.Below(3000)) * 1000},
               spec);
    }
  }
  size_t num_cables() const { return spec.links.size() / 2; }
  const Link& cable(size_t c) const { return spec.links[2 * c]; }

  int hosts, gpus_per_host, switches;
  TopologySpec spec;
};

}  // namespace xccl
