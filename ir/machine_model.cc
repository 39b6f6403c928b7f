#include "ir/machine_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <utility>

#include "base/file_kinds.h"
#include "base/files.h"
#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr int64_t kFormat = 2;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostPs = 1000 * kPsPerSecond;  // a launch or hop that takes longer is a mistake
constexpr int64_t kMostRatio = 1 << 20;
constexpr Protocol kProtocols[] = {Protocol::kSimple, Protocol::kLl, Protocol::kLl128};

StatusOr<ProtocolCost> ReadCost(const JsonValue& value, int64_t format) {
  if (format == 1) {
    XCCL_RETURN_IF_ERROR(value.CheckKeys({"hop_ps", "block_bytes_per_s", "data_bytes", "wire_bytes"}));
  } else {
    XCCL_RETURN_IF_ERROR(value.CheckKeys(
        {"hop_ps", "message_ps", "block_bytes_per_s", "read_bytes_per_s", "data_bytes", "wire_bytes"}));
  }
  ProtocolCost cost;
  XCCL_ASSIGN_OR_RETURN(cost.hop_ps, value.GetInteger("hop_ps", 0, kMostPs));
  XCCL_ASSIGN_OR_RETURN(cost.block_bytes_per_s, value.GetInteger("block_bytes_per_s", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(const int64_t data, value.GetInteger("data_bytes", 1, kMostRatio));
  XCCL_ASSIGN_OR_RETURN(const int64_t wire, value.GetInteger("wire_bytes", data, kMostRatio));
  cost.data_bytes = static_cast<int32_t>(data);
  cost.wire_bytes = static_cast<int32_t>(wire);
  if (format == 1) return cost;
  XCCL_ASSIGN_OR_RETURN(cost.message_ps, value.GetInteger("message_ps", 0, kMostPs));
  XCCL_ASSIGN_OR_RETURN(cost.read_bytes_per_s, value.GetInteger("read_bytes_per_s", 0, kMost));
  return cost;
}

// Reads the fields of the whole machine that format 2 has and format 1 lacks.
Status ReadRest(const JsonValue& root, MachineModel& model) {
  XCCL_ASSIGN_OR_RETURN(model.hand_off_ps, root.GetInteger("hand_off_ps", 0, kMostPs));
  XCCL_ASSIGN_OR_RETURN(model.nvlink_bytes_per_s, root.GetInteger("nvlink_bytes_per_s", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(const int64_t per_mille, root.GetInteger("nic_per_mille", 1, 1000));
  model.nic_per_mille = static_cast<int32_t>(per_mille);
  XCCL_ASSIGN_OR_RETURN(model.nic_hop_ps, root.GetInteger("nic_hop_ps", 0, kMostPs));
  XCCL_ASSIGN_OR_RETURN(const int64_t of_switch, root.GetInteger("switch_per_mille", 1, 1000));
  model.switch_per_mille = static_cast<int32_t>(of_switch);
  return OkStatus();
}

int64_t Saturated(__int128 value) { return value > kMost ? kMost : static_cast<int64_t>(value); }

int64_t TimePs(__int128 bytes, int64_t bytes_per_s) {
  if (bytes_per_s == 0) return 0;
  return Saturated(bytes * kPsPerSecond / bytes_per_s);
}

// Returns whether the node is a switch with GPUs and nothing else on it.
bool SwitchesGpusOnly(const Topology& topology, NodeId n) {
  if (topology.node(n).kind != NodeKind::kSwitch) return false;
  return std::ranges::all_of(topology.Out(n),
                             [&](LinkId l) { return topology.IsGpu(topology.link(l).to); }) &&
         std::ranges::all_of(topology.In(n), [&](LinkId l) { return topology.IsGpu(topology.link(l).from); });
}

}  // namespace

int64_t ProtocolCost::WireBytes(int64_t bytes) const {
  return Saturated((static_cast<__int128>(bytes) * wire_bytes + data_bytes - 1) / data_bytes);
}

int64_t ProtocolCost::BlockPs(int64_t bytes) const { return TimePs(bytes, block_bytes_per_s); }

int64_t ProtocolCost::FanInPs(int64_t bytes, int64_t operands) const {
  return TimePs(static_cast<__int128>(bytes) * operands,
                read_bytes_per_s > 0 ? read_bytes_per_s : block_bytes_per_s);
}

std::vector<int64_t> ReachedBandwidths(const Topology& topology, const MachineModel& model) {
  const auto nodes = static_cast<size_t>(topology.num_nodes());
  std::vector<bool> ends_nvlinks(nodes);
  for (int32_t n = 0; n < topology.num_nodes(); ++n)
    ends_nvlinks[static_cast<size_t>(n)] = topology.IsGpu(NodeId(n)) || SwitchesGpusOnly(topology, NodeId(n));
  std::vector<__int128> out(nodes), in(nodes);  // NVLink bandwidth of each node
  const auto is_nvlink = [&](const Link& link) {
    return ends_nvlinks[link.from.index()] && ends_nvlinks[link.to.index()];
  };
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    if (!is_nvlink(link)) continue;
    out[link.from.index()] += link.bandwidth_bytes_per_s;
    in[link.to.index()] += link.bandwidth_bytes_per_s;
  }
  std::vector<int64_t> reached;
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    int64_t bandwidth = link.bandwidth_bytes_per_s;
    const auto limit = [&](NodeId n, const std::vector<__int128>& sum) {
      if (!topology.IsGpu(n) || sum[n.index()] <= model.nvlink_bytes_per_s) return;
      bandwidth = std::min(bandwidth, static_cast<int64_t>(static_cast<__int128>(link.bandwidth_bytes_per_s) *
                                                           model.nvlink_bytes_per_s / sum[n.index()]));
    };
    if (is_nvlink(link) && model.nvlink_bytes_per_s > 0) {
      limit(link.from, out);
      limit(link.to, in);
    } else if (topology.node(link.from).kind == NodeKind::kNic ||
               topology.node(link.to).kind == NodeKind::kNic) {
      bandwidth = static_cast<int64_t>(static_cast<__int128>(bandwidth) * model.nic_per_mille / 1000);
    }
    reached.push_back(std::max<int64_t>(1, bandwidth));
  }
  return reached;
}

Topology WithReachedBandwidths(const Topology& topology, const MachineModel& model) {
  TopologySpec spec = topology.spec();
  const std::vector<int64_t> reached = ReachedBandwidths(topology, model);
  for (size_t l = 0; l < reached.size(); ++l) spec.links[l].bandwidth_bytes_per_s = reached[l];
  StatusOr<Topology> made = Topology::Create(std::move(spec));
  XCCL_CHECK(made.ok());  // less bandwidth makes no topology invalid
  return *std::move(made);
}

Status WriteMachineModel(const MachineModel& model, const std::string& path) {
  return WriteFileAtomically(path, [&](std::ostream& out) {
    JsonWriter writer(out);
    writer.BeginObject(JsonWriter::Layout::kLines);
    writer.Member("format", kFormat);
    writer.Member("source", model.source);
    writer.Member("launch_ps", model.launch_ps);
    writer.Member("hand_off_ps", model.hand_off_ps);
    writer.Member("nvlink_bytes_per_s", model.nvlink_bytes_per_s);
    writer.Member("nic_per_mille", int64_t{model.nic_per_mille});
    writer.Member("nic_hop_ps", model.nic_hop_ps);
    writer.Member("switch_per_mille", int64_t{model.switch_per_mille});
    writer.Key("protocols");
    writer.BeginObject(JsonWriter::Layout::kLines);
    for (const Protocol protocol : kProtocols) {
      const ProtocolCost& cost = model.CostOf(protocol);
      writer.Key(ToString(protocol));
      writer.BeginObject();
      writer.Member("hop_ps", cost.hop_ps);
      writer.Member("message_ps", cost.message_ps);
      writer.Member("block_bytes_per_s", cost.block_bytes_per_s);
      writer.Member("read_bytes_per_s", cost.read_bytes_per_s);
      writer.Member("data_bytes", cost.data_bytes);
      writer.Member("wire_bytes", cost.wire_bytes);
      writer.EndObject();
    }
    writer.EndObject();
    writer.EndObject();
    writer.Finish();
    return OkStatus();
  });
}

StatusOr<MachineModel> ReadMachineModel(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFileOfKind(path, FileKind::kMachineModel));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  const JsonValue root = document.root();
  XCCL_ASSIGN_OR_RETURN(const JsonValue format, root.Get("format"));
  XCCL_ASSIGN_OR_RETURN(const int64_t version, format.Integer(0, kMost));
  if (version < 1 || version > kFormat)
    return format.Error(fmt::format("version {}; this program reads versions 1 to {}", version, kFormat));
  MachineModel model;
  if (version == 1) {
    XCCL_RETURN_IF_ERROR(root.CheckKeys({"format", "source", "launch_ps", "protocols"}));
  } else {
    XCCL_RETURN_IF_ERROR(root.CheckKeys({"format", "source", "launch_ps", "hand_off_ps", "nvlink_bytes_per_s",
                                         "nic_per_mille", "nic_hop_ps", "switch_per_mille", "protocols"}));
    XCCL_RETURN_IF_ERROR(ReadRest(root, model));
  }
  XCCL_ASSIGN_OR_RETURN(model.source, root.GetString("source"));
  XCCL_ASSIGN_OR_RETURN(model.launch_ps, root.GetInteger("launch_ps", 0, kMostPs));
  XCCL_ASSIGN_OR_RETURN(const JsonValue protocols, root.Get("protocols"));
  XCCL_RETURN_IF_ERROR(protocols.CheckKeys({"simple", "ll", "ll128"}));
  for (const Protocol protocol : kProtocols) {
    XCCL_ASSIGN_OR_RETURN(const JsonValue value, protocols.Get(ToString(protocol)));
    XCCL_ASSIGN_OR_RETURN(model.protocols[static_cast<size_t>(protocol)], ReadCost(value, version));
  }
  return model;
}

}  // namespace xccl
