// Every case: fill, warm up, time with events, then poison, fill and run once more and compare on the host.
// With processes every child does that for its rank, meets the others in an exchange before and after each
// timing, and leaves its results in memory that the parent sees.
#include "runtime/cuda/run_program.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "ir/sizes.h"
#include "runtime/cuda/exchange.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/registry.h"
#include "runtime/run_layout.h"
#include "runtime/test_data.h"

namespace xccl::cuda {
namespace {

struct Case {
  CollectiveSizes sizes;
  bool in_place = false;
};

struct RankResult {
  double seconds = 0;
  int64_t wrong = 0;
  int64_t out_of_bounds = 0;
};

// What processes leave for their parent.
struct Shared {
  int32_t failed = 0;
  StatusCode code = StatusCode::kOk;
  char text[2000] = {};
  char devices[200] = {};
  char notice[500] = {};
  DeviceUsage usage;
};

struct Job {
  const std::string& name;
  const Program& program;
  const Collective& collective;
  const KernelImages& images;
  const RunOptions& options;
  const std::vector<Case>& cases;
  const TestData& data;
  std::vector<Rank> ranks;        // all that take part
  std::span<RankResult> results;  // [case][place in ranks]
};

// Reached after both ends of a timing by all processes.
Status Meet(const Exchange& exchange) { return exchange.all({}).status(); }

// Some of the ranks, driven by one thread.
class Runner {
 public:
  Runner(const Job& job, std::vector<LocalRank> local, Exchange exchange)
      : job_(job), local_(std::move(local)), exchange_(std::move(exchange)) {}

  Status Run(Shared& shared) {
    DeviceProgramOptions options = job_.options.program;
    options.one_launch = one_launch();
    if (job_.options.processes && job_.options.registered)
      options.buffers = buffers_ = std::make_shared<BufferRegistry>(local_[0].gpu, local_[0].rank, exchange_);
    const DeviceCall first{job_.options.type, job_.options.op, false};
    XCCL_ASSIGN_OR_RETURN(
        program_, DeviceProgram::Connect(job_.name, job_.program, job_.collective, job_.images, local_,
                                         exchange_, first, options, Residency::OfProcess()));
    std::map<int32_t, size_t> stream_of_device;
    for (const LocalRank& local : local_) {
      // One stream a launch: for a device's ranks together, or for each.
      if (one_launch() && stream_of_device.contains(local.gpu->id())) {
        stream_of_rank_.push_back(stream_of_device[local.gpu->id()]);
        continue;
      }
      stream_of_device[local.gpu->id()] = streams_.size();
      stream_of_rank_.push_back(streams_.size());
      gpus_.push_back(local.gpu);
      XCCL_ASSIGN_OR_RETURN(OwnedStream stream, OwnedStream::Create(local.gpu));
      XCCL_ASSIGN_OR_RETURN(OwnedEvent begin, OwnedEvent::Create(local.gpu));
      XCCL_ASSIGN_OR_RETURN(OwnedEvent end, OwnedEvent::Create(local.gpu));
      streams_.push_back(std::move(stream));
      begins_.push_back(std::move(begin));
      ends_.push_back(std::move(end));
    }
    for (size_t c = 0; c < job_.cases.size(); ++c) XCCL_RETURN_IF_ERROR(RunCase(c));
    shared.usage = program_->usage();
    program_->notice().copy(shared.notice, sizeof shared.notice - 1);
    const std::string devices =
        fmt::format("{} x {}", stream_of_device.size(), local_[0].gpu->properties().name);
    devices.copy(shared.devices, sizeof shared.devices - 1);
    return OkStatus();
  }

 private:
  bool one_launch() const { return !job_.options.processes && job_.options.ranks_per_gpu > 1; }

  struct Buffers {
    RunLayout layout;
    DeviceMemory memory;
  };

