// Runs a program on GPUs and checks every element, for `xccl-synth run --backend cuda`. Ranks are of one
// process, or a process each; a launcher may have started those, on one host or several. Several may share a
// GPU: in one process their threadblocks are then in one cooperative launch, between processes they take
// turns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/other_hosts.h"
#include "runtime/run_row.h"
#include "runtime/run_table.h"

namespace xccl::cuda {

// This process's rank where a launcher started all of them. The others make the same run.
struct LaunchedRank {
  Rank rank;
  std::string job;  // names what they share on a host
  OtherHosts others;
};

struct GpuRunOptions {
  int32_t ranks_per_gpu = 1;
  bool registered = false;            // between processes peers reach the buffers
  bool graph = false;                 // iterations are replays of a captured graph
  DeviceProgramOptions program = {};  // its time limit is the run's
  // The rank's GPU is that of its place on its host, or the only one that the process sees.
  std::optional<LaunchedRank> launched = {};
};

struct RunReport {
  std::vector<RunRow> rows;  // one for each of RunTable's cases
  DeviceUsage usage;
  std::string devices;  // "1 x NVIDIA H200"
  std::string notice;   // DeviceProgram::notice
};

// Gives this process its driver: LoadDriver, or a fake. Called once in every process that runs ranks.
using DriverSource = std::function<StatusOr<const Driver*>()>;

// Errors: those of RunTable, the driver, DeviceProgram and memory; kInvalidInput "cuda: 8 ranks on 1 device,
// 1 on each; hint: --ranks-per-gpu 8"; those of CheckBetweenHosts. Requires: the program verifies; with
// `processes`, that the caller has no other threads and has not touched CUDA.
StatusOr<RunReport> RunProgram(const std::string& name, const Program& program, const Collective& collective,
                               const KernelImages& images, const DriverSource& driver,
                               const RunOptions& options, const GpuRunOptions& gpu);

}  // namespace xccl::cuda
