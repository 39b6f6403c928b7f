#include "topologies/nccl/nvidia_smi.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

// One line per duplex pair, "0--1 20GB/s 600ns"; then the warnings.
std::string Show(const StatusOr<Topology>& t) {
  if (!t.ok()) return t.status().message();
  std::string text;
  for (int32_t l = 0; l < t->num_links(); l += 2) {
    const Link& link = t->link(LinkId(l));
    std::string name = t->LinkName(LinkId(l));
    name.replace(name.find("->"), 2, "--");
    text += fmt::format("{} {}\n", name, FormatBandwidth(link.bandwidth_bytes_per_s));
  }
  for (const std::string& warning : t->spec().warnings) text += "! " + warning + "\n";
  return text;
}

NvidiaSmiTexts Texts(std::string_view matrix, std::string_view capability, int gpus, int generation = 5) {
  NvidiaSmiTexts texts;
  texts.name = "box";
  texts.matrix = matrix;
  for (int g = 0; g < gpus; ++g) texts.gpus += fmt::format("{}, {}, {}, 16\n", g, capability, generation);
  texts.cpu = CpuModel{"x86_64", "GenuineIntel", 6, 143};
  return texts;
}

constexpr std::string_view kLegend = R"(
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
)";

TEST(NvidiaSmi, NvswitchMachineOnATerminal) {
  const std::string matrix =
      std::string(
          "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
          "GPU0\t X \tNV18\tNV18\tNV18\tPIX\tSYS\t0-47,96-143\t0\t\tN/A\n"
          "GPU1\tNV18\t X \tNV18\tNV18\tNODE\tSYS\t0-47,96-143\t0\t\tN/A\n"
          "GPU2\tNV18\tNV18\t X \tNV18\tSYS\tPIX\t48-95,144-191\t1\t\tN/A\n"
          "GPU3\tNV18\tNV18\tNV18\t X \tSYS\tNODE\t48-95,144-191\t1\t\tN/A\n"
          "NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
          "NIC1\tSYS\tSYS\tPIX\tNODE\tSYS\t X \t\t\t\t\n") +
      std::string(kLegend);
  NvidiaSmiTexts texts = Texts(matrix, "9.0", 4);
  texts.nic_bytes_per_s = {{"mlx5_0", 50'000'000'000}, {"mlx5_1", 50'000'000'000}};
  const StatusOr<Topology> t = ReadNvidiaSmi(texts);
  EXPECT_EQ(
      Show(t),
      "0--nvswitch 370.8GB/s\n1--nvswitch 370.8GB/s\n2--nvswitch 370.8GB/s\n3--nvswitch 370.8GB/s\n"
      "0--pci0 48GB/s\nmlx5_0--pci0 50GB/s\n2--pci1 48GB/s\nmlx5_1--pci1 50GB/s\n"
      "pci0--numa0 50GB/s\n1--numa0 48GB/s\npci1--numa1 50GB/s\n3--numa1 48GB/s\nnuma0--numa1 22GB/s\n");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->gpu_arch(), "sm90");
  const Node& nvswitch = t->node(t->link(LinkId(0)).to);
  EXPECT_TRUE(nvswitch.multicast && nvswitch.reduce);
}

