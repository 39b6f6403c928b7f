#include "topologies/fabric/damage.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

std::string EndName(const Fabric& fabric, const FabricEnd& end) {
  const std::string port = end.port > 0 ? fmt::format(" port {}", end.port) : "";
  if (end.is_switch) return fabric.switches[static_cast<size_t>(end.index)].name + port;
  const FabricAdapter& adapter = fabric.adapters[static_cast<size_t>(end.index)];
  return fmt::format("{}{}{}{}", adapter.host, adapter.device.empty() ? "" : " ", adapter.device, port);
}

}  // namespace

std::vector<std::string> DamageOf(const Fabric& fabric, std::string_view file) {
  std::vector<std::string> damage;
  for (const FabricCable& cable : fabric.cables)
    if (cable.full_bandwidth_bytes_per_s > cable.bandwidth_bytes_per_s)
      damage.push_back(fmt::format(
          "{}{}: damage: {} to {} runs at {} of {}", file,
          cable.line > 0 ? fmt::format(":{}", cable.line) : "", EndName(fabric, cable.a),
          EndName(fabric, cable.b), FormatBandwidthShort(static_cast<double>(cable.bandwidth_bytes_per_s)),
          FormatBandwidthShort(static_cast<double>(cable.full_bandwidth_bytes_per_s))));
  if (fabric.down_ports > 0)
    damage.push_back(
        fmt::format("{}: damage: {} that the file lists as down", file, Counted(fabric.down_ports, "port")));
  return damage;
}

}  // namespace xccl
