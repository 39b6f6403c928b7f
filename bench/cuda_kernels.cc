// Compares generated code with the interpreter kernel, an empty launch and the copy ceiling: 8 ranks on one
// GPU, the same program each time, out of place, every element checked.
//   bazel run --config=release //bench:cuda_kernels [-- --quick | --bytes]
// A rank's threadblocks are at most its share of the GPU's multiprocessors. All kernels are compiled first,
// on all cores. Columns: size; time of generated code, of the interpreter kernel, and the second divided by
// the first; an empty cooperative launch of the same grid; bytes that the program moves through device
// memory, and that rate. The last column is the rate as a share of the rate of a large copy measured in the
// same run (sizes that stay in the L2 cache may exceed it). Then come the bars, PASS or MISS. Without a
// device it says so and ends with 0; --bytes needs none.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/standard_streams.h"
#include "base/status.h"
#include "base/units.h"
#include "bench/gpu_times.h"
#include "bench/kernel_traffic.h"
#include "codegen/emit.h"
#include "ir/collective.h"
#include "ir/kernel/kernel_form.h"
#include "ir/known_machines.h"
#include "ir/lower/chains.h"
#include "ir/lower/lower.h"
#include "ir/machine_model.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/kernel_source.h"
#include "runtime/cuda/run_program.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int32_t kRanks = 8;
constexpr int64_t kSmall = 8 << 10;
constexpr double kTolerance = 0.98;  // "never slower", against noise

struct Choice {
  CollectiveKind kind;
  std::string_view engine;
  Protocol protocol;
  bool operator==(const Choice&) const = default;
};
constexpr Choice kChoices[] = {{CollectiveKind::kAllreduce, "direct", Protocol::kLl},
                               {CollectiveKind::kAllreduce, "direct", Protocol::kLl128},
                               {CollectiveKind::kAllreduce, "ring", Protocol::kLl},
                               {CollectiveKind::kAllreduce, "ring", Protocol::kSimple},
                               {CollectiveKind::kAllgather, "direct", Protocol::kSimple},
                               {CollectiveKind::kAllgather, "ring", Protocol::kSimple}};

struct Measured {
  Choice choice;
  int64_t size_bytes = 0;
  double generated_us = 0, interpreter_us = 0, empty_us = 0;
  double share = 0;  // relative to the copy ceiling
  int64_t wrong = 0;
};

// A program and its kernels.
struct Case {
  Choice choice;
  int64_t size_bytes = 0;
  LoweredProgram lowered;
  cuda::KernelImages generated = {}, interpreter = {};
};

struct Machine {
  const cuda::Driver* driver = nullptr;
  std::shared_ptr<const cuda::Gpu> gpu;
  cuda::OwnedStream stream;
  double ceiling_bytes_per_s = 0;
  std::shared_ptr<cuda::KernelCache> cache;
};

StatusOr<LoweredProgram> MakeProgram(const Choice& choice, int32_t ranks, int64_t size_bytes,
                                     std::optional<int32_t> max_blocks) {
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology(fmt::format("nvswitch:{}", ranks)));
  CollectiveSpec spec;
  spec.kind = choice.kind;
  spec.ranks = AllRanks(ranks);
  XCCL_ASSIGN_OR_RETURN(const Collective collective, Collective::Create(spec));
  XCCL_ASSIGN_OR_RETURN(const Engine* engine, FindEngine(choice.engine));
  XCCL_ASSIGN_OR_RETURN(
      const Synthesis made,
      engine->Synthesize({.topology = &topology, .collective = &collective, .size_bytes = size_bytes}));
  const MachineModel machine = HopperModel();
  XCCL_ASSIGN_OR_RETURN(const Schedule chains, lowering::WithoutTrees(made.schedule, topology));
  XCCL_ASSIGN_OR_RETURN(
      LoweredProgram lowered,
      LowerFolded(chains, made.collective, topology,
                  {.size_bytes = size_bytes, .machine = &machine, .max_blocks = max_blocks}));
  lowered.program.protocol = choice.protocol;
  return lowered;
}

