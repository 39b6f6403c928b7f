// Every rank walks the table's cases in step; a barrier stands before and after each timing.
#include "runtime/cpu/run_program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "ir/sizes.h"
#include "runtime/cpu/launch.h"
#include "runtime/cpu/shared_region.h"
#include "runtime/executor.h"
#include "runtime/host_memory.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  const Program& program;
  const Collective& collective;
  const RunTable& table;
  const SharedRegion& region;
  const std::vector<int32_t>& passes;  // by case
};

Status RunCase(const Job& job, size_t index, Transport& transport) {
  const RunOptions& options = job.table.options();
  const RunTable::Case& now = job.table.cases()[index];
  const Rank rank = transport.rank();
  const bool threads = job.region.sharing() == Sharing::kThreads;
  XCCL_ASSIGN_OR_RETURN(const RankWork work,
                        PrepareRank(job.program, job.collective, now.sizes, job.region.wiring(), rank,
                                    job.passes[index], now.in_place, threads));
  // Input and output between guards, then scratch.
  const RunLayout layout = job.table.LayoutOf(now, rank);
  XCCL_ASSIGN_OR_RETURN(const HostMemory memory, HostMemory::Create(layout.bytes + work.scratch_bytes));
  const std::span<std::byte> guarded = memory.As<std::byte>(static_cast<size_t>(layout.bytes));
  const RankBuffers buffers{memory.data() + layout.input_at, memory.data() + layout.output_at,
                            memory.data() + layout.bytes};
  // This is longer than an operation may stand still, so a rank that is stuck in one reports first.
  const auto barrier = [&] { return transport.Barrier(3 * options.time_limit); };
  const ExecuteOptions execute{options.type, options.op, options.time_limit};
  const auto run = [&] { return ExecuteRank(work, execute, buffers, transport); };
  const auto refill = [&] {
    job.table.Fill(now, rank, guarded);
    transport.NoteProgress();
    return barrier();
  };
  XCCL_RETURN_IF_ERROR(refill());
  for (int32_t i = 0; i < options.warmup; ++i) XCCL_RETURN_IF_ERROR(run());
  XCCL_RETURN_IF_ERROR(barrier());
  const Clock::time_point start = Clock::now();
  for (int32_t i = 0; i < options.iterations; ++i) XCCL_RETURN_IF_ERROR(run());
  RankResult& result = job.table.ResultOf(index, rank);
  result.seconds =
      std::chrono::duration<double>(Clock::now() - start).count() / std::max(1, options.iterations);
  XCCL_RETURN_IF_ERROR(barrier());
  XCCL_RETURN_IF_ERROR(refill());
  XCCL_RETURN_IF_ERROR(run());
  job.table.Check(now, rank, guarded, result);
  transport.NoteProgress();
  // No buffers are freed while another rank may still read them.
  return barrier();
}

int64_t BuffersOf(const Program& program, const Collective& collective, const CollectiveSizes& sizes,
                  std::span<const Rank> ranks) {
  int64_t bytes = 0;
  for (Rank rank : ranks)
    for (BufferKind buffer : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
      bytes += LayoutOf(program, collective, sizes, rank, buffer).elements * sizes.element_bytes();
  return bytes;
}

Status CheckMemory(const Program& program, const Collective& collective, const Wiring& wiring,
                   std::span<const Rank> active, const RunOptions& options, std::optional<int64_t> given) {
  const int64_t free = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const int64_t limit = given.value_or(free / 10 * 9);
  for (int64_t size : options.sizes_bytes) {
    const CollectiveSizes sizes(collective, size, SizeOf(options.type));
    const int64_t needed = RegionBytes(wiring) + BuffersOf(program, collective, sizes, active);
    if (needed > limit)
      return InvalidInput(
          fmt::format("{} of {} bytes on {} ranks: needs {} bytes of memory; {} are free; hint: --sizes",
                      collective.name(), size, active.size(), needed, limit));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<RunRow>> RunProgram(const Program& program, const Collective& collective,
                                         const RunOptions& options, const CpuRunOptions& cpu) {
  const Program* programs[] = {&program};
  XCCL_ASSIGN_OR_RETURN(const Wiring wiring, WiringOf(programs, cpu.wiring));
  const std::vector<Rank> active = ActiveRanks(program, collective);
  XCCL_RETURN_IF_ERROR(CheckMemory(program, collective, wiring, active, options, cpu.memory_limit));
  XCCL_ASSIGN_OR_RETURN(const RunTable table, RunTable::Create(program, collective, options, active));
  std::vector<int32_t> passes;
  for (const RunTable::Case& now : table.cases()) {
    XCCL_ASSIGN_OR_RETURN(const int32_t of_case,
                          PassesFor(program, collective, now.sizes, wiring.slot_bytes));
    passes.push_back(of_case);
  }
  const Sharing sharing = options.processes ? Sharing::kChildren : Sharing::kThreads;
  XCCL_ASSIGN_OR_RETURN(const SharedRegion region,
                        SharedRegion::Create(wiring, sharing, "", static_cast<int32_t>(active.size())));
  const Job job{program, collective, table, region, passes};
  XCCL_RETURN_IF_ERROR(RunRanks(region, active, options.time_limit, [&](Transport& transport) -> Status {
    for (size_t i = 0; i < table.cases().size(); ++i) XCCL_RETURN_IF_ERROR(RunCase(job, i, transport));
    return OkStatus();
  }));
  return table.Rows();
}

}  // namespace xccl
