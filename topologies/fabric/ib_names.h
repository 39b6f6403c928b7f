// The names that InfiniBand devices give themselves: a host's adapters are "HOST DEVICE", a managed switch is
// "MF0;NAME:MODEL/CHIP", and devices that nobody named tell their product.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xccl {

struct IbAdapterName {
  std::string host;    // empty: the name tells none
  std::string device;  // empty: the name tells none
  bool operator==(const IbAdapterName&) const = default;
};

// "node1 mlx5_0" and "node1 HCA-1" have both; "node1" has a host alone. A product's name and "localhost" are
// no host.
IbAdapterName ReadIbAdapterName(std::string_view name);
// The port of a switch that reduces (SHARP) shows as an adapter of this name.
bool IsIbAggregationNode(std::string_view name);
// Does the name say by itself that it is a switch's? "MF0;leaf-1:MQM9700/U1", "Quantum Mellanox
// Technologies".
bool LooksLikeIbSwitch(std::string_view name);
// Is it "HOST DEVICE" with a device such as mlx5_0, HCA-1 or hfi1_0?
bool LooksLikeIbAdapter(std::string_view name);

// Names of switches as their operator calls them: "leaf-1" for "MF0;leaf-1:MQM9700/U1"; "core/L07/U1" where
// chips of one chassis share its name; the name as it is where that is still no single one's.
std::vector<std::string> ShortIbSwitchNames(const std::vector<std::string>& names);

}  // namespace xccl