TEST(NvidiaSmi, Machines) {
  struct Case {
    const char* name;
    std::string matrix;
    const char* capability;
    int gpus, generation;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"one GPU, an old driver's columns", "\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n", "7.5", 1, 3,
       "0--cpu0 12GB/s\n"},
      {"a bridged pair is no switch",
       "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-15\nGPU1\tNV4\t X \t0-15\n", "8.6", 2, 4,
       "0--1 48GB/s\n0--cpu0 24GB/s\n1--cpu0 24GB/s\n"},
      {"bonded links of the hybrid cube are pairwise",
       "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
       "GPU0\t X \tNV1\tNV1\tNV2\t0-19\t0\nGPU1\tNV1\t X \tNV2\tNV1\t0-19\t0\n"
       "GPU2\tNV1\tNV2\t X \tNV2\t0-19\t0\nGPU3\tNV2\tNV1\tNV2\t X \t0-19\t0\n",
       "7.0", 4, 3,
       "0--1 20GB/s\n0--2 20GB/s\n0--3 40GB/s\n1--2 40GB/s\n1--3 20GB/s\n2--3 40GB/s\n"
       "0--numa0 12GB/s\n1--numa0 12GB/s\n2--numa0 12GB/s\n3--numa0 12GB/s\n"},
      {"two levels of PCIe switches, PHB, and spaces for tabs",
       "        GPU0  GPU1  GPU2  GPU3  CPU Affinity\n"
       "GPU0     X    PIX   PXB   PHB   0-15\n"
       "GPU1    PIX    X    PXB   PHB   0-15\n"
       "GPU2    PXB   PXB    X    PHB   0-15\n"
       "GPU3    PHB   PHB   PHB    X    0-15\n",
       "8.0", 4, 4,
       "0--pci0 24GB/s\n1--pci0 24GB/s\npci0--pci1 24GB/s\n2--pci1 24GB/s\npci1--cpu0 24GB/s\n3--cpu0 "
       "24GB/s\n"},
      {"wrapped lines, NICs by name, and an unknown speed",
       "\tGPU0\tGPU1\tmlx5_0\r\n\tCPU Affinity\r\nGPU0\t X \tSYS\r\n\tPHB\t0-7\r\nGPU1\tSYS\t X "
       "\tSYS\t8-15\r\nmlx5_0\tPHB\tSYS\t X\r\n",
       "8.9", 2, 4,
       "0--cpu0 24GB/s\n1--cpu1 24GB/s\nmlx5_0--cpu0 12GB/s\ncpu0--cpu1 22GB/s\n"
       "! nvidia-smi topo -m: the speed of mlx5_0 is not known; 12GB/s assumed; hint: "
       "--nic-rate=400Gbit/s\n"},
      {"a GPU whose PCIe link is not known", "\tGPU0\nGPU0\t X\n", "9.0", 1, 0,
       "0--cpu0 12GB/s\n! nvidia-smi topo -m: the PCIe link of GPU0 is not known; 12GB/s assumed; hint: "
       "--pcie-gen=4\n"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(Show(ReadNvidiaSmi(Texts(c.matrix, c.capability, c.gpus, c.generation))), c.expected) << c.name;
}

// Words are dropped, doubled and swapped: the result is an error or a topology, never a crash.
TEST(NvidiaSmi, MutatedTexts) {
  const std::vector<std::string> words = Split(
      "GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity GPU0 X NV4 PIX 0-7 0 GPU1 NV4 X SYS 8-15 1 NIC0 PIX SYS X "
      "Legend: "
      "NIC0: mlx5_0",
      ' ');
  Random random(6);
  int read = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::string> mutated = words;
    for (uint64_t n = random.Below(3); n > 0; --n) {
      const size_t at = random.Below(mutated.size());
      if (random.Below(2) == 0)
        mutated.erase(mutated.begin() + static_cast<ptrdiff_t>(at));
      else
        mutated.insert(mutated.begin() + static_cast<ptrdiff_t>(at), words[random.Below(words.size())]);
    }
    read += ReadNvidiaSmi(Texts(Join(mutated, "\t"), "8.0", 2)).ok() ? 1 : 0;
  }
  EXPECT_GT(read, 300);
}

