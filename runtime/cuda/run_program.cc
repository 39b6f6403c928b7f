// Each case has these stages: fill, warm up, time with events, then poison, fill and run once more and
// compare on the host. With processes every child does that for its rank, meets the others in an exchange
// before and after each timing, and leaves its results in memory that the parent sees. Ranks that a launcher
// started give each other theirs.
#include "runtime/cuda/run_program.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/exceptions.h"
#include "runtime/cuda/arena.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/registry.h"
#include "runtime/host/exchange.h"
#include "runtime/host/host_memory.h"
#include "runtime/warm_up.h"

namespace xccl::cuda {
namespace {

// The results that processes leave for their parent.
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
  const GpuRunOptions& gpu;
  const RunTable& table;
  const RunOptions& options = table.options();
};

// Some of the ranks, driven by one thread.
class Runner {
 public:
  // exchange: with the processes of this host.
  Runner(const Job& job, std::vector<LocalRank> local, Exchange exchange)
      : job_(job), local_(std::move(local)), exchange_(std::move(exchange)) {}

  Status Run(Shared& shared) {
    DeviceProgramOptions options = job_.gpu.program;
    options.time_limit = job_.options.time_limit;
    options.one_launch = one_launch();
    options.most_bytes = *std::ranges::max_element(job_.options.sizes_bytes);
    if (job_.gpu.launched) options.proxy = std::make_shared<Proxy>(job_.gpu.launched->others);
    if (!one_process() && job_.gpu.registered)
      options.buffers = buffers_ = std::make_shared<BufferRegistry>(local_[0].gpu, local_[0].rank, exchange_);
    const DeviceCall first{job_.options.type, job_.options.op, false};
    XCCL_ASSIGN_OR_RETURN(
        program_,
        DeviceProgram::Connect(job_.name, job_.program, job_.collective, job_.images, local_, exchange_,
                               first, options, std::make_shared<CommunicatorShare>(Residency::OfProcess())));
    std::map<int32_t, size_t> queue_of_device;
    for (const LocalRank& local : local_) {
      const auto [at, first_rank] = queue_of_device.try_emplace(local.gpu->id(), queues_.size());
      if (first_rank || !one_launch()) {
        Queue queue;
        XCCL_ASSIGN_OR_RETURN(queue.stream, CreateStream(local.gpu));
        for (OwnedEvent& mark : queue.marks) {
          XCCL_ASSIGN_OR_RETURN(mark, CreateEvent(local.gpu, /*timed=*/true));
        }
        at->second = queues_.size();
        queues_.push_back(std::move(queue));
      }
      queue_of_rank_.push_back(at->second);
    }
    for (size_t c = 0; c < job_.table.cases().size(); ++c) XCCL_RETURN_IF_ERROR(RunCase(c));
    shared.usage = program_->usage();
    program_->notice().copy(shared.notice, sizeof shared.notice - 1);
    const std::string devices =
        fmt::format("{} x {}", queue_of_device.size(), local_[0].gpu->properties().name);
    devices.copy(shared.devices, sizeof shared.devices - 1);
    return OkStatus();
  }

 private:
  bool one_process() const { return !job_.options.processes && !job_.gpu.launched; }
  bool one_launch() const { return one_process() && job_.gpu.ranks_per_gpu > 1; }
  // All processes meet here at both ends of a timing.
  Status Meet() const {
    return job_.gpu.launched ? job_.gpu.launched->others.barrier() : exchange_.all({}).status();
  }

  struct Buffers {
    RunLayout layout;
    DeviceMemory memory;
  };
  // One per launch: for a device's ranks together, or for each.
  struct Queue {
    OwnedStream stream;
    std::array<OwnedEvent, kSamples + 1> marks;  // the ends of the samples of a timing
  };
  // By sample: seconds of one operation.
  using SampleTimes = decltype(RankResult::sample_s);
  using OwnedGraph = Owned<GraphExec, &Driver::GraphExecDestroy>;

