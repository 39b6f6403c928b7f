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

// Compute capabilities and their NVLinks (NVIDIA's datasheets; 107: NCCL's design note for Vera Rubin).
struct Nvlinks {
  int32_t sm;
  int64_t links;
  bool usual;  // false: none, or on a bridge between two cards
};
constexpr Nvlinks kNvlinks[] = {
    {60, 4, true},   {61, 0, false},  {62, 0, false},  {70, 6, true},   {72, 0, false},  {75, 2, false},
    {80, 12, true},  {86, 4, false},  {87, 0, false},  {89, 0, false},  {90, 18, true},  {100, 18, true},
    {101, 0, false}, {103, 18, true}, {107, 36, true}, {110, 0, false}, {120, 0, false}, {121, 0, false}};

const Nvlinks* FindNvlinks(int32_t sm) {
  const Nvlinks* found = nullptr;
  for (const Nvlinks& row : kNvlinks)
    if (row.sm <= sm) found = &row;
  return found;
}

}  // namespace

std::optional<GpuArch> GpuArchOfPci(uint16_t vendor, uint16_t device) {
  struct Range {
    uint16_t vendor, first, last;
    std::string_view arch;
  };
  static constexpr Range kRanges[] = {
      {kNvidiaVendor, 0x15f0, 0x15ff, "sm60"},  {kNvidiaVendor, 0x1db0, 0x1dff, "sm70"},
      {kNvidiaVendor, 0x1e00, 0x1fff, "sm75"},  {kNvidiaVendor, 0x2080, 0x20ff, "sm80"},
      {kNvidiaVendor, 0x2200, 0x22ff, "sm86"},  {kNvidiaVendor, 0x2300, 0x237f, "sm90"},
      {kNvidiaVendor, 0x2480, 0x25ff, "sm86"},  {kNvidiaVendor, 0x2680, 0x28ff, "sm89"},
      {kNvidiaVendor, 0x2900, 0x29ff, "sm100"}, {kNvidiaVendor, 0x2b80, 0x2dff, "sm120"},
      {kNvidiaVendor, 0x2e00, 0x2eff, "sm121"}, {kNvidiaVendor, 0x3070, 0x307f, "sm107"},
      {kNvidiaVendor, 0x3180, 0x31ff, "sm103"}, {kAmdVendor, 0x66a0, 0x66af, "gfx906"},
      {kAmdVendor, 0x7388, 0x738f, "gfx908"},   {kAmdVendor, 0x7408, 0x740f, "gfx90a"},
      {kAmdVendor, 0x74a0, 0x74bf, "gfx942"},   {kAmdVendor, 0x75a0, 0x75bf, "gfx950"}};
  for (const Range& range : kRanges)
    if (range.vendor == vendor && range.first <= device && device <= range.last)
      return ParseGpuArch(range.arch).value();
  return std::nullopt;
}

std::optional<int64_t> NvlinksOf(const GpuArch& arch) {
  if (!arch.sm) return std::nullopt;
  const Nvlinks* row = FindNvlinks(*arch.sm);
  if (row == nullptr) return 0;
  return row->sm == *arch.sm ? std::optional(row->links) : std::nullopt;
}

bool IsKnownArch(const GpuArch& arch) {
  // Vega, the Instincts and the RDNA cards of ROCm's table of GPUs; empty: not stated.
  constexpr std::string_view kGfx[] = {"",    "900", "906", "908", "90a", "940",
                                       "941", "942", "950", "10",  "11",  "12"};
  if (!arch.sm)
    return std::ranges::any_of(kGfx, [&](std::string_view known) {
      return arch.gfx == known || (known.size() == 2 && arch.gfx.size() == 4 && arch.gfx.starts_with(known));
    });
  const Nvlinks* row = FindNvlinks(*arch.sm);
  return row == nullptr || row->sm == *arch.sm;
}

bool UsuallyHasGpuLinks(const GpuArch& arch) {
  if (!arch.sm) return arch.gfx.starts_with("9") && arch.gfx != "900" && arch.gfx != "906";
  const Nvlinks* row = FindNvlinks(*arch.sm);
  return row != nullptr && row->sm == *arch.sm && row->usual;
}

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
  if (arch.sm) return fmt::format("sm{}", *arch.sm);
  return arch.gfx.empty() ? "AMD" : "gfx" + arch.gfx;
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
