#include "runtime/cuda/line_order.h"

#include <fmt/core.h>

#include <optional>
#include <utility>
#include <vector>

#include "runtime/host/parcel.h"

namespace xccl::cuda {
namespace {

constexpr int32_t kLeastArch = 70;  // NCCL's LL128 begins there, too

// By rank: the UUID of its device; empty for ranks of other hosts.
StatusOr<IdVector<Rank, std::string>> TellDevices(const std::string& name, const Program& program,
                                                  std::span<const LocalRank> ranks,
                                                  const Exchange& exchange) {
  Parcel mine;
  for (const LocalRank& local : ranks) {
    AppendNumber(mine, static_cast<uint64_t>(local.rank.value));
    AppendText(mine, local.gpu->properties().uuid);
  }
  XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, exchange.all(std::move(mine)));
  IdVector<Rank, std::string> devices(static_cast<size_t>(program.ranks.size()));
  for (Parcel& parcel : all) {
    ParcelReader reader(std::move(parcel));
    while (!reader.AtEnd()) {
      const uint64_t rank = reader.Number();
      std::string uuid = reader.Text();
      if (reader.broken() || rank >= static_cast<uint64_t>(program.ranks.size()))
        return InvalidInput(name + ": a process sent a broken description");
      devices[Rank(static_cast<int32_t>(rank))] = std::move(uuid);
    }
  }
  return devices;
}

// This process's number for a device.
StatusOr<std::optional<DeviceId>> DeviceOf(const Gpu& gpu, const std::string& uuid) {
  int devices = 0;
  XCCL_RETURN_IF_ERROR(gpu.Check(gpu.driver().DeviceGetCount(&devices), "cuDeviceGetCount"));
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    DeviceId device = 0;
    Uuid its;
    XCCL_RETURN_IF_ERROR(gpu.Check(gpu.driver().DeviceGet(&device, ordinal), "cuDeviceGet"));
    XCCL_RETURN_IF_ERROR(gpu.Check(gpu.driver().DeviceGetUuid(&its, device), "cuDeviceGetUuid"));
    if (uuid == std::string(reinterpret_cast<const char*>(its.bytes), sizeof its.bytes)) return {device};
  }
  return std::optional<DeviceId>();
}

Status CheckConnection(const std::string& name, const LocalRank& local, Rank peer, const std::string& uuid) {
  const Gpu& gpu = *local.gpu;
  if (uuid.empty() || uuid == gpu.properties().uuid) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(const std::optional<DeviceId> device, DeviceOf(gpu, uuid));
  if (!device) return OkStatus();
  // Atomics of a peer are native over NVLink and C2C, and not over PCIe.
  int native = 0;
  XCCL_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().DeviceGetP2PAttribute(&native, PeerAttribute::kNativeAtomics, gpu.id(), *device),
                "cuDeviceGetP2PAttribute"));
  if (native != 0) return OkStatus();
  return InvalidInput(
      fmt::format("{}: protocol ll128 between ranks {} and {}: devices {} and {} are not joined "
                  "by NVLink; expected NVLink or one device; hint: protocol simple",
                  name, local.rank.value, peer.value, gpu.id(), *device));
}

}  // namespace

Status CheckLineOrder(const std::string& name, const Program& program, std::span<const LocalRank> ranks,
                      const Exchange& exchange) {
  if (program.protocol != Protocol::kLl128) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(const auto devices, TellDevices(name, program, ranks, exchange));
  for (const LocalRank& local : ranks) {
    const int32_t arch = local.gpu->properties().arch;
    if (arch < kLeastArch)
      return InvalidInput(
          fmt::format("{}: protocol ll128 on device {} of sm_{}; expected sm_{} or later; hint: "
                      "protocol simple",
                      name, local.gpu->id(), arch, kLeastArch));
    for (const Connection& c : program.connections) {
      if (c.src != local.rank && c.dst != local.rank) continue;
      const Rank peer = c.src == local.rank ? c.dst : c.src;
      XCCL_RETURN_IF_ERROR(CheckConnection(name, local, peer, devices[peer]));
    }
  }
  return OkStatus();
}

}  // namespace xccl::cuda