  Status RunCase(size_t index) {
    const RunTable::Case& now = job_.table.cases()[index];
    std::vector<Buffers> buffers;
    for (const LocalRank& local : local_) {
      Buffers each;
      each.layout = job_.table.LayoutOf(now, local.rank);
      // Only memory of the virtual memory functions, in units of what a driver binds, is within a switch's
      // reach.
      const bool bound = buffers_ != nullptr && local.gpu->properties().multicast;
      const int64_t unit = bound ? kRegionAlignment : 1;
      XCCL_ASSIGN_OR_RETURN(
          each.memory,
          DeviceMemory::Create(local.gpu, static_cast<size_t>((each.layout.bytes + unit - 1) / unit * unit),
                               bound ? BestSharing(local.gpu->properties()) : Sharing::kLegacy, {},
                               fmt::format("{}: buffers of rank {}", job_.name, local.rank.value)));
      buffers.push_back(std::move(each));
    }
    XCCL_RETURN_IF_ERROR(RegisterAll(buffers));
    XCCL_RETURN_IF_ERROR(Refill(now, buffers));
    XCCL_RETURN_IF_ERROR(RunUntilWarm(now, buffers));
    XCCL_RETURN_IF_ERROR(Meet());
    std::vector<SampleTimes> seconds;
    XCCL_RETURN_IF_ERROR(Time(now, buffers, seconds));
    XCCL_RETURN_IF_ERROR(Meet());
    XCCL_RETURN_IF_ERROR(Refill(now, buffers));
    XCCL_RETURN_IF_ERROR(Launch(now, buffers));
    XCCL_RETURN_IF_ERROR(program_->Synchronize());
    for (size_t i = 0; i < local_.size(); ++i) {
      RankResult& result = job_.table.ResultOf(index, local_[i].rank);
      result.sample_s = seconds[queue_of_rank_[i]];
      for (int32_t s = 0; s < job_.table.num_samples(); ++s)
        result.seconds += result.sample_s[static_cast<size_t>(s)] *
                          (job_.table.FirstOf(s + 1) - job_.table.FirstOf(s)) /
                          job_.table.FirstOf(job_.table.num_samples());
      XCCL_RETURN_IF_ERROR(Compare(now, i, buffers[i], result));
    }
    if (window_ != 0) {
      XCCL_RETURN_IF_ERROR(buffers_->Deregister(std::exchange(window_, 0)));
      XCCL_RETURN_IF_ERROR(program_->BuffersChanged());
    }
    return Meet();
  }

  Status RegisterAll(const std::vector<Buffers>& buffers) {
    if (buffers_ == nullptr) return OkStatus();
    const DeviceMemory& memory = buffers[0].memory;
    XCCL_ASSIGN_OR_RETURN(window_, buffers_->Register(memory.address(), memory.bytes()));
    return program_->BuffersChanged();
  }

  Status Launch(const RunTable::Case& now, const std::vector<Buffers>& buffers) {
    const DeviceCall call{job_.options.type, job_.options.op, now.in_place};
    std::vector<DeviceBuffers> pointers;
    for (const Buffers& each : buffers)
      pointers.push_back({each.memory.address() + static_cast<uint64_t>(each.layout.input_at),
                          each.memory.address() + static_cast<uint64_t>(each.layout.output_at)});
    if (one_launch()) {
      std::vector<Stream> streams;
      for (const Queue& queue : queues_) streams.push_back(queue.stream.get());
      return program_->LaunchAll(pointers, now.sizes, call, streams);
    }
    for (size_t i = 0; i < local_.size(); ++i)
      XCCL_RETURN_IF_ERROR(program_->Launch(local_[i].rank, pointers[i], now.sizes, call,
                                            queues_[queue_of_rank_[i]].stream.get()));
    return OkStatus();
  }

  // Runs operations until the next is as fast as those after it. All processes of the run make equally many.
  Status RunUntilWarm(const RunTable::Case& now, const std::vector<Buffers>& buffers) {
    WarmUp warm_up(job_.options.warmup);
    while (const int32_t count = warm_up.Next()) {
      const auto start = std::chrono::steady_clock::now();
      for (int32_t i = 0; i < count; ++i) XCCL_RETURN_IF_ERROR(Launch(now, buffers));
      XCCL_RETURN_IF_ERROR(program_->Synchronize());
      double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
      if (warm_up.NeedsTimes()) {
        XCCL_ASSIGN_OR_RETURN(seconds, Slowest(seconds));
      }
      warm_up.Add(seconds);
    }
    return program_->Synchronize();
  }

