#include <fmt/core.h>

#include "base/units.h"
#include "cli/flags.h"

namespace xccl {

void AddCudaFlags(Command& command, CudaFlags& flags) {
  cuda::GpuRunOptions& run = flags.run.options;
  command.Heading("With --backend cuda");
  command.AddOption("--ranks-per-gpu", run.ranks_per_gpu, "ranks that share a GPU, in one cooperative launch")
      .Between(1, 1 << 16)
      .ShowDefault();
  command
      .AddOption("--max-ctas", run.program.max_ctas,
                 "thread blocks that one rank may have (32, or one instance)")
      .Between(1, 1 << 16);
  command
      .AddOption("--jitter", run.program.jitter,
                 "seed of random delays in the kernel, to find races; 0: none")
      .ShowDefault();
  command
      .AddOption("--first-message", run.program.first_message,
                 "begin as if so many messages had passed, to see counters wrap")
      .ShowDefault();
  command.AddFlag("--graph", run.graph, "time replays of a captured CUDA graph");
  command.AddFlag("--staged", flags.staged, "never use peers' buffers directly");
  command.AddFlag("--register", run.registered,
                  "with --processes: peers reach the buffers, and messages may skip the slots");
  command.AddFlag("--interpreter", flags.run.interpreter,
                  "run on the interpreter kernel rather than generated code");
  command.AddOption("--slot-memory", flags.slot_memory, "device memory of a rank's slots and counters")
      .ShowDefault();
  command.AddOption("--kernel-cache", flags.run.kernel_cache,
                    "directory of compiled kernels (default: $XDG_CACHE_HOME/xccl or ~/.cache/xccl)");
  command.Heading("Options");
}

StatusOr<GpuRun> GpuRunOf(const CudaFlags& flags) {
  GpuRun run = flags.run;
  XCCL_ASSIGN_OR_RETURN(run.options.program.arena.memory_limit,
                        ParseSizeFlag("--slot-memory", flags.slot_memory));
  run.options.program.direct = !flags.staged;
  return run;
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
