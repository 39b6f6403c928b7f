#include "runtime/experts/cuda/gpu_team.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <thread>
#include <utility>

namespace xccl::dispatch {
namespace {

using cuda::DeviceMemory;
using cuda::OwnedEvent;
using cuda::OwnedStream;
using cuda::PointerTo;

constexpr auto kPollEvery = std::chrono::microseconds(50);

using OwnedGraph = cuda::Owned<cuda::GraphExec, &cuda::Driver::GraphExecDestroy>;

// One rank's device buffers and streams.
struct OfRank {
  std::shared_ptr<const cuda::Gpu> gpu;
  OwnedStream stream;
  OwnedEvent began, ended;
  DeviceMemory tokens, experts, weights, rows, received, outputs, result;
  GpuHandle handle;
  int32_t own_tokens = 0;
  std::map<std::pair<DataType, int64_t>, OwnedGraph> graphs;  // elements 0: dispatch
};

class Team final : public GpuTeam {
 public:
  Team(const ExpertPlan& plan, const GpuTeamOptions& options) : plan_(plan), options_(options) {}

  // Kernels of a call that failed on the way leave before their memory goes.
  ~Team() override {
    if (experts_ != nullptr) experts_->Abort();
    for (const OfRank& of : ranks_)
      if (of.stream.gpu() != nullptr) (void)Synchronize(of.stream).ok();
  }

  Status Start(const ExpertImages& images, std::vector<std::shared_ptr<const cuda::Gpu>> gpus) {
    std::vector<LocalExpertRank> ranks;
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank) ranks.push_back({rank, gpus[rank]});
    XCCL_ASSIGN_OR_RETURN(experts_, GpuExperts::Connect(plan_.route, plan_, images, std::move(ranks),
                                                        AloneExchange(), options_.experts));
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank)
      XCCL_RETURN_IF_ERROR(MakeRank(rank, std::move(gpus[rank])));
    return OkStatus();
  }