StatusOr<Case> MakeCase(const Machine& machine, const Choice& choice, int32_t ranks, int64_t size_bytes) {
  XCCL_ASSIGN_OR_RETURN(
      LoweredProgram lowered,
      MakeProgram(choice, ranks, size_bytes, machine.gpu->properties().multiprocessors / kRanks));
  XCCL_ASSIGN_OR_RETURN(std::string source, Emit(lowered.program, lowered.collective, {}));
  Case made{.choice = choice, .size_bytes = size_bytes, .lowered = std::move(lowered)};
  made.generated = cuda::ImagesOfSource("bench.cu", std::move(source), machine.cache);
  made.interpreter = cuda::ImagesOfInterpreter(made.lowered.program, machine.cache);
  return made;
}

// Compiles the kernels of all cases, on all cores, so that the cases later load them from the cache.
Status CompileAhead(const Machine& machine, const std::vector<Case>& cases) {
  std::vector<const cuda::KernelImages*> images;
  for (const Case& what : cases) images.insert(images.end(), {&what.interpreter, &what.generated});
  std::vector<Status> ended(images.size());
  std::atomic<size_t> next = 0;
  {
    std::vector<std::jthread> threads(std::max(1U, std::thread::hardware_concurrency()));
    for (std::jthread& thread : threads)
      thread = std::jthread([&] {
        for (size_t at = next++; at < images.size(); at = next++)
          ended[at] =
              (*images[at])(DataType::kFloat, ReduceOp::kSum, machine.gpu->properties().arch).status();
      });
  }
  for (const Status& status : ended) XCCL_RETURN_IF_ERROR(status);
  return OkStatus();
}

StatusOr<cuda::RunReport> RunOnce(const Machine& machine, const Case& what, bool interpret) {
  RunOptions options;
  options.sizes_bytes = {what.size_bytes};
  options.in_place = false;
  cuda::GpuRunOptions gpu = {};
  gpu.ranks_per_gpu = kRanks;
  gpu.program.no_kernel = "asked for";
  if (interpret) gpu.program.interpreter = what.interpreter;
  const cuda::Driver* const driver = machine.driver;
  return cuda::RunProgram(
      "bench", what.lowered.program, what.lowered.collective,
      interpret ? cuda::KernelImages() : what.generated,
      [driver]() -> StatusOr<const cuda::Driver*> { return driver; }, options, gpu);
}

StatusOr<Measured> Measure(const Machine& machine, const Case& what) {
  XCCL_ASSIGN_OR_RETURN(const cuda::RunReport generated, RunOnce(machine, what, false));
  XCCL_ASSIGN_OR_RETURN(const cuda::RunReport interpreter, RunOnce(machine, what, true));
  XCCL_ASSIGN_OR_RETURN(const double empty,
                        cuda::EmptyLaunchSeconds(machine.gpu, machine.stream,
                                                 static_cast<uint32_t>(generated.usage.ctas * kRanks),
                                                 static_cast<uint32_t>(generated.usage.threads)));
  const LoweredProgram& lowered = what.lowered;
  XCCL_ASSIGN_OR_RETURN(const KernelForm form, MakeKernelForm(lowered.program, lowered.collective));
  const CollectiveSizes sizes(lowered.collective, what.size_bytes);
  const int64_t traffic = KernelTraffic(form, sizes, lowered.program.protocol, true);
  const RunRow &fast = generated.rows.front(), &slow = interpreter.rows.front();
  const double rate = static_cast<double>(traffic) / fast.time_us * 1e6;
  Measured row{what.choice,
               fast.size_bytes,
               fast.time_us,
               slow.time_us,
               empty * 1e6,
               rate / machine.ceiling_bytes_per_s,
               fast.wrong + slow.wrong + fast.out_of_bounds + slow.out_of_bounds};
  fmt::print("{:>10} {:>10.2f} {:>10.2f} {:>6.2f} {:>8.2f} {:>13} {:>8.1f} {:>6.1f}% {:>5}x{:<4} {:>5}\n",
             FormatSize(row.size_bytes), row.generated_us, row.interpreter_us,
             row.interpreter_us / row.generated_us, row.empty_us, traffic, rate / 1e9, row.share * 100,
             generated.usage.ctas, generated.usage.threads, row.wrong);
  return row;
}

