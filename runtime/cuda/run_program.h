// Runs a program on this machine's GPUs and checks every element: what `xccl-synth run --backend cuda` does.
// Ranks are of one process, or a process each; several may share a GPU, all of whose ranks' threadblocks are
// then in one cooperative launch (in one process) or take turns (between processes).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/driver.h"
#include "runtime/run_row.h"

namespace xccl::cuda {

struct RunOptions {
  std::vector<int64_t> sizes_bytes = {64LL << 20};  // nccl-tests' sizes
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int32_t iterations = 20;
  int32_t warmup = 5;
  int32_t ranks_per_gpu = 1;
  bool processes = false;   // a process for every rank
  bool in_place = true;     // rows in place as well, where the program can
  bool registered = false;  // between processes peers reach the buffers
  bool graph = false;       // iterations are replays of a captured graph
  DeviceProgramOptions program;
  // What a simulation says for a size; absent where there is none.
  std::function<std::optional<int64_t>(int64_t size_bytes)> predicted_ps = {};
};

struct RunReport {
  std::vector<RunRow> rows;  // as runtime/cpu/run_program.h
  DeviceUsage usage;
  std::string devices;  // "1 x NVIDIA H200"
  std::string notice;   // DeviceProgram::notice
};

// How this process gets at a driver: LoadDriver, or a fake. Called once in every process that runs ranks.
using DriverSource = std::function<StatusOr<const Driver*>()>;

// Errors: those of the driver, of DeviceProgram and of memory; kInvalidInput "cuda: 8 ranks on 1 device, 1 on
// each; hint: --ranks-per-gpu 8". Requires: the program verifies; with `processes`, that the caller has no
// other threads and has not touched CUDA.
StatusOr<RunReport> RunProgram(const std::string& name, const Program& program, const Collective& collective,
                               const KernelImages& images, const DriverSource& driver,
                               const RunOptions& options);

}  // namespace xccl::cuda