  Status RunCase(size_t index) {
    const Case& now = job_.cases[index];
    std::vector<Buffers> buffers;
    for (const LocalRank& local : local_) {
      Buffers each;
      each.layout = RunLayoutOf(job_.collective, now.sizes, local.rank, now.in_place);
      XCCL_ASSIGN_OR_RETURN(
          each.memory,
          DeviceMemory::Create(local.gpu, static_cast<size_t>(each.layout.bytes), Sharing::kLegacy, {},
                               fmt::format("{}: buffers of rank {}", job_.name, local.rank.value)));
      buffers.push_back(std::move(each));
    }
    XCCL_RETURN_IF_ERROR(RegisterAll(buffers));
    XCCL_RETURN_IF_ERROR(Refill(now, buffers));
    for (int32_t i = 0; i < job_.options.warmup; ++i) XCCL_RETURN_IF_ERROR(Launch(now, buffers));
    XCCL_RETURN_IF_ERROR(program_->Synchronize());
    XCCL_RETURN_IF_ERROR(Meet(exchange_));
    std::vector<double> seconds;
    XCCL_RETURN_IF_ERROR(Time(now, buffers, seconds));
    XCCL_RETURN_IF_ERROR(Meet(exchange_));
    XCCL_RETURN_IF_ERROR(Refill(now, buffers));
    XCCL_RETURN_IF_ERROR(Launch(now, buffers));
    XCCL_RETURN_IF_ERROR(program_->Synchronize());
    for (size_t i = 0; i < local_.size(); ++i) {
      RankResult& result = ResultOf(index, local_[i].rank);
      result.seconds = seconds[stream_of_rank_[i]];
      XCCL_RETURN_IF_ERROR(Compare(now, i, buffers[i], result));
    }
    if (window_ != 0) {
      XCCL_RETURN_IF_ERROR(buffers_->Deregister(std::exchange(window_, 0)));
      XCCL_RETURN_IF_ERROR(program_->BuffersChanged());
    }
    return Meet(exchange_);
  }

  Status RegisterAll(const std::vector<Buffers>& buffers) {
    if (buffers_ == nullptr) return OkStatus();
    const DeviceMemory& memory = buffers[0].memory;
    XCCL_ASSIGN_OR_RETURN(window_, buffers_->Register(memory.address(), memory.bytes()));
    return program_->BuffersChanged();
  }

  RankResult& ResultOf(size_t index, Rank rank) const {
    const auto at = std::ranges::find(job_.ranks, rank);
    return job_.results[index * job_.ranks.size() + static_cast<size_t>(at - job_.ranks.begin())];
  }

  Status Launch(const Case& now, const std::vector<Buffers>& buffers) {
    const DeviceCall call{job_.options.type, job_.options.op, now.in_place};
    std::vector<DeviceBuffers> pointers;
    for (const Buffers& each : buffers)
      pointers.push_back({each.memory.address() + static_cast<uint64_t>(each.layout.input_at),
                          each.memory.address() + static_cast<uint64_t>(each.layout.output_at)});
    if (one_launch()) {
      std::vector<Stream> streams;
      for (const OwnedStream& stream : streams_) streams.push_back(stream.get());
      return program_->LaunchAll(pointers, now.sizes, call, streams);
    }
    for (size_t i = 0; i < local_.size(); ++i)
      XCCL_RETURN_IF_ERROR(
          program_->Launch(local_[i].rank, pointers[i], now.sizes, call, streams_[stream_of_rank_[i]].get()));
    return OkStatus();
  }

  Status Record(const std::vector<OwnedEvent>& events) {
    for (size_t s = 0; s < streams_.size(); ++s) {
      const ScopedContext context(*gpus_[s]);
      XCCL_RETURN_IF_ERROR(gpus_[s]->Check(gpus_[s]->driver().EventRecord(events[s].get(), streams_[s].get()),
                                           "cuEventRecord"));
    }
    return OkStatus();
  }

