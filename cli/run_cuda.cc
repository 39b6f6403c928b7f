#include "cli/run_cuda.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/units.h"
#include "cli/flags.h"
#include "codegen/emit.h"
#include "runtime/bootstrap.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"

namespace xccl {

void AddCudaFlags(Command& command, CudaFlags& flags) {
  const std::string group = "With --backend cuda";
  command
      .AddOption("--ranks-per-gpu", flags.ranks_per_gpu, "ranks that share a GPU, in one cooperative launch")
      .Between(1, 1 << 16)
      .ShowDefault()
      .Group(group);
  command.AddOption("--max-ctas", flags.max_ctas, "thread blocks that one rank may have")
      .Between(1, 1 << 16)
      .Group(group);
  command.AddOption("--jitter", flags.jitter, "seed of random delays in the kernel, to find races; 0: none")
      .ShowDefault()
      .Group(group);
  command.AddFlag("--graph", flags.graph, "time replays of a captured CUDA graph").Group(group);
  command.AddFlag("--staged", flags.staged, "never use peers' buffers directly").Group(group);
  command
      .AddFlag("--register", flags.registered,
               "with --processes: peers reach the buffers, and messages may skip the slots")
      .Group(group);
  command
      .AddFlag("--interpreter", flags.interpreter, "run on the interpreter kernel rather than generated code")
      .Group(group);
  command.AddOption("--memory-limit", flags.memory_limit, "device memory of a rank's slots and counters")
      .ShowDefault()
      .Group(group);
  command
      .AddOption("--kernel-cache", flags.kernel_cache,
                 "directory of compiled kernels (default: $XDG_CACHE_HOME/xccl or ~/.cache/xccl)")
      .Group(group);
}

StatusOr<cuda::GpuRunOptions> GpuOptionsOf(const CudaFlags& flags) {
  cuda::GpuRunOptions options;
  XCCL_ASSIGN_OR_RETURN(options.program.arena.memory_limit,
                        ParseSizeFlag("--memory-limit", flags.memory_limit));
  options.ranks_per_gpu = flags.ranks_per_gpu;
  options.graph = flags.graph;
  options.registered = flags.registered;
  options.program.max_ctas = flags.max_ctas;
  options.program.jitter = flags.jitter;
  options.program.direct = !flags.staged;
  return options;
}

StatusOr<cuda::RunReport> RunOnCuda(const std::string& file, const Plan& plan, const KernelOrigin& origin,
                                    const CudaFlags& flags, const RunOptions& options) {
  XCCL_ASSIGN_OR_RETURN(cuda::GpuRunOptions gpu, GpuOptionsOf(flags));
  const Program& program = plan.program->program;
  const std::string directory =
      flags.kernel_cache.empty() ? cuda::DefaultKernelCache(ProcessEnvironment) : flags.kernel_cache;
  const auto cache = std::make_shared<cuda::KernelCache>(directory);
  gpu.program.interpreter = cuda::ImagesOfInterpreter(program, cache);
  std::string text = origin.source;
  if (flags.interpreter) {
    gpu.program.no_kernel = "--interpreter";
    text.clear();
  } else if (origin.from_book) {
    gpu.program.no_kernel = "the plan book has no kernel for it; hint: xccl-synth emit BOOK --to cuda";
  } else {
    EmitOptions emit;
    emit.title = file;
    StatusOr<std::string> emitted = Emit(program, plan.program->collective, emit);
    if (emitted.ok()) {
      text = *std::move(emitted);
    } else {
      gpu.program.no_kernel = emitted.status().message();
    }
  }
  const cuda::KernelImages images =
      text.empty() ? cuda::KernelImages() : cuda::ImagesOfSource(file, std::move(text), cache, origin.cubins);
  return cuda::RunProgram(file, program, plan.program->collective, images, cuda::LoadDriver, options, gpu);
}

std::string DescribeUsage(const cuda::DeviceUsage& usage) {
  return fmt::format(
      "{} CTA{} of {} threads on a rank ({} instance{}, {} registers, {} on a multiprocessor); {} of slots "
      "of {} and counters, {} of scratch{}{}{}",
      usage.ctas, usage.ctas == 1 ? "" : "s", usage.threads, usage.instances, usage.instances == 1 ? "" : "s",
      usage.registers, usage.ctas_per_multiprocessor, FormatSize(usage.arena_bytes),
      FormatSize(usage.slot_bytes), FormatSize(usage.scratch_bytes),
      usage.table_bytes == 0
          ? ""
          : fmt::format("; interpreter kernel, {} of table", FormatSize(usage.table_bytes)),
      usage.groups[0] == 0 ? "" : "; groups ", usage.groups.data());
}

}  // namespace xccl
