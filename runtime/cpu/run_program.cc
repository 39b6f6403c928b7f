// Every rank walks the table's cases in step; a barrier stands before and after each timing.
#include "runtime/cpu/run_program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/sizes.h"
#include "runtime/cpu/launch.h"
#include "runtime/executor.h"
#include "runtime/host/host_memory.h"
#include "runtime/rails.h"
#include "runtime/transport/shared_region.h"
#include "runtime/warm_up.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  const Program& program;
  const Collective& collective;
  const RunTable& table;
  const Wiring& wiring;
  const std::vector<int32_t>& passes;  // by case
  LaunchedGroup* group = nullptr;      // if every rank is a process that a launcher started; else null
  bool one_address_space = false;
};

// Returns the largest of the times that the ranks give. All ranks call it together.
StatusOr<double> SlowestOf(const Job& job, size_t index, double seconds, Endpoint& endpoint) {
  const std::chrono::nanoseconds limit = 3 * job.table.options().time_limit;
  if (job.group == nullptr) {
    job.table.ResultOf(index, endpoint.rank()).warm_s = seconds;
    XCCL_RETURN_IF_ERROR(endpoint.Barrier(limit));
    const double slowest = job.table.SlowestWarm(index);
    XCCL_RETURN_IF_ERROR(endpoint.Barrier(limit));  // nobody writes again before all have read
    return slowest;
  }
  const std::string_view mine(reinterpret_cast<const char*>(&seconds), sizeof seconds);
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, job.group->bootstrap().AllGather(mine, limit));
  double slowest = 0;
  for (const std::string& one : all) {
    double other = 0;
    std::memcpy(&other, one.data(), std::min(one.size(), sizeof other));
    slowest = std::max(slowest, other);
  }
  return slowest;
}

// Runs operations until the next is as fast as those after it.
template <typename Run>
Status RunUntilWarm(const Job& job, size_t index, Endpoint& endpoint, const Run& run) {
  WarmUp warm_up(job.table.options().warmup);
  while (const int32_t count = warm_up.Next()) {
    const Clock::time_point start = Clock::now();
    for (int32_t i = 0; i < count; ++i) XCCL_RETURN_IF_ERROR(run());
    double seconds = std::chrono::duration<double>(Clock::now() - start).count() / count;
    if (warm_up.NeedsTimes()) {
      XCCL_ASSIGN_OR_RETURN(seconds, SlowestOf(job, index, seconds, endpoint));
    }
    warm_up.Add(seconds);
  }
  return OkStatus();
}

// Times the iterations, sample by sample.
template <typename Run>
Status Time(const RunTable& table, const Run& run, RankResult& result) {
  const Clock::time_point start = Clock::now();
  Clock::time_point from = start;
  for (int32_t s = 0; s < table.num_samples(); ++s) {
    const int32_t count = table.FirstOf(s + 1) - table.FirstOf(s);
    for (int32_t i = 0; i < count; ++i) XCCL_RETURN_IF_ERROR(run());
    const Clock::time_point to = Clock::now();
    result.sample_s[static_cast<size_t>(s)] =
        std::chrono::duration<double>(to - std::exchange(from, to)).count() / count;
  }
  result.seconds = std::chrono::duration<double>(from - start).count() / table.FirstOf(table.num_samples());
  return OkStatus();
}

Status RunCase(const Job& job, size_t index, Endpoint& endpoint) {
  const RunOptions& options = job.table.options();
  const RunTable::Case& now = job.table.cases()[index];
  const Rank rank = endpoint.rank();
  XCCL_ASSIGN_OR_RETURN(const RankWork work,
                        PrepareRank(job.program, job.collective, now.sizes, job.wiring, rank,
                                    job.passes[index], now.in_place, job.one_address_space));
  // Input and output between guards, then scratch.
  const RunLayout layout = job.table.LayoutOf(now, rank);
  XCCL_ASSIGN_OR_RETURN(const HostMemory memory, HostMemory::Create(layout.bytes + work.scratch_bytes));
  const std::span<std::byte> guarded = memory.As<std::byte>(static_cast<size_t>(layout.bytes));
  const RankBuffers buffers{memory.data() + layout.input_at, memory.data() + layout.output_at,
                            memory.data() + layout.bytes};
  // This is longer than an operation may stand still, so a rank that is stuck in one reports first.
  const auto barrier = [&] { return endpoint.Barrier(3 * options.time_limit); };
  const ExecuteOptions execute{options.type, options.op, options.time_limit};
  const auto run = [&] { return ExecuteRank(work, execute, buffers, endpoint); };
  const auto refill = [&] {
    job.table.Fill(now, rank, guarded);
    endpoint.NoteProgress();
    return barrier();
  };
  XCCL_RETURN_IF_ERROR(refill());
  XCCL_RETURN_IF_ERROR(RunUntilWarm(job, index, endpoint, run));
  XCCL_RETURN_IF_ERROR(barrier());
  RankResult& result = job.table.ResultOf(index, rank);
  XCCL_RETURN_IF_ERROR(Time(job.table, run, result));
  XCCL_RETURN_IF_ERROR(barrier());
  XCCL_RETURN_IF_ERROR(refill());
  XCCL_RETURN_IF_ERROR(run());
  job.table.Check(now, rank, guarded, result);
  endpoint.NoteProgress();
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
    const int64_t needed = RegionBytes(WholeWiring(wiring)) + BuffersOf(program, collective, sizes, active);
    if (needed > limit)
      return InvalidInput(
          fmt::format("{} of {} bytes on {} ranks: needs {} bytes of memory; {} are free; hint: --sizes",
                      collective.name(), size, active.size(), needed, limit));
  }
  return OkStatus();
}

