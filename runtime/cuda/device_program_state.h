// A DeviceProgram's state for a device and for a rank of this process. Only its own sources include this
// file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/cuda/device_program.h"

namespace xccl::cuda {

struct DeviceProgram::DeviceState {
  explicit DeviceState(std::shared_ptr<const Gpu> g) : gpu(std::move(g)), tables(gpu) {}
  std::shared_ptr<const Gpu> gpu;
  ConstantTables tables;
  std::map<std::pair<DataType, ReduceOp>, Kernel> kernels;
  DeviceMemory table;      // the program, where the interpreter kernel runs it
  DeviceMemory rank_args;  // the local ranks on this device, in order
  int32_t ranks = 0;
  size_t first_local = 0;  // its ranks are ranks_[first_local, first_local + ranks) where they share a launch
};

struct DeviceProgram::RankState {
  DeviceState* device = nullptr;
  int32_t index = 0;  // among the device's ranks
  DeviceMemory arena, scratch;
  int64_t scratch_bytes = 0;
  OwnedEvent done;             // after the last launch
  std::optional<Stream> last;  // where that was
};

inline constexpr size_t kAbortAt = device::kLineBytes;  // place of the abort word, behind the ErrorRecord

}  // namespace xccl::cuda
