// The contents of an NCCL or RCCL dump (<system version=...>, docs/topologies.md) as a flat tree: CPUs on
// top, PCI bridges below them, GPUs, nets and devices as leaves. Only the other files of this folder, which
// make a Topology of it, and their tests need this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/nccl/nccl_constants.h"

namespace xccl {

enum class NcclItemKind : uint8_t {
  kCpu,
  kBridge,  // PCI switch or bridge; also a NIC with several nets
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
  size_t offset = 0;    // of the element, in bytes
  bool removed = false;
  int32_t replaced_by = -1;  // for a removed bridge: the item that stands for it
  // Bandwidth towards the parent. 0: not stated.
  int64_t bandwidth_bytes_per_s = 0;
  bool local = false;          // joined without PCIe
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
  std::string name;             // kNet
  int64_t latency_ps = 0;       // kNet
  std::vector<NcclEdge> edges;  // kGpu, kBridge
};

// Warnings about one file. Each text appears once, with its first place and its number of occurrences.
class NcclWarnings {
 public:
  void Add(size_t offset, std::string text);
  // "dgx.xml:3:5: TEXT (4 times)", in the order of their places.
  std::vector<std::string> Format(std::string_view file, std::string_view text) const;

 private:
  struct Warning {
    std::string text;
    size_t offset;
    int64_t count;
  };
  std::vector<Warning> warnings_;
};

struct NcclSystem {
  std::string name;             // of <system>; may be empty
  std::vector<NcclItem> items;  // parents before children, document order
  NcclWarnings warnings;

  std::vector<int32_t> Live(NcclItemKind kind) const;  // indices of the items of a kind that are not removed
};

// Errors: kInvalidInput "file:line:column: ..." for malformed XML, a missing <system>, or a malformed number.
StatusOr<NcclSystem> ReadNcclTree(std::string_view text, std::string_view file);

}  // namespace xccl
