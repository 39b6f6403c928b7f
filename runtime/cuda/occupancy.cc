// A cubin is an ELF file of 64 bits. Sections .nv.info hold attributes: a format, a number, and two bytes
// that are a value or, in format 4, the size of the value that follows. Attribute 0x2f is the number of
// registers of a function, as {symbol, number}. The block's shared memory is the size of .nv.shared.KERNEL,
// of which compilers since CUDA 12 count 1 KiB that the system keeps, if there is a section
// .nv.shared.reserved.0.
#include "runtime/cuda/occupancy.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace xccl::cuda {
namespace {

constexpr uint8_t kSized = 4, kRegisterCount = 0x2f;
constexpr Elf64_Half kCuda = 190;  // EM_CUDA
constexpr int64_t kReservedShared = 1024;

class Cubin {
 public:
  explicit Cubin(std::string_view bytes) : bytes_(bytes) {}

  StatusOr<KernelResources> Read(std::string_view kernel) {
    XCCL_RETURN_IF_ERROR(ReadSections());
    KernelResources resources;
    XCCL_ASSIGN_OR_RETURN(resources.registers, Registers(kernel));
    const Elf64_Shdr* const shared = Find(fmt::format(".nv.shared.{}", kernel));
    if (shared != nullptr) resources.shared_bytes = static_cast<int64_t>(shared->sh_size);
    if (Find(".nv.shared.reserved.0") != nullptr)
      resources.shared_bytes = std::max<int64_t>(0, resources.shared_bytes - kReservedShared);
    return resources;
  }

 private:
  template <class T>
  StatusOr<T> At(uint64_t offset, std::string_view what) const {
    T value;
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof value)
      return InvalidInput(fmt::format("cubin: {} at byte {} of {}; expected {} bytes there", what, offset,
                                      bytes_.size(), sizeof value));
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  Status ReadSections() {
    XCCL_ASSIGN_OR_RETURN(const auto head, At<Elf64_Ehdr>(0, "the header"));
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_machine != kCuda)
      return InvalidInput("cubin: another kind of file; expected ELF of 64 bits for CUDA");
    if (head.e_shentsize != sizeof(Elf64_Shdr))
      return InvalidInput(
          fmt::format("cubin: sections of {} bytes; expected {}", head.e_shentsize, sizeof(Elf64_Shdr)));
    for (uint64_t s = 0; s < head.e_shnum; ++s) {
      XCCL_ASSIGN_OR_RETURN(const auto section,
                            At<Elf64_Shdr>(head.e_shoff + s * sizeof(Elf64_Shdr), "a section"));
      if (section.sh_type != SHT_NOBITS &&
          (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset))
        return InvalidInput(fmt::format("cubin: section {} is {} bytes from byte {} on; the file has {}", s,
                                        section.sh_size, section.sh_offset, bytes_.size()));
      sections_.push_back(section);
    }
    if (head.e_shstrndx >= sections_.size())
      return InvalidInput(
          fmt::format("cubin: names in section {}; expected 0 to {}", head.e_shstrndx, sections_.size()));
    names_ = sections_[head.e_shstrndx];
    return OkStatus();
  }

  std::string_view BytesOf(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    return bytes_.substr(section.sh_offset, section.sh_size);
  }
  // Text in a table of strings, up to its end at most.
  std::string_view NameAt(const Elf64_Shdr& strings, uint64_t at) const {
    const std::string_view all = BytesOf(strings);
    if (at >= all.size()) return {};
    return all.substr(at, all.substr(at).find('\0'));
  }
  const Elf64_Shdr* Find(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_)
      if (NameAt(names_, section.sh_name) == name) return &section;
    return nullptr;
  }

  // The name of a function in the table of symbols.
  std::string_view SymbolName(uint32_t symbol) const {
    const Elf64_Shdr* const symbols = Find(".symtab");
    if (symbols == nullptr || symbols->sh_link >= sections_.size()) return {};
    const std::string_view all = BytesOf(*symbols);
    Elf64_Sym entry;
    const uint64_t at = uint64_t{symbol} * sizeof entry;
    if (at > all.size() || all.size() - at < sizeof entry) return {};
    std::memcpy(&entry, all.data() + at, sizeof entry);
    return NameAt(sections_[symbols->sh_link], entry.st_name);
  }

  StatusOr<int32_t> Registers(std::string_view kernel) const {
    const Elf64_Shdr* const info = Find(".nv.info");
    if (info == nullptr) return InvalidInput("cubin: no section .nv.info");
    const std::string_view all = BytesOf(*info);
    for (uint64_t at = 0; at + 4 <= all.size();) {
      uint16_t size = 0;
      std::memcpy(&size, all.data() + at + 2, sizeof size);
      const auto format = static_cast<uint8_t>(all[at]), attribute = static_cast<uint8_t>(all[at + 1]);
      at += 4;
      if (format != kSized) continue;
      if (size > all.size() - at)
        return InvalidInput(
            fmt::format("cubin: an attribute of {} bytes, with {} left of .nv.info", size, all.size() - at));
      uint32_t value[2] = {};
      if (attribute == kRegisterCount && size == sizeof value) {
        std::memcpy(value, all.data() + at, sizeof value);
        if (SymbolName(value[0]) == kernel) return static_cast<int32_t>(value[1]);
      }
      at += size;
    }
    return InvalidInput(fmt::format("cubin: no registers of {} in .nv.info", kernel));
  }

  const std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Shdr names_ = {};
};

// The limits of a multiprocessor by architecture. All have 64 Ki registers in four parts, given out to warps
// in units of 256.
struct Limits {
  int32_t arch;
  int32_t warps, blocks;
  int64_t shared_bytes;
};
constexpr Limits kLimits[] = {{80, 64, 32, 164 << 10},  {86, 48, 16, 100 << 10}, {87, 48, 16, 164 << 10},
                              {89, 48, 24, 100 << 10},  {90, 64, 32, 228 << 10}, {100, 64, 32, 228 << 10},
                              {103, 64, 32, 228 << 10}, {120, 48, 24, 100 << 10}};
constexpr int32_t kWarp = 32, kParts = 4, kPartRegisters = (64 << 10) / kParts, kRegisterUnit = 256;
constexpr int32_t kMostThreads = 1024, kMostRegisters = 255;
constexpr int64_t kSharedUnit = 128, kMostShared = 48 << 10;

}  // namespace

StatusOr<KernelResources> ReadCubin(std::string_view cubin, std::string_view kernel) {
  return Cubin(cubin).Read(kernel);
}

int32_t BlocksOnMultiprocessor(const KernelResources& kernel, int32_t arch, int32_t threads) {
  if (threads < 1 || threads > kMostThreads || kernel.registers > kMostRegisters ||
      kernel.shared_bytes > kMostShared)
    return 0;
  const auto* const known = std::ranges::find(kLimits, arch, &Limits::arch);
  const Limits& limits = known != std::end(kLimits) ? *known : *std::ranges::find(kLimits, 90, &Limits::arch);
  const int32_t warps = (threads + kWarp - 1) / kWarp;
  const int32_t of_warp =
      (std::max(kernel.registers, 1) * kWarp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  const int32_t by_registers = kPartRegisters / of_warp * kParts / warps;
  const int64_t shared =
      (kernel.shared_bytes + kReservedShared + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
  return std::min({limits.blocks, limits.warps / warps, by_registers,
                   static_cast<int32_t>(limits.shared_bytes / shared)});
}

}  // namespace xccl::cuda