  Status Time(const Case& now, const std::vector<Buffers>& buffers, std::vector<double>& seconds) {
    const int32_t iterations = std::max(1, job_.options.iterations);
    GraphExec graph = nullptr;
    if (job_.options.graph) XCCL_RETURN_IF_ERROR(Capture(now, buffers, graph));
    XCCL_RETURN_IF_ERROR(Record(begins_));
    for (int32_t i = 0; i < iterations; ++i) {
      if (graph == nullptr) {
        XCCL_RETURN_IF_ERROR(Launch(now, buffers));
        continue;
      }
      const ScopedContext context(*gpus_[0]);
      XCCL_RETURN_IF_ERROR(
          gpus_[0]->Check(gpus_[0]->driver().GraphLaunch(graph, streams_[0].get()), "cuGraphLaunch"));
    }
    XCCL_RETURN_IF_ERROR(Record(ends_));
    for (size_t s = 0; s < streams_.size(); ++s) {
      XCCL_RETURN_IF_ERROR(streams_[s].Synchronize());
      const ScopedContext context(*gpus_[s]);
      float milliseconds = 0;
      XCCL_RETURN_IF_ERROR(gpus_[s]->Check(
          gpus_[s]->driver().EventElapsedTime(&milliseconds, begins_[s].get(), ends_[s].get()),
          "cuEventElapsedTime"));
      seconds.push_back(static_cast<double>(milliseconds) / 1e3 / iterations);
    }
    if (graph != nullptr) gpus_[0]->driver().GraphExecDestroy(graph);
    return program_->Error();
  }

