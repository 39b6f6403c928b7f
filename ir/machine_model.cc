#include "ir/machine_model.h"

#include <fmt/core.h>

#include <limits>
#include <ostream>

#include "base/files.h"
#include "base/json/json_value.h"
#include "base/json/json_writer.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostPs = 1000 * kPsPerSecond;  // a launch or hop that takes longer is a mistake
constexpr int64_t kMostRatio = 1 << 20;
constexpr Protocol kProtocols[] = {Protocol::kSimple, Protocol::kLl, Protocol::kLl128};

StatusOr<ProtocolCost> ReadCost(const JsonValue& value) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"hop_ps", "block_bytes_per_s", "data_bytes", "wire_bytes"}));
  ProtocolCost cost;
  XCCL_ASSIGN_OR_RETURN(cost.hop_ps, value.GetInteger("hop_ps", 0, kMostPs));
  XCCL_ASSIGN_OR_RETURN(cost.block_bytes_per_s, value.GetInteger("block_bytes_per_s", 0, kMost));
  XCCL_ASSIGN_OR_RETURN(const int64_t data, value.GetInteger("data_bytes", 1, kMostRatio));
  XCCL_ASSIGN_OR_RETURN(const int64_t wire, value.GetInteger("wire_bytes", data, kMostRatio));
  cost.data_bytes = static_cast<int32_t>(data);
  cost.wire_bytes = static_cast<int32_t>(wire);
  return cost;
}

int64_t Saturated(__int128 value) { return value > kMost ? kMost : static_cast<int64_t>(value); }

}  // namespace

int64_t ProtocolCost::WireBytes(int64_t bytes) const {
  return Saturated((static_cast<__int128>(bytes) * wire_bytes + data_bytes - 1) / data_bytes);
}

int64_t ProtocolCost::BlockPs(int64_t bytes) const {
  if (block_bytes_per_s == 0) return 0;
  return Saturated(static_cast<__int128>(bytes) * kPsPerSecond / block_bytes_per_s);
}

MachineModel HopperModel() {
  constexpr int64_t kGb = 1'000'000'000;
  MachineModel model;
  model.source = "NCCL 2.30 tuning tables, Hopper on NVLink; launch estimated";
  model.launch_ps = 3'000'000;
  // NCCL's time for a hop of a ring: 0.6 us LL, 1.9 us LL128, 3.4 us simple.
  model.protocols[static_cast<size_t>(Protocol::kSimple)] = {2'800'000, 38'700'000'000, 1, 1};
  model.protocols[static_cast<size_t>(Protocol::kLl)] = {0, 18 * kGb, 8, 16};
  model.protocols[static_cast<size_t>(Protocol::kLl128)] = {1'300'000, 36'700'000'000, 120, 128};
  return model;
}

Status WriteMachineModel(const MachineModel& model, const std::string& path) {
  return WriteFileAtomically(path, [&](std::ostream& out) {
    JsonWriter writer(out);
    writer.BeginObject(JsonWriter::Layout::kLines);
    writer.Member("format", kFormat);
    writer.Member("source", model.source);
    writer.Member("launch_ps", model.launch_ps);
    writer.Key("protocols");
    writer.BeginObject(JsonWriter::Layout::kLines);
    for (const Protocol protocol : kProtocols) {
      const ProtocolCost& cost = model.CostOf(protocol);
      writer.Key(ToString(protocol));
      writer.BeginObject();
      writer.Member("hop_ps", cost.hop_ps);
      writer.Member("block_bytes_per_s", cost.block_bytes_per_s);
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
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, path));
  const JsonValue root = document.root();
  XCCL_RETURN_IF_ERROR(root.CheckKeys({"format", "source", "launch_ps", "protocols"}));
  XCCL_ASSIGN_OR_RETURN(const JsonValue format, root.Get("format"));
  XCCL_ASSIGN_OR_RETURN(const int64_t version, format.Integer(0, kMost));
  if (version != kFormat)
    return format.Error(fmt::format("version {}; this program reads version {}", version, kFormat));
  MachineModel model;
  XCCL_ASSIGN_OR_RETURN(model.source, root.GetString("source"));
  XCCL_ASSIGN_OR_RETURN(model.launch_ps, root.GetInteger("launch_ps", 0, kMostPs));
  XCCL_ASSIGN_OR_RETURN(const JsonValue protocols, root.Get("protocols"));
  XCCL_RETURN_IF_ERROR(protocols.CheckKeys({"simple", "ll", "ll128"}));
  for (const Protocol protocol : kProtocols) {
    XCCL_ASSIGN_OR_RETURN(const JsonValue value, protocols.Get(ToString(protocol)));
    XCCL_ASSIGN_OR_RETURN(model.protocols[static_cast<size_t>(protocol)], ReadCost(value));
  }
  return model;
}

}  // namespace xccl
