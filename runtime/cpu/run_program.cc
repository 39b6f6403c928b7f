// Every rank walks the same list of cases in step: prepare, warm up, time, then one more operation on fresh
// inputs and a poisoned output, which is checked. Results lie in memory that child processes share.
#include "runtime/cpu/run_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "ir/sizes.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/launch.h"
#include "runtime/cpu/shared_region.h"
#include "runtime/executor.h"
#include "runtime/run_layout.h"
#include "runtime/test_data.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  CollectiveSizes sizes;
  bool in_place = false;
  int32_t passes = 1;
};

struct Result {
  double seconds = 0;
  int64_t wrong = 0;
  int64_t out_of_bounds = 0;
};

struct Job {
  const Program& program;
  const Collective& collective;
  const RunOptions& options;
  const SharedRegion& region;
  const TestData& data;
  const std::vector<Case>& cases;
  std::span<Result> results;  // [case][rank]
};

// A rank's input and output with guards around them, and its scratch.
class GuardedBuffers {
 public:
  static StatusOr<GuardedBuffers> Create(Device& device, const RunLayout& layout, int64_t scratch_bytes) {
    GuardedBuffers buffers(device);
    buffers.layout_ = layout;
    buffers.bytes_ = layout.bytes + scratch_bytes + kRunGuardBytes;
    XCCL_ASSIGN_OR_RETURN(buffers.memory_, device.Allocate(buffers.bytes_));
    return buffers;
  }
  GuardedBuffers(GuardedBuffers&& other) noexcept { *this = std::move(other); }
  GuardedBuffers& operator=(GuardedBuffers&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::tie(bytes_, layout_) = std::tie(other.bytes_, other.layout_);
    return *this;
  }
  ~GuardedBuffers() {
    if (memory_ != nullptr) device_->Free(memory_, bytes_);
  }

  std::byte* input() const { return memory_ + layout_.input_at; }
  std::byte* output() const { return memory_ + layout_.output_at; }
  RankBuffers pointers() const { return {input(), output(), memory_ + layout_.bytes}; }
  void Poison() const { PoisonRun(layout_, {memory_, static_cast<size_t>(layout_.bytes)}); }
  int64_t Overwritten() const {
    return OverwrittenGuards(layout_, {memory_, static_cast<size_t>(layout_.bytes)});
  }

 private:
  explicit GuardedBuffers(Device& device) : device_(&device) {}
  Device* device_ = nullptr;
  std::byte* memory_ = nullptr;
  int64_t bytes_ = 0;
  RunLayout layout_;
};

Status RunCase(const Job& job, size_t index, Device& device, Transport& transport) {
  const Case& now = job.cases[index];
  const Rank rank = transport.rank();
  const bool threads = job.region.sharing() == Sharing::kThreads;
  XCCL_ASSIGN_OR_RETURN(const RankWork work,
                        PrepareRank(job.program, job.collective, now.sizes, job.region.wiring(), rank,
                                    now.passes, now.in_place, threads));
  const RunLayout layout = RunLayoutOf(job.collective, now.sizes, rank, now.in_place);
  XCCL_ASSIGN_OR_RETURN(const GuardedBuffers buffers,
                        GuardedBuffers::Create(device, layout, work.scratch_bytes));
  // Longer than an operation may stand still, so that a rank that is stuck in one is the first to speak.
  const auto barrier = [&] { return transport.Barrier(3 * job.options.time_limit); };
  const ExecuteOptions execute{job.options.type, job.options.op, job.options.time_limit};
  const auto run = [&] { return ExecuteRank(work, execute, buffers.pointers(), device, transport); };
  const auto refill = [&] {
    buffers.Poison();
    job.data.Fill(now.sizes, rank, buffers.input());
    transport.NoteProgress();
    return barrier();
  };
  XCCL_RETURN_IF_ERROR(refill());
  for (int32_t i = 0; i < job.options.warmup; ++i) XCCL_RETURN_IF_ERROR(run());
  XCCL_RETURN_IF_ERROR(barrier());
  const Clock::time_point start = Clock::now();
  for (int32_t i = 0; i < job.options.iterations; ++i) XCCL_RETURN_IF_ERROR(run());
  Result& result = job.results[index * static_cast<size_t>(transport.ranks()) + rank.index()];
  result.seconds =
      std::chrono::duration<double>(Clock::now() - start).count() / std::max(1, job.options.iterations);
  XCCL_RETURN_IF_ERROR(barrier());
  XCCL_RETURN_IF_ERROR(refill());
  XCCL_RETURN_IF_ERROR(run());
  result.wrong = job.data.CountWrong(now.sizes, rank, buffers.output());
  result.out_of_bounds = buffers.Overwritten();
  if (!layout.overlaps) result.out_of_bounds += job.data.CountChanged(now.sizes, rank, buffers.input());
  transport.NoteProgress();
  // Nobody's buffers go while another rank may still look at them.
  return barrier();
}