  // One launch as a graph.
  Status Capture(const Case& now, const std::vector<Buffers>& buffers, GraphExec& exec) {
    if (streams_.size() != 1)
      return InvalidInput(fmt::format("{}: a graph of {} streams; expected one: all ranks on one GPU",
                                      job_.name, streams_.size()));
    const Gpu& gpu = *gpus_[0];
    const ScopedContext context(gpu);
    const Driver& driver = gpu.driver();
    XCCL_RETURN_IF_ERROR(gpu.Check(driver.StreamBeginCapture(streams_[0].get(), CaptureMode::kThreadLocal),
                                   "cuStreamBeginCapture"));
    const Status launched = Launch(now, buffers);
    Graph graph = nullptr;
    XCCL_RETURN_IF_ERROR(gpu.Check(driver.StreamEndCapture(streams_[0].get(), &graph), "cuStreamEndCapture"));
    const Status made = gpu.Check(driver.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
    driver.GraphDestroy(graph);
    return launched.ok() ? made : launched;
  }

  Status Copy(size_t i, const Buffers& buffers, bool to_device) {
    const Gpu& gpu = *local_[i].gpu;
    const OwnedStream& stream = streams_[stream_of_rank_[i]];
    const size_t bytes = host_.size();
    {
      const ScopedContext context(gpu);
      const Driver& driver = gpu.driver();
      const cuda::Result result =
          to_device ? driver.MemcpyHtoDAsync(buffers.memory.address(), host_.data(), bytes, stream.get())
                    : driver.MemcpyDtoHAsync(host_.data(), buffers.memory.address(), bytes, stream.get());
      XCCL_RETURN_IF_ERROR(gpu.Check(result, fmt::format("copy of {} bytes", bytes)));
    }
    return stream.Synchronize();
  }

  Status Refill(const Case& now, const std::vector<Buffers>& buffers) {
    for (size_t i = 0; i < local_.size(); ++i) {
      const RunLayout& layout = buffers[i].layout;
      host_.resize(static_cast<size_t>(layout.bytes));
      PoisonRun(layout, host_);
      job_.data.Fill(now.sizes, local_[i].rank, host_.data() + layout.input_at);
      XCCL_RETURN_IF_ERROR(Copy(i, buffers[i], true));
    }
    return Meet(exchange_);
  }

  Status Compare(const Case& now, size_t i, const Buffers& buffers, RankResult& result) {
    const RunLayout& layout = buffers.layout;
    host_.resize(static_cast<size_t>(layout.bytes));
    XCCL_RETURN_IF_ERROR(Copy(i, buffers, false));
    result.wrong = job_.data.CountWrong(now.sizes, local_[i].rank, host_.data() + layout.output_at);
    result.out_of_bounds = OverwrittenGuards(layout, host_);
    if (!layout.overlaps)
      result.out_of_bounds +=
          job_.data.CountChanged(now.sizes, local_[i].rank, host_.data() + layout.input_at);
    return OkStatus();
  }

  const Job& job_;
  const std::vector<LocalRank> local_;
  const Exchange exchange_;
  std::shared_ptr<BufferRegistry> buffers_;  // where they are registered
  int32_t window_ = 0;
  std::unique_ptr<DeviceProgram> program_;
  std::vector<std::shared_ptr<const Gpu>> gpus_;  // by stream
  std::vector<OwnedStream> streams_;
  std::vector<OwnedEvent> begins_, ends_;  // by stream
  std::vector<size_t> stream_of_rank_;
  std::vector<std::byte> host_;
};

StatusOr<std::vector<LocalRank>> Place(const Driver& driver, std::span<const Rank> ranks, size_t first,
                                       size_t count, int32_t ranks_per_gpu) {
  int devices = 0;
  XCCL_RETURN_IF_ERROR(Check(driver, driver.DeviceGetCount(&devices), "cuDeviceGetCount"));
  const int32_t all = static_cast<int32_t>(ranks.size());
  if (all > devices * ranks_per_gpu)
    return InvalidInput(fmt::format("cuda: {} ranks on {} device{}, {} on each; hint: --ranks-per-gpu {}",
                                    all, devices, devices == 1 ? "" : "s", ranks_per_gpu,
                                    (all + devices - 1) / std::max(1, devices)));
  std::map<int32_t, std::shared_ptr<const Gpu>> gpus;
  std::vector<LocalRank> local;
  for (size_t i = first; i < first + count; ++i) {
    std::shared_ptr<const Gpu>& gpu = gpus[static_cast<int32_t>(i) / ranks_per_gpu];
    if (gpu == nullptr) {
      XCCL_ASSIGN_OR_RETURN(gpu, Gpu::Open(driver, static_cast<int32_t>(i) / ranks_per_gpu));
    }
    local.push_back({ranks[i], gpu});
  }
  return local;
}

// Zeroed memory that children share.
struct SharedMapping {
  explicit SharedMapping(size_t size)
      : bytes(size), data(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedMapping() {
    if (data != MAP_FAILED) munmap(data, bytes);
  }
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  size_t bytes;
  void* data;
};

void Keep(const Status& status, Shared& shared) {
  if (status.ok()) return;
  shared.failed = 1;
  shared.code = status.code();
  status.message().copy(shared.text, sizeof shared.text - 1);
}

Status RunChild(const Job& job, const DriverSource& source, const std::string& meeting, size_t place,
                Shared& shared) {
  XCCL_ASSIGN_OR_RETURN(const Driver* driver, source());
  XCCL_ASSIGN_OR_RETURN(std::vector<LocalRank> local,
                        Place(*driver, job.ranks, place, 1, job.options.ranks_per_gpu));
  XCCL_ASSIGN_OR_RETURN(Exchange exchange, SocketExchange(meeting, static_cast<int32_t>(place),
                                                          static_cast<int32_t>(job.ranks.size()),
                                                          3 * job.options.program.time_limit));
  return Runner(job, std::move(local), std::move(exchange)).Run(shared);
}

// The first failure that is not just somebody else's end.
Status FirstFailure(std::span<Shared> all, std::span<const int> endings, std::span<const Rank> ranks) {
  Status last;
  for (size_t i = 0; i < all.size(); ++i) {
    if (WIFSIGNALED(endings[i]))
      return LimitReached(fmt::format("rank {}: its process was ended by signal {} ({})", ranks[i].value,
                                      WTERMSIG(endings[i]), strsignal(WTERMSIG(endings[i]))));
    if (all[i].failed == 0) continue;
    last = Status(all[i].code, all[i].text);
    if (last.message().find("its process ended") == std::string::npos) return last;
  }
  return last;
}

Status RunProcesses(const Job& job, const DriverSource& source, std::span<Shared> shared) {
  const std::string meeting = fmt::format("xccl-run-{}", getpid());
  std::vector<pid_t> children;
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Keep(RunChild(job, source, meeting, i, shared[i]), shared[i]);
      _exit(0);
    }
    if (child < 0) {
      for (const pid_t other : children) kill(other, SIGKILL);
      return InvalidInput(
          fmt::format("cannot start a process for rank {}: {}", job.ranks[i].value, strerror(errno)));
    }
    children.push_back(child);
  }
  std::vector<int> endings(children.size());
  for (size_t i = 0; i < children.size(); ++i) waitpid(children[i], &endings[i], 0);
  return FirstFailure(shared, endings, job.ranks);
}

RunRow RowOf(const Job& job, size_t index) {
  const Case& now = job.cases[index];
  RunRow row;
  row.size_bytes = now.sizes.size_bytes();
  row.count = RunCountOf(job.collective, now.sizes);
  row.in_place = now.in_place;
  for (const RankResult& result : job.results.subspan(index * job.ranks.size(), job.ranks.size())) {
    row.time_us += result.seconds * 1e6 / static_cast<double>(job.ranks.size());
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

StatusOr<RunReport> RunProgram(const std::string& name, const Program& program, const Collective& collective,
                               const KernelImages& images, const DriverSource& driver,
                               const RunOptions& given) {
  RunOptions options = given;
  if (!collective.Reduces()) options.op = ReduceOp::kSum;
  std::vector<Case> cases;
  int64_t largest = 0;
  for (int64_t size : options.sizes_bytes) {
    const CollectiveSizes sizes(collective, size, SizeOf(options.type));
    largest = std::max(largest, RunCountOf(collective, sizes));
    cases.push_back({sizes, false});
    if (options.in_place && HasInPlace(program, collective)) cases.push_back({sizes, true});
  }
  XCCL_ASSIGN_OR_RETURN(const TestData data, TestData::Create(collective, options.type, options.op, largest));
  std::vector<Rank> ranks = ActiveRanks(program, collective);
  // A launch runs a range of ranks: those in between are idle.
  if (!options.processes && options.ranks_per_gpu > 1) {
    const Rank first = ranks.front(), last = ranks.back();
    ranks.clear();
    for (Rank r = first; r <= last; ++r.value) ranks.push_back(r);
  }
  const SharedMapping memory(ranks.size() * (sizeof(Shared) + cases.size() * sizeof(RankResult)));
  if (memory.data == MAP_FAILED) return InvalidInput(name + ": no memory for the results");
  const std::span<Shared> shared(static_cast<Shared*>(memory.data), ranks.size());
  const std::span<RankResult> results(reinterpret_cast<RankResult*>(shared.data() + shared.size()),
                                      ranks.size() * cases.size());
  const Job job{name, program, collective, images, options, cases, data, ranks, results};
  if (options.processes) {
    XCCL_RETURN_IF_ERROR(RunProcesses(job, driver, shared));
  } else {
    XCCL_ASSIGN_OR_RETURN(const Driver* loaded, driver());
    XCCL_ASSIGN_OR_RETURN(std::vector<LocalRank> local,
                          Place(*loaded, ranks, 0, ranks.size(), options.ranks_per_gpu));
    XCCL_RETURN_IF_ERROR(Runner(job, std::move(local), AloneExchange()).Run(shared[0]));
  }
  RunReport report;
  report.usage = shared[0].usage;
  report.devices = shared[0].devices;
  report.notice = shared[0].notice;
  for (size_t c = 0; c < cases.size(); ++c) report.rows.push_back(RowOf(job, c));
  return report;
}

}  // namespace xccl::cuda
