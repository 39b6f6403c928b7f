// A team has a thread and an ExpertRank for each rank. A call is one job for all threads.
#include "runtime/experts/team.h"

#include <fmt/core.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/exceptions.h"
#include "base/threads.h"
#include "runtime/endpoint.h"
#include "runtime/experts/rank.h"
#include "runtime/experts/wires.h"
#include "runtime/transport/shared_region.h"

namespace xccl::dispatch {
namespace {

struct Member {
  Member(const ExpertWires& wires, const SharedRegion& region, Rank of)
      : endpoint(region, of), rank(wires, endpoint) {}
  Endpoint endpoint;
  ExpertRank rank;
};

class Threads final : public ExpertTeam {
 public:
  Threads(ExpertWires wires, SharedRegion region, std::chrono::nanoseconds patience)
      : wires_(std::move(wires)), region_(std::move(region)), patience_(patience) {
    for (int32_t rank = 0; rank < sizes().ranks; ++rank)
      members_.push_back(std::make_unique<Member>(wires_, region_, Rank(rank)));
  }

  ~Threads() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      ++job_number_;
    }
    begin_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Status Start() {
    for (const std::unique_ptr<Member>& member : members_) {
      XCCL_ASSIGN_OR_RETURN(std::thread thread,
                            StartThread([this, member = member.get()] { Work(*member); }));
      threads_.push_back(std::move(thread));
    }
    return OkStatus();
  }

  StatusOr<std::vector<Received>> Dispatch(const Routing& routing, std::span<const Rows> rows) override {
    XCCL_RETURN_IF_ERROR(CheckRouting(routing, sizes()));
    const int32_t ranks = sizes().ranks;
    if (static_cast<int32_t>(rows.size()) != ranks)
      return InvalidInput(fmt::format("dispatch: rows of {} ranks; expected {}", rows.size(), ranks));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const int64_t expected = routing.TokensOf(rank) * sizes().row_bytes;
      if (static_cast<int64_t>(rows[rank].size()) != expected)
        return InvalidInput(
            fmt::format("dispatch: rank {}: {} bytes; expected {}", rank, rows[rank].size(), expected));
    }
    std::vector<Received> received(ranks);
    XCCL_RETURN_IF_ERROR(DoAll([&](ExpertRank& rank) -> Status {
      const int32_t r = rank.rank();
      const OwnTokens own{routing.TokensOf(r), routing.ExpertsOfRank(r), routing.WeightsOfRank(r)};
      XCCL_ASSIGN_OR_RETURN(received[r],
                            rank.Dispatch(own, {.rows = rows[r].data(), .row_bytes = sizes().row_bytes},
                                          KeepRowsOf(sizes().row_bytes), patience_));
      return OkStatus();
    }));
    return received;
  }

  StatusOr<std::vector<Rows>> Combine(std::span<const Received> received, DataType type, int64_t elements,
                                      std::span<const Rows> outputs) override {
    const auto ranks = static_cast<size_t>(sizes().ranks);
    XCCL_RETURN_IF_ERROR(CheckCombineType(type));
    if (received.size() != ranks || outputs.size() != ranks || elements < 1)
      return InvalidInput(fmt::format("combine: rows of {} ranks; expected {}", outputs.size(), ranks));
    const auto row_bytes = static_cast<size_t>(elements * SizeOf(type));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const size_t expected = received[rank].row_of_entry.size() * row_bytes;
      if (outputs[rank].size() != expected)
        return InvalidInput(
            fmt::format("combine: rank {}: {} bytes; expected {}", rank, outputs[rank].size(), expected));
    }
    std::vector<Rows> results(ranks);
    XCCL_RETURN_IF_ERROR(DoAll([&](ExpertRank& rank) {
      const int32_t r = rank.rank();
      results[r].resize(static_cast<size_t>(received[r].own_tokens) * row_bytes);
      return rank.Combine(received[r], type, elements, Outputs::kWeighted, outputs[r].data(),
                          results[r].data(), patience_);
    }));
    return results;
  }

 private:
  using Job = std::function<Status(ExpertRank&)>;

  const Sizes& sizes() const { return wires_.plan->sizes; }

  static void Do(const Job& job, Member& member) {
    try {
      if (const Status status = job(member.rank); !status.ok()) member.endpoint.Fail(status);
    } catch (const std::exception& error) {
      member.endpoint.Fail(Annotate(StatusOf(error), fmt::format("rank {}", member.rank.rank())));
    }
  }

  void Work(Member& member) {
    uint64_t done = 0;
    while (true) {
      const Job* job;
      {
        std::unique_lock lock(mutex_);
        begin_.wait(lock, [&] { return job_number_ != done; });
        done = job_number_;
        if (ending_) return;
        job = job_;
      }
      Do(*job, member);
      const std::lock_guard lock(mutex_);
      if (--working_ == 0) end_.notify_all();
    }
  }

  // Runs the job on all ranks' threads.
  Status DoAll(const Job& job) {
    std::unique_lock lock(mutex_);
    job_ = &job;
    working_ = sizes().ranks;
    ++job_number_;
    begin_.notify_all();
    end_.wait(lock, [&] { return working_ == 0; });
    return region_.Failure().value_or(OkStatus());
  }

  const ExpertWires wires_;
  const SharedRegion region_;
  const std::chrono::nanoseconds patience_;
  std::vector<std::unique_ptr<Member>> members_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const Job* job_ = nullptr;
  uint64_t job_number_ = 0;
  int32_t working_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

StatusOr<std::unique_ptr<ExpertTeam>> ExpertTeam::Create(const ExpertPlan& plan,
                                                         std::chrono::nanoseconds patience,
                                                         const WireOptions& options) {
  XCCL_ASSIGN_OR_RETURN(ExpertWires wires, WireExperts(plan, options));
  XCCL_ASSIGN_OR_RETURN(SharedRegion region, SharedRegion::Create(wires.wiring, Sharing::kThreads));
  auto team = std::make_unique<Threads>(std::move(wires), std::move(region), patience);
  XCCL_RETURN_IF_ERROR(team->Start());
  return std::unique_ptr<ExpertTeam>(std::move(team));
}

}  // namespace xccl::dispatch