Status RunCases(const Job& job, Endpoint& endpoint) {
  for (size_t i = 0; i < job.table.cases().size(); ++i) XCCL_RETURN_IF_ERROR(RunCase(job, i, endpoint));
  return OkStatus();
}

// Takes, for each case, the most passes that any process needs: one may know its own rank's instructions
// alone.
Status AgreeOnPasses(LaunchedGroup& group, std::chrono::nanoseconds limit, std::vector<int32_t>& passes) {
  const std::string_view mine(reinterpret_cast<const char*>(passes.data()), passes.size() * sizeof(int32_t));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> all, group.bootstrap().AllGather(mine, limit));
  std::vector<int32_t> theirs(passes.size(), 0);
  for (const std::string& one : all) {
    std::memcpy(theirs.data(), one.data(), std::min(one.size(), theirs.size() * sizeof(int32_t)));
    for (size_t i = 0; i < passes.size(); ++i) passes[i] = std::max(passes[i], theirs[i]);
  }
  return OkStatus();
}

Status RunOwnRank(const Job& job, LaunchedGroup& group) {
  XCCL_ASSIGN_OR_RETURN(Endpoint* const endpoint, group.EndpointOf(job.wiring));
  if (const Status status = RunCases(job, *endpoint); !status.ok()) {
    endpoint->Fail(status);
    return *endpoint->Failure();
  }
  return job.table.Share(endpoint->rank(), [&](std::string_view mine) {
    return group.bootstrap().AllGather(mine, 3 * job.table.options().time_limit);
  });
}

Status RunAllRanks(const Job& job, std::span<const Rank> active, Sharing sharing) {
  XCCL_ASSIGN_OR_RETURN(const SharedRegion region,
                        SharedRegion::Create(job.wiring, sharing, static_cast<int32_t>(active.size())));
  return RunRanks(region, active, job.table.options().time_limit,
                  [&](Endpoint& endpoint) { return RunCases(job, endpoint); });
}

}  // namespace

StatusOr<std::vector<RunRow>> RunProgram(const Program& program, const Collective& collective,
                                         const RunOptions& options, const CpuRunOptions& cpu) {
  const Program* programs[] = {&program};
  XCCL_ASSIGN_OR_RETURN(Wiring wiring, WiringOf(programs, cpu.wiring));
  if (cpu.topology != nullptr) SetRails(program, RailsOf(program, *cpu.topology), wiring);
  std::vector<Rank> active = ActiveRanks(program, collective);
  if (cpu.group != nullptr) active = {cpu.group->bootstrap().rank()};
  XCCL_RETURN_IF_ERROR(CheckMemory(program, collective, wiring, active, options, cpu.memory_limit));
  XCCL_ASSIGN_OR_RETURN(const RunTable table,
                        RunTable::Create(program, collective, options, ActiveRanks(program, collective)));
  std::vector<int32_t> passes;
  for (const RunTable::Case& now : table.cases()) {
    XCCL_ASSIGN_OR_RETURN(const int32_t of_case,
                          PassesFor(program, collective, now.sizes, wiring.slot_bytes));
    passes.push_back(of_case);
  }
  if (cpu.group != nullptr) XCCL_RETURN_IF_ERROR(AgreeOnPasses(*cpu.group, 3 * options.time_limit, passes));
  const Sharing sharing = options.processes ? Sharing::kChildren : Sharing::kThreads;
  const bool threads = cpu.group == nullptr && sharing == Sharing::kThreads;
  const Job job{program, collective, table, wiring, passes, cpu.group, threads};
  XCCL_RETURN_IF_ERROR(cpu.group != nullptr ? RunOwnRank(job, *cpu.group)
                                            : RunAllRanks(job, active, sharing));
  return table.Rows();
}

}  // namespace xccl