  // Returns the largest of the times that the processes give.
  StatusOr<double> Slowest(double seconds) const {
    const std::string mine(reinterpret_cast<const char*>(&seconds), sizeof seconds);
    std::vector<std::string> all;
    if (job_.gpu.launched) {
      XCCL_ASSIGN_OR_RETURN(all, job_.gpu.launched->others.all_gather(mine));
    } else {
      XCCL_ASSIGN_OR_RETURN(const std::vector<Parcel> parcels, exchange_.all({mine, {}}));
      for (const Parcel& parcel : parcels) all.push_back(parcel.bytes);
    }
    for (const std::string& one : all) {
      double other = 0;
      std::memcpy(&other, one.data(), std::min(one.size(), sizeof other));
      seconds = std::max(seconds, other);
    }
    return seconds;
  }

  Status Record(int32_t mark) {
    for (const Queue& queue : queues_) {
      const Gpu& gpu = *queue.stream.gpu();
      const ScopedContext context(gpu);
      XCCL_RETURN_IF_ERROR(gpu.Check(
          gpu.driver().EventRecord(queue.marks[static_cast<size_t>(mark)].get(), queue.stream.get()),
          "cuEventRecord"));
    }
    return OkStatus();
  }

  // Times the iterations, sample by sample. `seconds` gets the times by queue.
  Status Time(const RunTable::Case& now, const std::vector<Buffers>& buffers,
              std::vector<SampleTimes>& seconds) {
    OwnedGraph graph;
    if (job_.gpu.graph) {
      XCCL_ASSIGN_OR_RETURN(graph, Capture(now, buffers));
    }
    const int32_t samples = job_.table.num_samples();
    XCCL_RETURN_IF_ERROR(Record(0));
    for (int32_t s = 0; s < samples; ++s) {
      for (int32_t i = job_.table.FirstOf(s); i < job_.table.FirstOf(s + 1); ++i)
        XCCL_RETURN_IF_ERROR(Operation(now, buffers, graph));
      XCCL_RETURN_IF_ERROR(Record(s + 1));
    }
    for (const Queue& queue : queues_) {
      XCCL_RETURN_IF_ERROR(Synchronize(queue.stream));
      const Gpu& gpu = *queue.stream.gpu();
      const ScopedContext context(gpu);
      SampleTimes times = {};
      for (int32_t s = 0; s < samples; ++s) {
        const auto at = static_cast<size_t>(s);
        float milliseconds = 0;
        XCCL_RETURN_IF_ERROR(gpu.Check(
            gpu.driver().EventElapsedTime(&milliseconds, queue.marks[at].get(), queue.marks[at + 1].get()),
            "cuEventElapsedTime"));
        times[at] =
            static_cast<double>(milliseconds) / 1e3 / (job_.table.FirstOf(s + 1) - job_.table.FirstOf(s));
      }
      seconds.push_back(times);
    }
    return program_->Error();
  }

  // One iteration: a launch, or a replay of the graph if there is one.
  Status Operation(const RunTable::Case& now, const std::vector<Buffers>& buffers, const OwnedGraph& graph) {
    if (graph.get() == nullptr) return Launch(now, buffers);
    const Gpu& gpu = *graph.gpu();
    const ScopedContext context(gpu);
    return gpu.Check(gpu.driver().GraphLaunch(graph.get(), queues_[0].stream.get()), "cuGraphLaunch");
  }