// Time of one hop of LL: rings of 8 and of 2 ranks have 14 and 2.
StatusOr<double> HopUs(const Machine& machine, const Case& ring_of_2, const Case& ring_of_8) {
  XCCL_ASSIGN_OR_RETURN(const cuda::RunReport few, RunOnce(machine, ring_of_2, false));
  XCCL_ASSIGN_OR_RETURN(const cuda::RunReport all, RunOnce(machine, ring_of_8, false));
  return (all.rows.front().time_us - few.rows.front().time_us) / (2 * (kRanks - 1) - 2);
}

bool Bar(bool holds, const std::string& text) {
  fmt::print("{}  {}\n", holds ? "PASS" : "MISS", text);
  return holds;
}

bool PrintBars(const std::vector<Measured>& rows, double hop_us) {
  int64_t wrong = 0, largest = 0;
  double least_small = 1e9, least = 1e9, small_us = 1e9, small_empty_us = 0;
  for (const Measured& row : rows) {
    wrong += row.wrong;
    largest = std::max(largest, row.size_bytes);
    const double ratio = row.interpreter_us / row.generated_us;
    least = std::min(least, ratio);
    if (row.size_bytes <= 64 << 10) least_small = std::min(least_small, ratio);
    if (row.choice.kind == CollectiveKind::kAllreduce && row.size_bytes == kSmall &&
        row.choice.engine == "direct" && row.generated_us < small_us) {
      small_us = row.generated_us;
      small_empty_us = row.empty_us;
    }
  }
  bool all = Bar(wrong == 0, fmt::format("{} elements wrong; expected 0", wrong));
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kAllreduce}) {
    double share = 0;
    for (const Measured& row : rows)
      if (row.choice.kind == kind && row.size_bytes * 2 > largest) share = std::max(share, row.share);
    all &= Bar(share >= 0.85, fmt::format("{} of {}: {:.1f} % of the copy ceiling; expected 85 % or more",
                                          ToString(kind), FormatSize(largest), share * 100));
  }
  // The direct allreduce has two hops.
  const double over = small_us - small_empty_us - 2 * hop_us;
  all &=
      Bar(over <= 2,
          fmt::format("allreduce of 8 KiB: {:.2f} us, {:.2f} us above an empty launch of {:.2f} us and two "
                      "hops of {:.2f} us; expected 2 us or less",
                      small_us, over, small_empty_us, hop_us));
  all &=
      Bar(least_small >= 1.2,
          fmt::format("up to 64 KiB the interpreter kernel takes at least {:.2f} times as long as generated "
                      "code; expected 1.2 or more",
                      least_small));
  return Bar(least >= kTolerance,
             fmt::format("generated code is never slower: least ratio {:.2f}; expected {} or more", least,
                         kTolerance)) &&
         all;
}