  StatusOr<std::vector<Received>> Dispatch(const Routing& routing, std::span<const Rows> rows) override {
    XCCL_RETURN_IF_ERROR(CheckRouting(routing, plan_.sizes));
    XCCL_RETURN_IF_ERROR(CheckRows(routing, rows));
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank)
      XCCL_RETURN_IF_ERROR(FillRank(rank, routing, rows[rank]));
    XCCL_RETURN_IF_ERROR(RunAll({DataType::kBfloat16, 0}, [&](int32_t rank, cuda::Stream stream) {
      OfRank& of = ranks_[rank];
      return experts_->Dispatch(rank, of.handle,
                                {.tokens = At<const int32_t>(of.tokens),
                                 .experts = At<const void>(of.experts),
                                 .wide_experts = options_.wide_experts,
                                 .weights = At<const float>(of.weights),
                                 .row_bytes = plan_.sizes.row_bytes,
                                 .rows = At<const char>(of.rows),
                                 .received = At<char>(of.received)},
                                stream);
    }));
    std::vector<Received> received(plan_.sizes.ranks);
    host_counts_agree_ = true;
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank)
      XCCL_RETURN_IF_ERROR(ReadRank(rank, received[rank]));
    return received;
  }

  StatusOr<std::vector<Rows>> Combine(std::span<const Received> received, DataType type, int64_t elements,
                                      std::span<const Rows> outputs) override {
    const auto ranks = static_cast<size_t>(plan_.sizes.ranks);
    if (received.size() != ranks || outputs.size() != ranks)
      return InvalidInput(fmt::format("combine: rows of {} ranks; expected {}", outputs.size(), ranks));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto expected = received[rank].row_of_entry.size() * static_cast<size_t>(elements * SizeOf(type));
      if (outputs[rank].size() != expected)
        return InvalidInput(
            fmt::format("combine: rank {}: {} bytes; expected {}", rank, outputs[rank].size(), expected));
      XCCL_RETURN_IF_ERROR(Write(ranks_[rank], ranks_[rank].outputs, outputs[rank].data(), expected));
    }
    XCCL_RETURN_IF_ERROR(RunAll({type, elements}, [&](int32_t rank, cuda::Stream stream) {
      OfRank& of = ranks_[rank];
      return experts_->Combine(rank, of.handle,
                               {.outputs = At<const char>(of.outputs),
                                .result = At<char>(of.result),
                                .type = type,
                                .elements = elements},
                               stream);
    }));
    std::vector<Rows> results(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      results[rank].resize(static_cast<size_t>(ranks_[rank].own_tokens * elements * SizeOf(type)));
      XCCL_RETURN_IF_ERROR(
          Read(ranks_[rank], ranks_[rank].result.address(), results[rank].data(), results[rank].size()));
    }
    return results;
  }

  double last_call_us() const override { return last_call_us_; }
  const GpuExperts& experts() const override { return *experts_; }
  bool host_counts_agree() const override { return host_counts_agree_; }

 private:
  template <class T>
  static T* At(const DeviceMemory& memory) {
    return PointerTo<T>(memory.address());
  }

  Status MakeRank(int32_t rank, std::shared_ptr<const cuda::Gpu> gpu) {
    OfRank& of = ranks_.emplace_back();
    of.gpu = std::move(gpu);
    XCCL_ASSIGN_OR_RETURN(of.stream, CreateStream(of.gpu));
    XCCL_ASSIGN_OR_RETURN(of.began, CreateEvent(of.gpu, /*timed=*/true));
    XCCL_ASSIGN_OR_RETURN(of.ended, CreateEvent(of.gpu, /*timed=*/true));
    const Sizes& sizes = plan_.sizes;
    const int64_t back = experts_->shape().back_bytes, tokens = sizes.max_tokens;
    const std::pair<DeviceMemory*, int64_t> wanted[] = {
        {&of.tokens, 4},
        {&of.experts, tokens * sizes.top_k * (options_.wide_experts ? 8 : 4)},
        {&of.weights, tokens * sizes.top_k * 4},
        {&of.rows, tokens * sizes.row_bytes},
        {&of.received, PlacesOf(sizes) * sizes.row_bytes},
        {&of.outputs, MostEntriesOf(sizes) * back},
        {&of.result, tokens * back},
    };
    for (const auto& [memory, bytes] : wanted) {
      XCCL_ASSIGN_OR_RETURN(*memory,
                            DeviceMemory::Create(of.gpu, static_cast<size_t>(bytes), cuda::Sharing::kNone, {},
                                                 fmt::format("buffers of rank {}", rank)));
    }
    XCCL_ASSIGN_OR_RETURN(of.handle, experts_->MakeHandle(rank, /*host_counts=*/true));
    return OkStatus();
  }

  Status CheckRows(const Routing& routing, std::span<const Rows> rows) const {
    if (static_cast<int32_t>(rows.size()) != plan_.sizes.ranks)
      return InvalidInput(
          fmt::format("dispatch: rows of {} ranks; expected {}", rows.size(), plan_.sizes.ranks));
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank) {
      const int64_t expected = routing.TokensOf(rank) * plan_.sizes.row_bytes;
      if (std::ssize(rows[rank]) != expected)
        return InvalidInput(
            fmt::format("dispatch: rank {}: {} bytes; expected {}", rank, rows[rank].size(), expected));
    }
    return OkStatus();
  }

  // Copies are behind the rank's earlier work, and done when this returns.
  static Status Write(const OfRank& of, const DeviceMemory& to, const void* from, size_t bytes) {
    if (bytes == 0) return OkStatus();
    if (bytes > to.bytes())
      return InvalidInput(fmt::format("{} bytes of outputs; expected at most {}", bytes, to.bytes()));
    const cuda::ScopedContext context(*of.gpu);
    XCCL_RETURN_IF_ERROR(of.gpu->Check(
        of.gpu->driver().MemcpyHtoDAsync(to.address(), from, bytes, of.stream.get()), "cuMemcpyHtoDAsync"));
    return Synchronize(of.stream);
  }
  static Status Read(const OfRank& of, uint64_t from, void* to, size_t bytes) {
    if (bytes == 0) return OkStatus();
    const cuda::ScopedContext context(*of.gpu);
    XCCL_RETURN_IF_ERROR(of.gpu->Check(of.gpu->driver().MemcpyDtoHAsync(to, from, bytes, of.stream.get()),
                                       "cuMemcpyDtoHAsync"));
    return Synchronize(of.stream);
  }
  template <class T>
  static StatusOr<std::vector<T>> ReadTable(const OfRank& of, const T* from, size_t count) {
    std::vector<T> values(count);
    XCCL_RETURN_IF_ERROR(Read(of, reinterpret_cast<uint64_t>(from), values.data(), count * sizeof(T)));
    return values;
  }

  Status FillRank(int32_t rank, const Routing& routing, const Rows& rows) {
    OfRank& of = ranks_[rank];
    of.own_tokens = routing.TokensOf(rank);
    const int64_t first = routing.first_token[rank], last = routing.first_token[rank + 1];
    std::vector<float> weights;
    for (int64_t token = first; token < last; ++token)
      for (int32_t k = 0; k < routing.top_k; ++k) weights.push_back(routing.WeightOf(token, k));
    XCCL_RETURN_IF_ERROR(Write(of, of.tokens, &of.own_tokens, sizeof(int32_t)));
    const std::span<const int32_t> experts(routing.experts.data() + first * routing.top_k, weights.size());
    const std::vector<int64_t> wide(experts.begin(), experts.end());
    XCCL_RETURN_IF_ERROR(options_.wide_experts
                             ? Write(of, of.experts, wide.data(), wide.size() * sizeof(int64_t))
                             : Write(of, of.experts, experts.data(), experts.size_bytes()));
    XCCL_RETURN_IF_ERROR(Write(of, of.weights, weights.data(), weights.size() * sizeof(float)));
    return Write(of, of.rows, rows.data(), rows.size());
  }

  using Queue = std::function<Status(int32_t rank, cuda::Stream stream)>;

  // Runs all ranks' kernels of a call, each on its own stream, and waits for them.
  Status RunAll(const std::pair<DataType, int64_t>& key, const Queue& queue) {
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank) {
      OfRank& of = ranks_[rank];
      if (!options_.graph || of.graphs.contains(key)) continue;
      XCCL_ASSIGN_OR_RETURN(OwnedGraph graph, Capture(rank, queue));
      of.graphs.emplace(key, std::move(graph));
    }
    for (int32_t rank = 0; rank < plan_.sizes.ranks; ++rank) {
      OfRank& of = ranks_[rank];
      const cuda::ScopedContext context(*of.gpu);
      const cuda::Driver& driver = of.gpu->driver();
      XCCL_RETURN_IF_ERROR(
          of.gpu->Check(driver.EventRecord(of.began.get(), of.stream.get()), "cuEventRecord"));
      if (options_.graph)
        XCCL_RETURN_IF_ERROR(
            of.gpu->Check(driver.GraphLaunch(of.graphs.at(key).get(), of.stream.get()), "cuGraphLaunch"));
      else
        XCCL_RETURN_IF_ERROR(queue(rank, of.stream.get()));
      XCCL_RETURN_IF_ERROR(
          of.gpu->Check(driver.EventRecord(of.ended.get(), of.stream.get()), "cuEventRecord"));
    }
    return Await();
  }

  StatusOr<OwnedGraph> Capture(int32_t rank, const Queue& queue) {
    const OfRank& of = ranks_[rank];
    const cuda::ScopedContext context(*of.gpu);
    const cuda::Driver& driver = of.gpu->driver();
    XCCL_RETURN_IF_ERROR(of.gpu->Check(
        driver.StreamBeginCapture(of.stream.get(), cuda::CaptureMode::kThreadLocal), "cuStreamBeginCapture"));
    const Status queued = queue(rank, of.stream.get());
    cuda::Graph graph = nullptr;
    XCCL_RETURN_IF_ERROR(
        of.gpu->Check(driver.StreamEndCapture(of.stream.get(), &graph), "cuStreamEndCapture"));
    cuda::GraphExec exec = nullptr;
    const Status made = of.gpu->Check(driver.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
    driver.GraphDestroy(graph);
    XCCL_RETURN_IF_ERROR(queued);
    XCCL_RETURN_IF_ERROR(made);
    return OwnedGraph(of.gpu, exec);
  }

  // A rank that gives up makes the others leave, so this ends.
  Status Await() {
    last_call_us_ = 0;
    Status failure;
    for (OfRank& of : ranks_) {
      const cuda::ScopedContext context(*of.gpu);
      const cuda::Driver& driver = of.gpu->driver();
      while (true) {
        const cuda::Result result = driver.EventQuery(of.ended.get());
        if (failure.ok() && !experts_->Failure().ok()) {
          failure = experts_->Failure();
          experts_->Abort();
        }
        if (result == cuda::Result::kNotReady) {
          std::this_thread::sleep_for(kPollEvery);
          continue;
        }
        XCCL_RETURN_IF_ERROR(of.gpu->Check(result, "cuEventQuery"));
        break;
      }
      float milliseconds = 0;
      XCCL_RETURN_IF_ERROR(of.gpu->Check(
          driver.EventElapsedTime(&milliseconds, of.began.get(), of.ended.get()), "cuEventElapsedTime"));
      last_call_us_ = std::max(last_call_us_, double{milliseconds} * 1e3);
    }
    if (!failure.ok()) return failure;
    return experts_->Failure();
  }

  // Brings a rank's rows and tables into the form of the CPU ranks, whose rows lie without gaps.
  Status ReadRank(int32_t rank, Received& into) {
    const OfRank& of = ranks_[rank];
    const device::ExpertHandle& tables = of.handle.tables();
    const Sizes& sizes = plan_.sizes;
    const auto places = static_cast<size_t>(PlacesOf(sizes)), top_k = static_cast<size_t>(sizes.top_k);
    const auto local = static_cast<size_t>(sizes.local_experts());
    XCCL_ASSIGN_OR_RETURN(const std::vector<uint32_t> epoch, ReadTable(of, tables.epoch, 1));
    XCCL_ASSIGN_OR_RETURN(const std::vector<uint32_t> stamps, ReadTable(of, tables.stamps, places));
    const auto header_bytes = static_cast<size_t>(HeaderBytes(sizes, Call::kDispatch));
    XCCL_ASSIGN_OR_RETURN(const std::vector<char> headers,
                          ReadTable(of, tables.headers, places * header_bytes));
    XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> rows, ReadTable(of, tables.rows, 1));
    XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> place_of_row,
                          ReadTable(of, tables.places, static_cast<size_t>(rows[0])));
    XCCL_ASSIGN_OR_RETURN(into.rows_of_home,
                          ReadTable(of, tables.rows_of_home, static_cast<size_t>(sizes.ranks)));
    XCCL_ASSIGN_OR_RETURN(into.rows_of_expert, ReadTable(of, tables.rows_of_expert, local));
    XCCL_ASSIGN_OR_RETURN(into.first_of_expert, ReadTable(of, tables.first_of_expert, local + 1));
    const auto entries = static_cast<size_t>(into.first_of_expert.back());
    XCCL_ASSIGN_OR_RETURN(into.row_of_entry, ReadTable(of, tables.row_of_entry, entries));
    XCCL_ASSIGN_OR_RETURN(into.weight_of_entry, ReadTable(of, tables.weight_of_entry, entries));
    std::vector<int32_t> row_at(places, -1);
    into.rows.resize(place_of_row.size() * static_cast<size_t>(sizes.row_bytes));
    for (size_t row = 0; row < place_of_row.size(); ++row) {
      row_at[place_of_row[row]] = static_cast<int32_t>(row);
      XCCL_RETURN_IF_ERROR(
          Read(of, of.received.address() + static_cast<uint64_t>(place_of_row[row] * sizes.row_bytes),
               into.rows.data() + row * static_cast<size_t>(sizes.row_bytes),
               static_cast<size_t>(sizes.row_bytes)));
    }
    for (int32_t& entry : into.row_of_entry) entry = row_at[entry];
    for (size_t place = 0; place < places; ++place) {
      if (stamps[place] != epoch[0]) continue;
      const char* const header = headers.data() + place * header_bytes;
      into.seen.homes.push_back(static_cast<int32_t>(place) / sizes.max_tokens);
      into.seen.tokens.push_back(static_cast<int32_t>(place) % sizes.max_tokens);
      into.seen.rows.push_back(row_at[place]);
      for (size_t k = 0; k < top_k; ++k) {
        float weight;
        int16_t expert;
        std::memcpy(&weight, header + 8 + 4 * k, sizeof weight);
        std::memcpy(&expert, header + 8 + 4 * top_k + 2 * k, sizeof expert);
        into.seen.weights.push_back(weight);
        into.seen.experts.push_back(expert);
      }
    }
    const uint32_t* const told = of.handle.host_counts();
    host_counts_agree_ &= told[0] == static_cast<uint32_t>(rows[0]) && told[local + 1] == epoch[0];
    for (size_t e = 0; e < local; ++e)
      host_counts_agree_ &= told[e + 1] == static_cast<uint32_t>(into.rows_of_expert[e]);
    return OkStatus();
  }

  const ExpertPlan& plan_;
  const GpuTeamOptions options_;
  std::unique_ptr<GpuExperts> experts_;  // null until all are connected
  std::vector<OfRank> ranks_;
  double last_call_us_ = 0;
  bool host_counts_agree_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<GpuTeam>> GpuTeam::Create(const ExpertPlan& plan, const ExpertImages& images,
                                                   std::vector<std::shared_ptr<const cuda::Gpu>> gpus,
                                                   const GpuTeamOptions& options) {
  auto team = std::make_unique<Team>(plan, options);
  XCCL_RETURN_IF_ERROR(team->Start(images, std::move(gpus)));
  return std::unique_ptr<GpuTeam>(std::move(team));
}

}  // namespace xccl::dispatch
