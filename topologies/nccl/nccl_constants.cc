#include "topologies/nccl/nccl_constants.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

bool IsGfx(std::string_view text) {
  return text.size() >= 3 && text.size() <= 5 && std::ranges::all_of(text, [](unsigned char c) {
           return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

StatusOr<GpuArch> ParseGpuArch(std::string_view text) {
  if (text.starts_with("sm")) {
    std::string_view digits = text.substr(2);
    if (digits.starts_with('_')) digits.remove_prefix(1);
    if (const StatusOr<int64_t> sm = ParseInteger(digits, 30, 999); sm.ok())
      return GpuArch{static_cast<int32_t>(*sm), ""};
  }
  if (text.starts_with("gfx") && IsGfx(text.substr(3)))
    return GpuArch{std::nullopt, std::string(text.substr(3))};
  return UsageError(
      fmt::format("--gpu-arch={}: no GPU architecture; expected one such as sm90 or gfx942", text));
}

std::string ToString(const GpuArch& arch) {
  return arch.sm ? fmt::format("sm{}", *arch.sm) : "gfx" + arch.gfx;
}

GpuArch GpuArchOfGcn(std::string_view gcn) {
  if (gcn.starts_with("gfx")) gcn.remove_prefix(3);
  return GpuArch{std::nullopt, gcn == "910" ? "90a" : std::string(gcn)};
}

int64_t GpuLinkBytesPerS(const GpuArch& arch) {
  if (!arch.sm) {
    if (arch.gfx.starts_with("94") || arch.gfx.starts_with("95")) return 48'000'000'000;
    return arch.gfx == "90a" ? 36'000'000'000 : 24'000'000'000;
  }
  const int32_t sm = *arch.sm;
  if (sm >= 100) return 40'100'000'000;
  if (sm >= 90) return 20'600'000'000;
  if (sm == 86) return 12'000'000'000;
  if (sm >= 70) return 20'000'000'000;
  return sm >= 60 ? 18'000'000'000 : 20'000'000'000;
}

bool HasNvls(const GpuArch& arch) { return arch.sm && *arch.sm >= 90; }

PcieSpeed ParsePcieSpeed(std::string_view speed) {
  constexpr std::string_view kGigaTransfers[] = {"2.5", "5", "8", "16", "32", "64"};
  const std::string_view text = Trim(speed);
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view number = text.substr(0, digits);
  if (number.ends_with(".0")) number.remove_suffix(2);
  const std::string_view unit = Trim(text.substr(digits));
  for (size_t g = 0; g < std::size(kGigaTransfers); ++g)
    if (number == kGigaTransfers[g] && unit.starts_with("GT/s"))
      return PcieSpeed{kFirstPcieBytesPerS << g, unit == "GT/s" || unit == "GT/s PCIe", true};
  return PcieSpeed{kFirstPcieBytesPerS << 2, false, false};
}

CpuLink CpuLinkOf(const CpuModel& cpu) {
  if (cpu.arch == "ppc64") return {32'000'000'000, true};
  if (cpu.arch == "arm64") return {6'000'000'000, true};
  if (cpu.arch == "x86_64") {
    if (cpu.vendor == "AuthenticAMD") return {16'000'000'000, true};
    if (cpu.vendor == "GenuineIntel") {
      if (cpu.family != 6 || cpu.model < 0x55) return {6'000'000'000, true};  // up to Broadwell
      if (cpu.model < 0x8f) return {10'000'000'000, true};                    // Skylake
      return {cpu.model < 0xcf ? 22'000'000'000 : 40'000'000'000, true};      // Sapphire, Emerald Rapids
    }
    if (cpu.vendor == "CentaurHauls" || Trim(cpu.vendor) == "Shanghai")
      return {cpu.family == 7 && cpu.model == 0x5b ? 9'000'000'000 : 6'000'000'000,
              true};  // Yongfeng, others
  }
  return {10'000'000'000, false};
}

}  // namespace xccl
