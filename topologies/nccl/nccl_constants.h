// The bandwidths that NCCL 2.28.9 (RCCL for xGMI) assumes for links, in one direction, and the latencies
// that this project adds. A dump states widths, counts and generations; these numbers turn them into
// bandwidth.
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
  std::string gfx;  // empty without sm: an AMD GPU of unknown gfx
  bool operator==(const GpuArch&) const = default;
};
// Parses "sm90" or "gfx942". Errors: kUsage "--gpu-arch=h100: ...".
StatusOr<GpuArch> ParseGpuArch(std::string_view text);
std::string ToString(const GpuArch& arch);
// Parses the gcn attribute of RCCL's dumps: "gfx942", or a number alone: "908", and "910" for gfx90a.
GpuArch GpuArchOfGcn(std::string_view gcn);
// The architecture of a PCI device, by vendor and device id (pci-ids' ranges); absent if it is not known.
std::optional<GpuArch> GpuArchOfPci(uint16_t vendor, uint16_t device);
inline constexpr uint16_t kNvidiaVendor = 0x10de;
inline constexpr uint16_t kAmdVendor = 0x1002;

// Bandwidth of one NVLink or xGMI link: NCCL's SMxx_NVLINK_BW, and RCCL's values per gfx.
int64_t GpuLinkBytesPerS(const GpuArch& arch);
// The NVLinks of one GPU; absent for AMD's GPUs and for an architecture that is not known.
std::optional<int64_t> NvlinksOf(const GpuArch& arch);
// False for an architecture after the first of the table that the table lacks.
bool IsKnownArch(const GpuArch& arch);
// True if machines of such GPUs usually join them by NVLink or xGMI, PCIe cards aside.
bool UsuallyHasGpuLinks(const GpuArch& arch);
// True if an NVSwitch between such GPUs multicasts and reduces (NVLS: sm90 and later).
bool HasNvls(const GpuArch& arch);

// A PCIe link has lanes × rate. `speed` is as sysfs and NCCL write it: "16 GT/s", "32.0 GT/s PCIe".
struct PcieSpeed {
  int64_t bytes_per_s_per_lane = 0;
  bool known = false;    // NCCL knows the string; else its number decides, or Gen3 if there is none
  bool present = false;  // the string has a number of a known generation
};
PcieSpeed ParsePcieSpeed(std::string_view speed);
inline constexpr int64_t kPcieLanes = 16;  // assumed where the width is absent or 0
// One lane of the first generation; each doubles it. The fallback has 16 lanes of the third, 8 GT/s.
inline constexpr int64_t kFirstPcieBytesPerS = 187'500'000;
inline constexpr int64_t kFallbackPcieBytesPerS = kPcieLanes * (kFirstPcieBytesPerS << 2);

// Identifies a host's CPU, which decides the bandwidth between its NUMA nodes.
struct CpuModel {
  std::string arch;    // x86_64, arm64, ppc64
  std::string vendor;  // GenuineIntel, AuthenticAMD, ...
  int32_t family = 0;
  int32_t model = 0;
};
struct CpuLink {
  int64_t bytes_per_s = 0;
  bool known = false;  // arch and vendor decide it; else a guess
};
CpuLink CpuLinkOf(const CpuModel& cpu);

// On-chip or unlimited links: a NIC on a CPU without PCIe, a peer-to-peer path inside a switch chip.
inline constexpr int64_t kLocalBytesPerS = 5'000'000'000'000;
// Between the parts of a GPU that MPS divides (mlopart, NCCL 2.30): each part has this to the other.
inline constexpr int64_t kPartBytesPerS = 2'618'000'000'000;
inline constexpr int64_t kDefaultNetMbps = 10'000;  // assumed where a net's speed is absent or not positive
inline constexpr int64_t kBytesPerSPerMbps = 125'000;

// Latency per link, from NCCL's hwLat table (ring with LL): 0.6 us a hop over NVLink, 1.0 us over PCIe. A
// hop through a switch is two links, so each has half. xGMI and C2C count as NVLink.
inline constexpr int64_t kGpuLinkLatencyPs = 600'000;    // GPU to GPU
inline constexpr int64_t kGpuSwitchLatencyPs = 300'000;  // GPU to NVSwitch
inline constexpr int64_t kPcieLatencyPs = 500'000;       // each PCIe link, and between NUMA nodes

}  // namespace xccl