TEST(NvidiaSmi, Rejections) {
  struct Case {
    const char* name;
    std::string matrix;
    std::string expected;
  };
  const std::string header = "\tGPU0\tGPU1\tCPU Affinity\n";
  const std::vector<Case> cases = {
      {"nothing", "",
       "nvidia-smi topo -m: no matrix of GPUs; expected a header 'GPU0 GPU1 ...' and a row for each"},
      {"no rows", header,
       "nvidia-smi topo -m: no matrix of GPUs; expected a header 'GPU0 GPU1 ...' and a row for each"},
      {"some other text", "No devices were found\n",
       "nvidia-smi topo -m: no matrix of GPUs; expected a header 'GPU0 GPU1 ...' and a row for each"},
      {"a row missing", header + "GPU0\t X \tSYS\t0-7\n",
       "nvidia-smi topo -m: no row GPU1; expected one for each column"},
      {"cut within a row", header + "GPU0\t X \tSYS\t0-7\nGPU1\tSYS",
       "nvidia-smi topo -m: GPU1 to GPU1: the text ends"},
      {"unknown class", header + "GPU0\t X \tFOO\t0-7\nGPU1\tFOO\t X \t0-7\n",
       "nvidia-smi topo -m: GPU0 to GPU1: 'FOO'; expected X, NV#, PIX, PXB, PHB, NODE or SYS"},
      {"no diagonal", header + "GPU0\tSYS\tSYS\t0-7\nGPU1\tSYS\t X \t0-7\n",
       "nvidia-smi topo -m: GPU0 to GPU0: 'SYS'; expected X on the diagonal alone"},
  };
  for (const Case& c : cases) EXPECT_EQ(Show(ReadNvidiaSmi(Texts(c.matrix, "9.0", 2))), c.expected) << c.name;
  NvidiaSmiTexts no_arch = Texts("\tGPU0\nGPU0\t X\n", "[N/A]", 1);
  EXPECT_EQ(Show(ReadNvidiaSmi(no_arch)),
            "nvidia-smi: no compute_cap of GPU0; expected one such as 9.0; hint: --gpu-arch=sm90");
  LoadOptions options;
  options.gpu_arch = "sm90";
  EXPECT_EQ(Show(ReadNvidiaSmi(no_arch, options)), "0--cpu0 48GB/s\n");
}

// As logs and issues have it: the matrix alone.
constexpr std::string_view kPairs =
    "\tGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tSYS\tPIX\tSYS\t0-7\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\tNODE\tSYS\t0-7\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tSYS\tNODE\t8-15\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tNODE\tSYS\t X \t\t\t\t\n";

LoadOptions AllFlags(const char* nic_rate = "200Gbit/s") {
  LoadOptions options;
  options.gpu_arch = "sm86";
  options.pcie_gen = 4;
  options.nic_rate = nic_rate;
  return options;
}

TEST(NvidiaSmi, AMatrixAlone) {
  const std::string text = std::string(kPairs) + std::string(kLegend);
  const auto show = [&](const LoadOptions& options) {
    return Show(ReadNvidiaSmiMatrix(text, "a/box.txt", options));
  };
  const std::string machine =
      "0--1 48GB/s\n0--pci0 24GB/s\nmlx5_0--pci0 25GB/s\npci0--numa0 25GB/s\n1--numa0 24GB/s\n"
      "2--numa1 24GB/s\nmlx5_1--numa1 25GB/s\nnuma0--numa1 10GB/s\n"
      "! nvidia-smi topo -m: the CPU is not known; 10GB/s between NUMA nodes assumed\n";
  EXPECT_EQ(show(AllFlags()), machine);
  EXPECT_EQ(ReadNvidiaSmiMatrix(text, "a/box.txt", AllFlags())->name(), "box");
  EXPECT_NE(show(AllFlags("200Gbit/s,mlx5_1=8Gbit/s")).find("mlx5_1--numa1 1GB/s\n"), std::string::npos);
  EXPECT_NE(show(AllFlags("mlx5_1=8Gbit/s, 16Gbit/s")).find("mlx5_1--numa1 1GB/s\n"), std::string::npos);
}

TEST(NvidiaSmi, AMatrixAloneAsksForWhatItLacks) {
  const auto ask = [](std::string_view text, const LoadOptions& options) {
    return Show(ReadNvidiaSmiMatrix(text, "a/box.txt", options));
  };
  const std::string text = std::string(kPairs) + std::string(kLegend);
  EXPECT_EQ(ask(text, {}),
            "a/box.txt: nvidia-smi topo -m: the text does not state the architecture of its GPUs, the PCIe "
            "generation, "
            "the rate of its NICs; expected flags; hint: --gpu-arch=sm90 --pcie-gen=5 --nic-rate=400Gbit/s");
  LoadOptions options = AllFlags();
  options.pcie_gen.reset();
  EXPECT_EQ(
      ask(text, options),
      "a/box.txt: nvidia-smi topo -m: the text does not state the PCIe generation; expected a flag; hint: "
      "--pcie-gen=5");
  options = AllFlags("mlx5_0=200Gbit/s");
  EXPECT_EQ(
      ask(text, options),
      "a/box.txt: nvidia-smi topo -m: the text does not state the rate of its NICs; expected a flag; hint: "
      "--nic-rate=400Gbit/s");
  EXPECT_EQ(ask("GPU0 GPU1\nGPU0 X SYS\n", AllFlags()),
            "a/box.txt: nvidia-smi topo -m: no row GPU1; expected one for each column");
  EXPECT_EQ(ask(text, AllFlags("eth0=1Gbit/s")), "--nic-rate: no NIC eth0; NICs are mlx5_0, mlx5_1");
  EXPECT_EQ(ask(text, AllFlags("400")), "--nic-rate: '400': no unit; a bandwidth is written like 450GB/s");
  options = AllFlags();
  options.pcie_gen = 7;
  EXPECT_EQ(ask(text, options), "--pcie-gen=7: expected 1 to 6");
  EXPECT_EQ(ask("GPU0\nGPU0 X\n", AllFlags("a=1Gbit/s")), "--nic-rate: no NIC a; the matrix has none");
}

