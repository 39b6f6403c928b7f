// A DeviceProgram's state for a device and for a rank of this process. Only its own sources include this
// file.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/device_program.h"

namespace xccl::cuda {

struct DeviceProgram::DeviceState {
  explicit DeviceState(std::shared_ptr<const Gpu> g) : gpu(std::move(g)), tables(gpu) {}
  std::shared_ptr<const Gpu> gpu;
  DeviceMemory table;      // the program, where the interpreter kernel runs it
  DeviceMemory rank_args;  // the local ranks on this device, in order
  int32_t ranks = 0;
  size_t first_local = 0;  // its ranks are ranks_[first_local, first_local + ranks) where they share a launch
  std::mutex mutex;        // guards what follows
  std::map<std::pair<DataType, ReduceOp>, Kernel> kernels;
  ConstantTables tables;
};

// The arguments of one rank that follow from a call's sizes.
struct DeviceProgram::Prepared {
  int32_t passes = 1;
  device::RankBuffers tables;              // no buffers in it
  const int64_t* part_elements = nullptr;  // where parts differ
  size_t input_bytes = 0, output_bytes = 0;
};

struct DeviceProgram::RankState {
  DeviceState* device = nullptr;
  int32_t index = 0;  // among the device's ranks
  DeviceMemory arena;
  OwnedEvent done;                     // after the last launch
  std::atomic<bool> launched = false;  // once, at least
  // The rank's turn guards what follows.
  std::map<std::vector<int64_t>, Prepared> prepared;  // by element size and elements of the parts
  // Only the last is used by new launches. Those before it may be in use, also by graphs, and freeing would
  // wait for kernels.
  std::vector<DeviceMemory> scratch;
};

inline constexpr size_t kAbortAt = device::kLineBytes;  // place of the abort word, behind the ErrorRecord

}  // namespace xccl::cuda
