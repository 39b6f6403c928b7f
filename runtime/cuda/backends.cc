#include "runtime/cuda/backends.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/kernel_source.h"
#include "runtime/cuda/registry.h"

namespace xccl::cuda {
namespace {

using Programs = std::vector<std::unique_ptr<DeviceProgram>>;

// Every plan of a book, connected for the ranks of this process.
Status ConnectInto(Programs& programs, const std::string& book, const std::vector<ServedPlan>& plans,
                   const std::vector<LocalRank>& ranks, const Exchange& exchange,
                   const BackendOptions& options, const std::shared_ptr<CommunicatorShare>& share) {
  for (const ServedPlan& served : plans) {
    const std::string name = fmt::format("{}/{}", book, served.entry.file);
    XCCL_ASSIGN_OR_RETURN(KernelImages images, options.images(name, served));
    const DeviceCall first{served.entry.types == TypeClass::kInteger ? DataType::kInt32 : DataType::kFloat,
                           ReduceOp::kSum, false};
    DeviceProgramOptions program_options = options.program;
    program_options.rails = served.rails;
    program_options.most_bytes = served.entry.max_bytes;
    program_options.no_kernel = "the plan book has no kernel for it";
    const Program& program = served.program;
    if (options.program.proxy != nullptr)
      XCCL_RETURN_IF_ERROR(CheckBetweenHosts(program, options.program.proxy->hosts().host_of, name));
    if (options.interpreter) program_options.interpreter = options.interpreter(program);
    XCCL_ASSIGN_OR_RETURN(std::unique_ptr<DeviceProgram> connected,
                          DeviceProgram::Connect(name, program, served.collective, std::move(images), ranks,
                                                 exchange, first, program_options, share));
    programs.push_back(std::move(connected));
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<Programs>> ConnectAll(const std::string& book, const std::vector<ServedPlan>& plans,
                                               const std::vector<LocalRank>& ranks, const Exchange& exchange,
                                               const BackendOptions& options,
                                               const std::shared_ptr<CommunicatorShare>& share) {
  auto programs = std::make_shared<Programs>();
  const Status connected = ConnectInto(*programs, book, plans, ranks, exchange, options, share);
  if (connected.ok()) return programs;
  // Programs that are connected wait for the others at their end.
  if (options.program.proxy != nullptr) options.program.proxy->hosts().Tell(connected, ranks[0].rank);
  return connected;
}

using Visit = std::function<Status(DeviceProgram&)>;
Status ForEach(const Programs& programs, const Visit& visit) {
  for (const std::unique_ptr<DeviceProgram>& program : programs) XCCL_RETURN_IF_ERROR(visit(*program));
  return OkStatus();
}

ProgramRunner RunnerOf(Rank rank, const std::shared_ptr<Programs>& programs) {
  ProgramRunner runner;
  for (const std::unique_ptr<DeviceProgram>& program : *programs)
    if (!program->notice().empty()) runner.notices.push_back(program->notice());
  runner.launch = [rank, programs](size_t plan, const Call& call, const CollectiveSizes& sizes,
                                   bool in_place) {
    const DeviceBuffers buffers{reinterpret_cast<DevicePointer>(call.send),
                                reinterpret_cast<DevicePointer>(call.receive)};
    return (*programs)[plan]->Launch(rank, buffers, sizes, {call.type, call.op, in_place},
                                     static_cast<Stream>(call.stream));
  };
  runner.synchronize = [rank, programs] {
    return ForEach(*programs, [rank](DeviceProgram& program) { return program.Synchronize(rank); });
  };
  runner.error = [programs] { return ForEach(*programs, &DeviceProgram::Error); };
  runner.abort = [programs](const Status& reason) {
    for (const std::unique_ptr<DeviceProgram>& program : *programs) program->Abort(reason);
  };
  return runner;
}

// The state of a process that is one rank of several: all programs that its communicator ever loaded see its
// buffers.
struct OneRank {
  std::shared_ptr<Proxy> proxy;  // where ranks are on several hosts
  std::optional<Exchange> met;   // with the ranks of this host
  std::shared_ptr<BufferRegistry> buffers;
  std::vector<std::weak_ptr<Programs>> loaded;

  Status ForAll(const Visit& visit) const {
    for (const std::weak_ptr<Programs>& each : loaded)
      if (const std::shared_ptr<Programs> programs = each.lock())
        XCCL_RETURN_IF_ERROR(ForEach(*programs, visit));
    return OkStatus();
  }
};

void AddRegistration(const std::shared_ptr<OneRank>& one, ProgramRunner& runner) {
  runner.register_buffer = [one](const std::byte* buffer, size_t bytes) -> StatusOr<int32_t> {
    XCCL_ASSIGN_OR_RETURN(const int32_t window,
                          one->buffers->Register(reinterpret_cast<DevicePointer>(buffer), bytes));
    XCCL_RETURN_IF_ERROR(one->ForAll(&DeviceProgram::BuffersChanged));
    return window;
  };
  runner.deregister_buffer = [one](int32_t window) {
    XCCL_RETURN_IF_ERROR(one->ForAll([](DeviceProgram& program) { return program.Synchronize(); }));
    XCCL_RETURN_IF_ERROR(one->buffers->Deregister(window));
    return one->ForAll(&DeviceProgram::BuffersChanged);
  };
}

}  // namespace

std::shared_ptr<CommunicatorShare> ShareOf(const BackendOptions& options) {
  if (options.share != nullptr) return options.share;
  return std::make_shared<CommunicatorShare>(
      options.residency != nullptr ? options.residency : Residency::OfProcess(), options.program.ctas_hint);
}

PlanImages ImagesOfBook(std::shared_ptr<KernelCache> cache) {
  return
      [cache = std::move(cache)](const std::string& name, const ServedPlan& plan) -> StatusOr<KernelImages> {
        if (plan.kernel.empty()) return KernelImages();
        return ImagesOfSource(name, plan.kernel, cache, plan.cubins);
      };
}

StatusOr<std::vector<Backend>> ThreadBackends(const Driver& driver, const std::vector<int32_t>& devices,
                                              const BackendOptions& options) {
  std::map<int32_t, std::shared_ptr<const Gpu>> gpus;
  std::vector<LocalRank> ranks;
  for (size_t r = 0; r < devices.size(); ++r) {
    std::shared_ptr<const Gpu>& gpu = gpus[devices[r]];
    if (gpu == nullptr) {
      XCCL_ASSIGN_OR_RETURN(gpu, Gpu::Open(driver, devices[r]));
    }
    ranks.push_back({Rank(static_cast<int32_t>(r)), gpu});
  }
  const auto loads = std::make_shared<SharedInTurn<std::shared_ptr<Programs>>>();
  const std::shared_ptr<CommunicatorShare> share = ShareOf(options);
  std::vector<Backend> backends;
  for (const LocalRank& local : ranks) {
    Backend backend;
    backend.load = [loads, ranks, options, share, rank = local.rank, next = size_t{0}](
                       const std::string& book,
                       const std::vector<ServedPlan>& plans) mutable -> StatusOr<ProgramRunner> {
      const auto make = [&] { return ConnectAll(book, plans, ranks, AloneExchange(), options, share); };
      const auto fits = [&](const auto& made) { return made->size() == plans.size(); };
      XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Programs>* programs, loads->Get(next, make, fits));
      ++next;
      return RunnerOf(rank, *programs);
    };
    backends.push_back(std::move(backend));
  }
  return backends;
}

StatusOr<Backend> ProcessBackend(const Driver& driver, const std::string& name, Rank rank, int32_t ranks,
                                 int32_t device, std::chrono::nanoseconds time_limit,
                                 const BackendOptions& options) {
  XCCL_ASSIGN_OR_RETURN(std::shared_ptr<const Gpu> gpu, Gpu::Open(driver, device));
  Backend backend;
  const std::vector<LocalRank> local = {{rank, std::move(gpu)}};
  const auto one = std::make_shared<OneRank>();
  const std::shared_ptr<CommunicatorShare> share = ShareOf(options);
  if (options.hosts) one->proxy = std::make_shared<Proxy>(*options.hosts);
  const auto load = [=](const std::string& book,
                        const std::vector<ServedPlan>& plans) -> StatusOr<ProgramRunner> {
    if (!one->met) {
      XCCL_ASSIGN_OR_RETURN(one->met, options.hosts ? MeetOnHost(name, rank, *options.hosts, time_limit)
                                                    : SocketExchange(name, rank.value, ranks, time_limit));
      one->buffers = std::make_shared<BufferRegistry>(local[0].gpu, rank, *one->met);
    }
    BackendOptions with_buffers = options;
    with_buffers.program.buffers = one->buffers;
    with_buffers.program.proxy = one->proxy;
    XCCL_ASSIGN_OR_RETURN(const std::shared_ptr<Programs> programs,
                          ConnectAll(book, plans, local, *one->met, with_buffers, share));
    one->loaded.push_back(programs);
    ProgramRunner runner = RunnerOf(rank, programs);
    AddRegistration(one, runner);
    if (one->proxy != nullptr)
      runner.abort = [one, abort = runner.abort](const Status& reason) {
        one->proxy->hosts().fail(reason);
        abort(reason);
      };
    return runner;
  };
  backend.load = [=](const std::string& book, const std::vector<ServedPlan>& plans) {
    StatusOr<ProgramRunner> loaded = load(book, plans);
    if (!loaded.ok() && options.hosts) options.hosts->Tell(loaded.status(), rank);
    return loaded;
  };
  return backend;
}

}  // namespace xccl::cuda