// Launchers and collectors of logs put something before each line.
TEST(NvidiaSmi, PrefixesOfLines) {
  const std::string text = std::string(kPairs) + std::string(kLegend);
  const std::string expected = Show(ReadNvidiaSmiMatrix(text, "box.txt", AllFlags()));
  const auto with = [&](auto prefix) {
    std::string logged;
    int n = 0;
    for (const std::string& line : Split(text, '\n')) logged += prefix(n++) + line + "\n";
    return logged;
  };
  std::string twice, table;
  for (const std::string& line : Split(text, '\n')) {
    twice += "0: " + line + "\n1: " + line + "\n";
    table += fmt::format("| {} |\n{}", line, table.empty() ? "|------|:----|---|\n" : "");
  }
  const std::vector<std::string> logs = {
      table,
      with([](int) { return std::string("0: "); }),
      with([](int) { return std::string("[1,0]<stdout>:"); }),
      with([](int) { return std::string("[pod/trainer-0/main] "); }),
      with([](int n) { return fmt::format("2026-01-01T00:00:{:02}.5Z ", n); }),
      with([](int n) { return fmt::format("Jan 01 00:00:{:02} host job[7]: ", n); }),
      with([](int) { return std::string("\x1b[0m"); }),
      "$ nvidia-smi topo -m\n" + text,
      "```\n" + text + "```\n",
      "GPU 0: NVIDIA A40 (UUID: GPU-1)\nGPU0 is well\n" + text,
      // Rank 1 says the same; its lines are dropped.
      twice,
  };
  for (const std::string& log : logs) {
    EXPECT_TRUE(IsNvidiaSmiMatrix(log)) << log;
    EXPECT_EQ(Show(ReadNvidiaSmiMatrix(log, "box.txt", AllFlags())), expected) << log;
  }
  for (const char* other :
       {"", "GPU0 GPU1", "GPU 0: NVIDIA H100 (UUID: GPU-1)", "<topology/>", "XGPU0 X", "GPU0 is X"})
    EXPECT_FALSE(IsNvidiaSmiMatrix(other)) << other;
}

// A table of NVLink counts that an architecture after all that are known might have.
TEST(NvidiaSmi, AnUnknownArchitecture) {
  LoadOptions options = AllFlags();
  options.gpu_arch = "sm130";
  EXPECT_EQ(Show(ReadNvidiaSmiMatrix("GPU0 GPU1\nGPU0 X NV4 0-7\nGPU1 NV4 X 0-7\n", "box.txt", options)),
            "0--1 160.4GB/s\n0--cpu0 24GB/s\n1--cpu0 24GB/s\n");
  EXPECT_EQ(Show(ReadNvidiaSmiMatrix(
                "GPU0 GPU1 GPU2\nGPU0 X NV18 NV18 0-7\nGPU1 NV18 X NV18 0-7\nGPU2 NV18 NV18 X 0-7\n",
                "box.txt", options)),
            "0--nvswitch 721.8GB/s\n1--nvswitch 721.8GB/s\n2--nvswitch 721.8GB/s\n"
            "0--cpu0 24GB/s\n1--cpu0 24GB/s\n2--cpu0 24GB/s\n");
}

}  // namespace
}  // namespace xccl