Status Run(bool quick, bool& bars_hold) {
  Machine machine;
  XCCL_ASSIGN_OR_RETURN(machine.driver, cuda::LoadDriver());
  XCCL_ASSIGN_OR_RETURN(machine.gpu, cuda::Gpu::Open(*machine.driver, 0));
  XCCL_ASSIGN_OR_RETURN(machine.stream, cuda::CreateStream(machine.gpu));
  machine.cache = std::make_shared<cuda::KernelCache>("");
  const size_t copied = size_t{1} << 30;
  XCCL_ASSIGN_OR_RETURN(const double seconds, cuda::CopySeconds(machine.gpu, machine.stream, copied));
  machine.ceiling_bytes_per_s = 2 * static_cast<double>(copied) / seconds;
  fmt::print("{}: {} ranks on one GPU, float, sum; a copy of 1 GiB reads and writes {:.1f} GB/s\n",
             machine.gpu->properties().name, kRanks, machine.ceiling_bytes_per_s / 1e9);
  std::vector<int64_t> sizes = {1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20};
  if (!quick) sizes.insert(sizes.end(), {256LL << 20, 1LL << 30});
  std::vector<Case> cases;
  for (const Choice& choice : kChoices) {
    for (const int64_t size : sizes) {
      StatusOr<Case> made = MakeCase(machine, choice, kRanks, size);
      if (made.status().code() == StatusCode::kInvalidInput) {
        fmt::print("# {} by {}, {}, {}: {}\n", ToString(choice.kind), choice.engine,
                   ToString(choice.protocol), FormatSize(size), made.status().message());
        continue;
      }
      XCCL_ASSIGN_OR_RETURN(Case fits, std::move(made));
      cases.push_back(std::move(fits));
    }
  }
  for (const int32_t ranks : {2, kRanks}) {
    XCCL_ASSIGN_OR_RETURN(
        Case ring, MakeCase(machine, {CollectiveKind::kAllreduce, "ring", Protocol::kLl}, ranks, kSmall));
    cases.push_back(std::move(ring));
  }
  XCCL_RETURN_IF_ERROR(CompileAhead(machine, cases));
  std::vector<Measured> rows;
  for (size_t i = 0; i + 2 < cases.size(); ++i) {  // the last two are rings that tell the time of a hop
    const Choice& choice = cases[i].choice;
    if (i == 0 || choice != cases[i - 1].choice)
      fmt::print("# {} by {}, {}\n{:>10} {:>10} {:>10} {:>6} {:>8} {:>13} {:>8} {:>7} {:>10} {:>5}\n",
                 ToString(choice.kind), choice.engine, ToString(choice.protocol), "size", "code us",
                 "interp us", "ratio", "empty us", "bytes moved", "GB/s", "of copy", "CTAs", "wrong");
    XCCL_ASSIGN_OR_RETURN(const Measured row, Measure(machine, cases[i]));
    rows.push_back(row);
  }
  XCCL_ASSIGN_OR_RETURN(const double hop_us, HopUs(machine, cases[cases.size() - 2], cases.back()));
  bars_hold = PrintBars(rows, hop_us);
  return OkStatus();
}

// Without a GPU: checks that all programs can be made and emitted, and prints what they move.
Status PrintBytes() {
  for (const Choice& choice : kChoices) {
    for (const int64_t size : {kSmall, int64_t{1} << 30}) {
      XCCL_ASSIGN_OR_RETURN(const LoweredProgram lowered, MakeProgram(choice, kRanks, size, std::nullopt));
      XCCL_ASSIGN_OR_RETURN(const KernelForm form, MakeKernelForm(lowered.program, lowered.collective));
      XCCL_RETURN_IF_ERROR(Emit(lowered.program, lowered.collective, {}).status());
      const int64_t traffic =
          KernelTraffic(form, CollectiveSizes(lowered.collective, size), choice.protocol, true);
      fmt::print(
          "{:<10} {:<7} {:<7} {:>7}: {} x {} blocks a rank, {:.2f} bytes moved for each of {} ranks' bytes\n",
          ToString(choice.kind), choice.engine, ToString(choice.protocol), FormatSize(size),
          form.blocks_per_rank, lowered.program.instances,
          static_cast<double>(traffic) / static_cast<double>(size * kRanks), kRanks);
    }
  }
  return OkStatus();
}

int Main(int argc, char** argv) {
  const std::string_view flag = argc > 1 ? argv[1] : "";
  const bool quick = flag == "--quick";
  if (flag == "--bytes") {
    const Status status = PrintBytes();
    if (!status.ok()) PrintError(fmt::format("cuda_kernels: {}\n", status.message()));
    return status.ok() ? 0 : 1;
  }
  const StatusOr<const cuda::Driver*> driver = cuda::LoadDriver();
  if (!driver.ok()) {
    fmt::print("skipped: {}\n", driver.status().message());
    return 0;
  }
  bool bars_hold = false;
  const Status status = Run(quick, bars_hold);
  if (!status.ok()) {
    PrintError(fmt::format("cuda_kernels: {}\n", status.message()));
    return 1;
  }
  return bars_hold ? 0 : 3;
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) { return xccl::Main(argc, argv); }
