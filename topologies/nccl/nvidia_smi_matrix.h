// The matrix of `nvidia-smi topo -m` as values. Only nvidia_smi.cc needs this header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topologies/nccl/nccl_constants.h"

namespace xccl {

struct SmiLink {
  enum class Kind { kSelf, kNvlink, kPix, kPxb, kPhb, kNode, kSys };
  Kind kind = Kind::kSys;
  int64_t links = 0;  // kNvlink
};

struct SmiDevice {
  std::string name;  // GPU0, mlx5_0
  bool gpu = false;
  std::optional<int32_t> numa;
  std::string cpus;             // affinity: "0-31,64-95"; may be empty
  std::optional<GpuArch> arch;  // a GPU's architecture
  int64_t bytes_per_s = 0;      // bandwidth of a GPU's PCIe link, or of a NIC; 0: unknown
};

struct SmiMatrix {
  std::vector<SmiDevice> devices;  // columns
  std::vector<std::vector<SmiLink>> rows;
};

// Escape sequences, prefixes of lines, bars of tables and text around the matrix do not matter. The devices
// have their names, and what the columns of affinity say; the other fields are left as they are. Errors:
// kInvalidInput "nvidia-smi topo -m: ...".
StatusOr<SmiMatrix> ReadSmiMatrix(std::string_view text);

}  // namespace xccl