  // One launch as a graph.
  StatusOr<OwnedGraph> Capture(const RunTable::Case& now, const std::vector<Buffers>& buffers) {
    if (queues_.size() != 1)
      return InvalidInput(fmt::format("{}: a graph of {} streams; expected one: all ranks on one GPU",
                                      job_.name, queues_.size()));
    const OwnedStream& stream = queues_[0].stream;
    const Gpu& gpu = *stream.gpu();
    const ScopedContext context(gpu);
    const Driver& driver = gpu.driver();
    XCCL_RETURN_IF_ERROR(gpu.Check(driver.StreamBeginCapture(stream.get(), CaptureMode::kThreadLocal),
                                   "cuStreamBeginCapture"));
    const Status launched = Launch(now, buffers);
    Graph graph = nullptr;
    XCCL_RETURN_IF_ERROR(gpu.Check(driver.StreamEndCapture(stream.get(), &graph), "cuStreamEndCapture"));
    const Owned<Graph, &Driver::GraphDestroy> captured(stream.gpu(), graph);
    XCCL_RETURN_IF_ERROR(launched);
    GraphExec exec = nullptr;
    XCCL_RETURN_IF_ERROR(gpu.Check(driver.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate"));
    return OwnedGraph(stream.gpu(), exec);
  }

  Status Copy(size_t i, const Buffers& buffers, bool to_device) {
    const Gpu& gpu = *local_[i].gpu;
    const OwnedStream& stream = queues_[queue_of_rank_[i]].stream;
    const size_t bytes = host_.size();
    {
      const ScopedContext context(gpu);
      const Driver& driver = gpu.driver();
      const cuda::Result result =
          to_device ? driver.MemcpyHtoDAsync(buffers.memory.address(), host_.data(), bytes, stream.get())
                    : driver.MemcpyDtoHAsync(host_.data(), buffers.memory.address(), bytes, stream.get());
      XCCL_RETURN_IF_ERROR(gpu.Check(result, fmt::format("copy of {} bytes", bytes)));
    }
    return Synchronize(stream);
  }

  Status Refill(const RunTable::Case& now, const std::vector<Buffers>& buffers) {
    for (size_t i = 0; i < local_.size(); ++i) {
      host_.resize(static_cast<size_t>(buffers[i].layout.bytes));
      job_.table.Fill(now, local_[i].rank, host_);
      XCCL_RETURN_IF_ERROR(Copy(i, buffers[i], true));
    }
    return Meet();
  }

  Status Compare(const RunTable::Case& now, size_t i, const Buffers& buffers, RankResult& result) {
    host_.resize(static_cast<size_t>(buffers.layout.bytes));
    XCCL_RETURN_IF_ERROR(Copy(i, buffers, false));
    job_.table.Check(now, local_[i].rank, host_, result);
    return OkStatus();
  }

  const Job& job_;
  const std::vector<LocalRank> local_;
  const Exchange exchange_;
  std::shared_ptr<BufferRegistry> buffers_;  // where they are registered
  int32_t window_ = 0;
  std::unique_ptr<DeviceProgram> program_;
  std::vector<Queue> queues_;
  std::vector<size_t> queue_of_rank_;
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

void Keep(const Status& status, Shared& shared) {
  if (status.ok()) return;
  shared.failed = 1;
  shared.code = status.code();
  status.message().copy(shared.text, sizeof shared.text - 1);
}

Status RunRank(const Job& job, const DriverSource& source, const std::string& meeting, size_t place,
               Shared& shared) {
  XCCL_ASSIGN_OR_RETURN(const Driver* driver, source());
  XCCL_ASSIGN_OR_RETURN(std::vector<LocalRank> local,
                        Place(*driver, job.table.ranks(), place, 1, job.gpu.ranks_per_gpu));
  XCCL_ASSIGN_OR_RETURN(Exchange exchange, SocketExchange(meeting, static_cast<int32_t>(place),
                                                          static_cast<int32_t>(job.table.ranks().size()),
                                                          3 * job.options.time_limit));
  return Runner(job, std::move(local), std::move(exchange)).Run(shared);
}

StatusOr<LocalRank> PlaceLaunched(const Driver& driver, const LaunchedRank& launched, int32_t ranks_per_gpu) {
  int devices = 0;
  XCCL_RETURN_IF_ERROR(Check(driver, driver.DeviceGetCount(&devices), "cuDeviceGetCount"));
  const std::vector<int32_t>& host_of = launched.others.host_of;
  const int32_t place = LocalRankOf(launched.rank, host_of);
  const auto here = static_cast<int32_t>(std::ranges::count(host_of, host_of[launched.rank.index()]));
  if (devices > 1 && here > devices * ranks_per_gpu)
    return InvalidInput(
        fmt::format("cuda: {} ranks on the {} devices of this host, {} on each; hint: --ranks-per-gpu {}",
                    here, devices, ranks_per_gpu, (here + devices - 1) / devices));
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<const Gpu> gpu,
                        Gpu::Open(driver, devices == 1 ? 0 : place / ranks_per_gpu));
  return LocalRank{launched.rank, std::move(gpu)};
}

Status RunOwnRank(const Job& job, const DriverSource& source, std::optional<Runner>& runner, Shared& shared) {
  const LaunchedRank& launched = *job.gpu.launched;
  XCCL_RETURN_IF_ERROR(CheckBetweenHosts(job.program, launched.others.host_of, job.name));
  XCCL_ASSIGN_OR_RETURN(const Driver* driver, source());
  XCCL_ASSIGN_OR_RETURN(LocalRank local, PlaceLaunched(*driver, launched, job.gpu.ranks_per_gpu));
  XCCL_ASSIGN_OR_RETURN(Exchange exchange, MeetOnHost(fmt::format("xccl-{}-run", launched.job), launched.rank,
                                                      launched.others, 3 * job.options.time_limit));
  runner.emplace(job, std::vector{std::move(local)}, std::move(exchange));
  return runner->Run(shared);
}

Status RunLaunched(const Job& job, const DriverSource& source, Shared& shared) {
  const LaunchedRank& launched = *job.gpu.launched;
  std::optional<Runner> runner;  // its end waits for the others, which must have been told of a failure
  if (const Status status = RunOwnRank(job, source, runner, shared); !status.ok()) {
    launched.others.Tell(status, launched.rank);
    return launched.others.failure().value_or(status);
  }
  return job.table.Share(launched.rank, launched.others.all_gather);
}

// In the child process, which no exception leaves.
[[noreturn]] void RunChild(const Job& job, const DriverSource& source, const std::string& meeting,
                           size_t place, Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    Keep(RunRank(job, source, meeting, place, shared), shared);
  } catch (const std::exception& error) {
    Keep(StatusOf(error), shared);
  }
  _exit(0);
}

// The first failure that is more than another process's end.
Status FirstFailure(std::span<Shared> all, std::span<const int> endings, std::span<const Rank> ranks) {
  Status last;
  for (size_t i = 0; i < all.size(); ++i) {
    if (WIFSIGNALED(endings[i]))
      return LimitReached(fmt::format("rank {}: its process was ended by signal {} ({})", ranks[i].value,
                                      WTERMSIG(endings[i]), strsignal(WTERMSIG(endings[i]))));
    if (all[i].failed == 0) continue;
    last = Status(all[i].code, all[i].text);
    if (last.code() != StatusCode::kPeerEnded) return last;
  }
  return last;
}

Status RunProcesses(const Job& job, const DriverSource& source, std::span<Shared> shared) {
  const std::string meeting = fmt::format("xccl-run-{}", getpid());
  std::vector<pid_t> children;
  for (size_t i = 0; i < job.table.ranks().size(); ++i) {
    const pid_t child = fork();
    if (child == 0) RunChild(job, source, meeting, i, shared[i]);
    if (child < 0) {
      for (const pid_t other : children) kill(other, SIGKILL);
      return InvalidInput(
          fmt::format("cannot start a process for rank {}: {}", job.table.ranks()[i].value, strerror(errno)));
    }
    children.push_back(child);
  }
  std::vector<int> endings(children.size());
  for (size_t i = 0; i < children.size(); ++i) waitpid(children[i], &endings[i], 0);
  return FirstFailure(shared, endings, job.table.ranks());
}

}  // namespace

StatusOr<RunReport> RunProgram(const std::string& name, const Program& program, const Collective& collective,
                               const KernelImages& images, const DriverSource& driver,
                               const RunOptions& options, const GpuRunOptions& gpu) {
  std::vector<Rank> ranks = ActiveRanks(program, collective);
  // A launch runs a range of ranks: those in between are idle.
  if (!options.processes && !gpu.launched && gpu.ranks_per_gpu > 1) {
    const Rank first = ranks.front(), last = ranks.back();
    ranks.clear();
    for (Rank r = first; r <= last; ++r.value) ranks.push_back(r);
  }
  XCCL_ASSIGN_OR_RETURN(const RunTable table, RunTable::Create(program, collective, options, ranks));
  XCCL_ASSIGN_OR_RETURN(const HostMemory memory,
                        HostMemory::CreateShared(static_cast<int64_t>(ranks.size() * sizeof(Shared))));
  const std::span<Shared> shared = memory.As<Shared>(ranks.size());
  const Job job{name, program, collective, images, gpu, table};
  if (gpu.launched) {
    XCCL_RETURN_IF_ERROR(RunLaunched(job, driver, shared[0]));
  } else if (options.processes) {
    XCCL_RETURN_IF_ERROR(RunProcesses(job, driver, shared));
  } else {
    XCCL_ASSIGN_OR_RETURN(const Driver* loaded, driver());
    XCCL_ASSIGN_OR_RETURN(std::vector<LocalRank> local,
                          Place(*loaded, ranks, 0, ranks.size(), gpu.ranks_per_gpu));
    XCCL_RETURN_IF_ERROR(Runner(job, std::move(local), AloneExchange()).Run(shared[0]));
  }
  return RunReport{table.Rows(), shared[0].usage, shared[0].devices, shared[0].notice};
}

}  // namespace xccl::cuda
