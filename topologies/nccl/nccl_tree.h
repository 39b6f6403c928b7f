// The contents of an NCCL or RCCL dump (<system version=...>, docs/topologies.md) as a flat tree: CPUs on
// top, PCI bridges below them, GPUs, nets and devices as leaves. Only the other files of this folder, which
// make a Topology of it, and their tests need this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/nccl/nccl_constants.h"

namespace xccl {

enum class NcclItemKind : uint8_t {
  kCpu,
  kBridge,  // PCI switch or bridge; also a NIC with several nets, or a GPU with several ranks
  kGpu,
  kNet,     // one port of a NIC, as NCCL sees it
  kDevice,  // a PCI leaf that no <gpu> or <net> names
};

// An edge beside the tree: <nvlink>, <xgmi>, <c2c>, <pcilink>.
struct NcclEdge {
  enum class Kind : uint8_t { kGpuLink, kC2c, kPcilink };
  Kind kind = Kind::kGpuLink;
  std::string target;                 // busid; empty for c2c
  std::string target_class;           // "0x068000"; empty: not stated
  int64_t count = 0;                  // number of bonded links
  int64_t bandwidth_bytes_per_s = 0;  // kC2c: of all its links together
  size_t offset = 0;
};

struct NcclItem {
  NcclItemKind kind = NcclItemKind::kDevice;
  int32_t parent = -1;  // -1 for a CPU
  size_t offset = 0;    // where the element begins in the text, in bytes
  bool removed = false;
  int32_t replaced_by = -1;  // for a removed bridge: the item that stands for it
  // Bandwidth towards the parent. 0: not stated.
  int64_t bandwidth_bytes_per_s = 0;
  bool local = false;          // joined without PCIe
  bool shared_gpu = false;     // kBridge: one GPU, whose ranks are its kGpu children
  bool adapter = false;        // kBridge: one NIC, whose ports are its kNet children
  bool one_slow_lane = false;  // states 2.5 GT/s x1

  std::string busid;      // lower case; empty for CPUs and for nets without PCI
  std::string pci_class;  // lower case, "0x030200"; empty: not stated
  uint64_t pci_id = 0;    // vendor, device, subsystem vendor, subsystem device, 16 bits each

  int32_t numa = 0;             // kCpu
  std::string host_hash;        // kCpu; empty: not stated
  CpuModel cpu;                 // kCpu
  std::optional<int32_t> dev;   // kGpu, kNet
  std::optional<int32_t> rank;  // kGpu
  std::optional<GpuArch> arch;  // kGpu
  bool amd = false;             // kGpu: an AMD GPU, whose gfx may not be known
  bool part = false;            // kGpu: one of the parts that MPS divides a GPU into (mlopart)
  std::string name;             // kNet
  std::optional<int64_t> port;  // kNet
  std::string guid;             // kNet, as written
  std::optional<bool> gdr;      // kNet: can it read and write the memory of GPUs? Absent: not stated
  // kNet: an interface of containers or of a tunnel: right below a CPU, without gdr, and no bond of other
  // interfaces.
  bool software = false;
  std::optional<int32_t> rail, plane;  // kNet: the parts of the network that it is joined to (NCCL 2.30)
  int64_t latency_ps = 0;              // kNet
  std::vector<NcclEdge> edges;         // kGpu, kBridge
};

struct NcclSystem {
  std::string_view text, file;  // the file's text, and its name in messages; both outlive the system
  std::string name;             // the name of <system>; may be empty
  std::vector<NcclItem> items;  // parents before children, document order
  bool lists_gpus = true;       // false: <gpu> elements are missing, and the GPUs are derived

  NcclItem& operator[](int32_t index) { return items[static_cast<size_t>(index)]; }
  int32_t size() const { return static_cast<int32_t>(items.size()); }
  std::vector<int32_t> Live(NcclItemKind kind) const;  // indices of the items of a kind that are not removed
  // InvalidInput("dgx.xml:3:5: MESSAGE").
  Status At(size_t offset, std::string_view message) const;
  void Warn(size_t offset, std::string warning);
  // "dgx.xml:3:5: TEXT (4 times)": each text once, with its first place, in the order of their places.
  std::vector<std::string> Warnings() const;

 private:
  struct Warning {
    size_t offset, order;  // its first place, and its place among the texts
    int64_t count;
  };
  std::map<std::string, Warning> warnings_;  // by text
};

// Errors: kInvalidInput "file:line:column: ..." for malformed XML, a missing <system>, or a number out of
// range.
StatusOr<NcclSystem> ReadNcclTree(std::string_view text, std::string_view file);

// The second step (nccl_find_gpus.cc): decides which devices are the ranks, and of what architecture. The
// partitions of one AMD device, whose bus ids differ in the function alone, get a bridge above them that is a
// shared GPU.
// Errors: kInvalidInput with the flag that would help; kUsage for a flag that makes no sense.
Status FindNcclGpus(NcclSystem& system, const LoadOptions& options);

// The third step (nccl_settle.cc), which calls the second. PCI classes, neighbours and flags
// supply what the tree leaves out. Chained PCIe switches that are one chip, or only virtual, are merged. Each
// guess becomes a warning. Guarantees that there is at least one GPU; that every GPU with links has an
// architecture, and every item below a CPU a bandwidth; that no item is a kDevice; and that every remaining
// bridge and CPU has something below it. Errors: kInvalidInput with the flag that would help; kUsage for a
// flag that makes no sense.
Status SettleNcclTree(NcclSystem& system, const LoadOptions& options);

}  // namespace xccl