int64_t BuffersOf(const Program& program, const Collective& collective, const CollectiveSizes& sizes,
                  bool in_place, std::span<const Rank> ranks) {
  int64_t bytes = 0;
  for (Rank rank : ranks) {
    const int64_t input = LayoutOf(program, collective, sizes, rank, BufferKind::kInput).elements;
    const int64_t output = LayoutOf(program, collective, sizes, rank, BufferKind::kOutput).elements;
    const int64_t scratch = LayoutOf(program, collective, sizes, rank, BufferKind::kScratch).elements;
    const bool overlaps = in_place && collective.InPlaceOf(rank).has_value();
    bytes += ((overlaps ? std::max(input, output) : input + output) + scratch) * sizes.element_bytes();
  }
  return bytes;
}

Status CheckMemory(int64_t needed, int64_t limit, const std::string& what) {
  if (limit == 0)
    limit = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE)) /
            10 * 9;
  if (needed <= limit) return OkStatus();
  return InvalidInput(
      fmt::format("{}: needs {} bytes of memory; {} are free; hint: --sizes", what, needed, limit));
}

RunRow RowOf(const Case& now, std::span<const Result> results, std::span<const Rank> active, const Job& job) {
  RunRow row;
  row.size_bytes = now.sizes.size_bytes();
  row.count = RunCountOf(job.collective, now.sizes);
  row.in_place = now.in_place;
  for (Rank rank : active) {
    const Result& result = results[rank.index()];
    row.time_us += result.seconds * 1e6 / static_cast<double>(active.size());
    row.wrong += result.wrong;
    row.out_of_bounds += result.out_of_bounds;
  }
  if (row.time_us > 0) row.algbw_gb_per_s = static_cast<double>(row.size_bytes) / row.time_us / 1e3;
  row.busbw_gb_per_s = row.algbw_gb_per_s * BusFactor(job.collective.kind(), job.collective.num_members());
  if (job.options.predicted_ps)
    if (const auto predicted = job.options.predicted_ps(row.size_bytes))
      row.predicted_us = static_cast<double>(*predicted) / 1e6;
  return row;
}

}  // namespace

StatusOr<std::vector<RunRow>> RunProgram(const Program& program, const Collective& collective,
                                         const RunOptions& given) {
  RunOptions options = given;
  // What moves data only has no operator; avg must not scale it.
  if (!collective.Reduces()) options.op = ReduceOp::kSum;
  const Program* programs[] = {&program};
  XCCL_ASSIGN_OR_RETURN(const Wiring wiring, WiringOf(programs, options.wiring));
  const std::vector<Rank> active = ActiveRanks(program, collective);
  std::vector<Case> cases;
  for (int64_t size : options.sizes_bytes) {
    const CollectiveSizes sizes(collective, size, SizeOf(options.type));
    XCCL_RETURN_IF_ERROR(CheckMemory(
        RegionBytes(wiring) + BuffersOf(program, collective, sizes, false, active), options.memory_limit,
        fmt::format("{} of {} bytes on {} ranks", collective.name(), size, active.size())));
    XCCL_ASSIGN_OR_RETURN(const int32_t passes, PassesFor(program, collective, sizes, wiring.slot_bytes));
    cases.push_back({sizes, false, passes});
    if (options.in_place && HasInPlace(program, collective)) cases.push_back({sizes, true, passes});
  }
  int64_t largest = 0;
  for (const Case& now : cases) largest = std::max(largest, RunCountOf(collective, now.sizes));
  XCCL_ASSIGN_OR_RETURN(const TestData data, TestData::Create(collective, options.type, options.op, largest));
  const Sharing sharing = options.processes ? Sharing::kChildren : Sharing::kThreads;
  XCCL_ASSIGN_OR_RETURN(const SharedRegion region,
                        SharedRegion::Create(wiring, sharing, "", static_cast<int32_t>(active.size())));
  const size_t ranks = static_cast<size_t>(wiring.ranks);
  XCCL_ASSIGN_OR_RETURN(const SharedMemory memory,
                        SharedMemory::Create(static_cast<int64_t>(cases.size() * ranks * sizeof(Result))));
  const std::span<Result> results(reinterpret_cast<Result*>(memory.data()), cases.size() * ranks);
  const Job job{program, collective, options, region, data, cases, results};
  XCCL_RETURN_IF_ERROR(RunRanks(region, active, options.time_limit, [&](Transport& transport) -> Status {
    CpuDevice device;
    for (size_t i = 0; i < cases.size(); ++i) XCCL_RETURN_IF_ERROR(RunCase(job, i, device, transport));
    return OkStatus();
  }));
  std::vector<RunRow> rows;
  for (size_t i = 0; i < cases.size(); ++i)
    rows.push_back(RowOf(cases[i], results.subspan(i * ranks, ranks), active, job));
  return rows;
}

}  // namespace xccl
