// The numbers that NCCL 2.28.9 (RCCL for xGMI) assumes of links, one direction, and the latencies that this
// project adds to them. A dump states widths, counts and generations; these turn them into bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl {

// A GPU's architecture: NVIDIA's compute capability × 10 (sm90 -> 90) or AMD's gfx number (gfx90a -> "90a").
struct GpuArch {
  std::optional<int32_t> sm;
  std::string gfx;
  bool operator==(const GpuArch&) const = default;
};
// "sm90" or "gfx942". Error: kUsage "--gpu-arch=h100: ...".
StatusOr<GpuArch> ParseGpuArch(std::string_view text);
std::string ToString(const GpuArch& arch);
// The gcn attribute of RCCL's dumps: "gfx942", or a number alone: "908", and "910" for gfx90a.
GpuArch GpuArchOfGcn(std::string_view gcn);

// Of one NVLink or xGMI link; NCCL's SMxx_NVLINK_BW and RCCL's values per gfx.
int64_t GpuLinkBytesPerS(const GpuArch& arch);
// Does an NVSwitch between such GPUs multicast and reduce (NVLS: sm90 and later)?
bool HasNvls(const GpuArch& arch);

// PCIe: lanes × rate. `speed` as sysfs and NCCL write it: "16 GT/s", "32.0 GT/s PCIe".
struct PcieSpeed {
  int64_t bytes_per_s_per_lane = 0;
  bool known = false;    // a string that NCCL knows; else its number was used, or Gen3 where there is none
  bool present = false;  // there is a number
};
PcieSpeed ParsePcieSpeed(std::string_view speed);
inline constexpr int64_t kPcieLanes = 16;  // where the width is absent or 0

// Between two NUMA nodes of a host.
struct CpuModel {
  std::string arch;    // x86_64, arm64, ppc64
  std::string vendor;  // GenuineIntel, AuthenticAMD, ...
  int32_t family = 0;
  int32_t model = 0;
};
struct CpuLink {
  int64_t bytes_per_s = 0;
  bool known = false;  // arch and vendor say which; else a guess
};
CpuLink CpuLinkOf(const CpuModel& cpu);

// On-chip or unlimited: a NIC that hangs on a CPU without PCIe, a peer-to-peer path inside a switch chip.
inline constexpr int64_t kLocalBytesPerS = 5'000'000'000'000;
inline constexpr int64_t kDefaultNetMbps = 10'000;  // where a net's speed is absent or not positive
inline constexpr int64_t kBytesPerSPerMbps = 125'000;

// Latency a link. From NCCL's hwLat table, ring with LL: 0.6 us a hop over NVLink, 1.0 us over PCIe; a hop
// through a switch is two links, so each has half. xGMI and C2C count as NVLink.
inline constexpr int64_t kGpuLinkLatencyPs = 600'000;    // GPU to GPU
inline constexpr int64_t kGpuSwitchLatencyPs = 300'000;  // GPU to NVSwitch
inline constexpr int64_t kPcieLatencyPs = 500'000;       // each PCIe link, and between NUMA nodes

}  // namespace xccl
