// Cubins made by hand, whole and cut; tests/nvcc_test.cc reads those of nvcc.
#include "runtime/cuda/occupancy.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace xccl::cuda {
namespace {

template <class T>
void Append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A file with two functions: "other" of 40 registers and "kernel" of 118, and 1336 bytes of shared memory.
std::string Cubin() {
  std::string names(1, '\0'), symbols, functions(1, '\0'), info;
  Append(symbols, Elf64_Sym{});
  for (const char* function : {"other", "kernel"}) {
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<Elf64_Word>(functions.size());
    functions += std::string(function) + '\0';
    Append(symbols, symbol);
  }
  const auto attribute = [&](uint8_t format, uint8_t number, std::vector<uint32_t> value) {
    info += {static_cast<char>(format), static_cast<char>(number)};
    Append(info, static_cast<uint16_t>(format == 4 ? 4 * value.size() : 0));
    for (const uint32_t word : value) Append(info, word);
  };
  attribute(3, 0x2f, {});           // an attribute whose format has no value
  attribute(4, 0x11, {2, 999, 0});  // another number
  attribute(4, 0x2f, {1, 40});
  attribute(4, 0x2f, {2, 118});
  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections(1);
  const auto section = [&](const std::string& name, uint32_t type, const std::string& bytes, uint64_t size,
                           uint32_t link) {
    Elf64_Shdr made = {};
    made.sh_name = static_cast<Elf64_Word>(names.size());
    names += name + '\0';
    made.sh_type = type;
    made.sh_offset = file.size();
    made.sh_size = size;
    made.sh_link = link;
    file += bytes;
    sections.push_back(made);
  };
  section(".strtab", SHT_STRTAB, functions, functions.size(), 0);
  section(".symtab", SHT_SYMTAB, symbols, symbols.size(), 1);
  section(".nv.info", SHT_PROGBITS, info, info.size(), 2);
  section(".nv.shared.kernel", SHT_NOBITS, "", 1336, 0);
  section(".nv.shared.reserved.0", SHT_NOBITS, "", 0, 0);
  names += ".shstrtab";
  names += '\0';
  section(".shstrtab", SHT_STRTAB, "", 0, 0);
  sections.back().sh_size = names.size();
  file += names;
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_machine = 190;
  head.e_shoff = file.size();
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<Elf64_Half>(sections.size());
  head.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
  std::memcpy(file.data(), &head, sizeof head);
  for (const Elf64_Shdr& each : sections) Append(file, each);
  return file;
}

TEST(Cubin, SaysWhatAKernelNeeds) {
  const auto kernel = ReadCubin(Cubin(), "kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(*kernel, (KernelResources{118, 312}));
  EXPECT_EQ(*ReadCubin(Cubin(), "other"), (KernelResources{40, 0}));
  EXPECT_EQ(ReadCubin(Cubin(), "none").status(), InvalidInput("cubin: no registers of none in .nv.info"));
}

TEST(Cubin, RefusesOtherFilesAndCutOnes) {
  const std::string whole = Cubin();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(ReadCubin(whole.substr(0, bytes), "kernel").ok()) << bytes;
  // With every byte changed in turn it reads nothing outside of the file.
  for (size_t at = 0; at < whole.size(); ++at)
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = byte;
      static_cast<void>(ReadCubin(changed, "kernel").ok());
    }
  EXPECT_EQ(ReadCubin("fake", "kernel").status(),
            InvalidInput("cubin: the header at byte 0 of 4; expected 64 bytes there"));
  std::string other = whole;
  other[18] = 62;  // x86-64
  EXPECT_EQ(ReadCubin(other, "kernel").status(),
            InvalidInput("cubin: another kind of file; expected ELF of 64 bits for CUDA"));
}

// Figures of NVIDIA's occupancy calculator.
TEST(Occupancy, IsTheLeastOfAllLimits) {
  EXPECT_EQ(BlocksOnMultiprocessor({128, 0}, 90, 512), 1);  // 64 Ki registers
  EXPECT_EQ(BlocksOnMultiprocessor({128, 0}, 90, 256), 2);
  EXPECT_EQ(BlocksOnMultiprocessor({129, 0}, 90, 512), 0);  // 136 × 512 are too many
  EXPECT_EQ(BlocksOnMultiprocessor({168, 0}, 90, 384), 1);
  EXPECT_EQ(BlocksOnMultiprocessor({32, 0}, 90, 1024), 2);       // 64 warps
  EXPECT_EQ(BlocksOnMultiprocessor({32, 0}, 86, 1024), 1);       // 48 warps
  EXPECT_EQ(BlocksOnMultiprocessor({16, 0}, 80, 32), 32);        // blocks
  EXPECT_EQ(BlocksOnMultiprocessor({16, 40 << 10}, 80, 32), 4);  // 164 KiB, 41 a block
  EXPECT_EQ(BlocksOnMultiprocessor({16, 40 << 10}, 90, 32), 5);  // 228 KiB
  EXPECT_EQ(BlocksOnMultiprocessor({16, 49 << 10}, 90, 32), 0);  // more than 48 KiB must be asked for
  EXPECT_EQ(BlocksOnMultiprocessor({256, 0}, 90, 32), 0);
  EXPECT_EQ(BlocksOnMultiprocessor({16, 0}, 90, 1025), 0);
}

}  // namespace
}  // namespace xccl::cuda
