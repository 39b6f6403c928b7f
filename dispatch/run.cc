// A team has a thread for each rank and a ring of messages for each hop. A call is one job for all threads;
// each sleeps where none of its hops can move, and the caller gives up where no thread has moved for too
// long.
#include "dispatch/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "base/threads.h"
#include "dispatch/team.h"

namespace xccl::dispatch {
namespace {

std::vector<RankHops> HopsOfRanks(const ExpertPlan& plan) {
  std::vector<RankHops> of_ranks(plan.sizes.ranks);
  for (size_t h = 0; h < plan.hops.size(); ++h) {
    of_ranks[plan.hops[h].to.index()].in.push_back(static_cast<int32_t>(h));
    of_ranks[plan.hops[h].from.index()].out.push_back(static_cast<int32_t>(h));
  }
  return of_ranks;
}

// A thread for each rank, which does one job at a time.
class Threads final : public ExpertTeam {
 public:
  Threads(const ExpertPlan& plan, std::chrono::nanoseconds patience)
      : shared_{.plan = plan,
                .index = HopIndex(plan),
                .hops = HopsOfRanks(plan),
                .rings = {},
                .bells = std::vector<Bell>(plan.sizes.ranks),
                .watch = {}},
        patience_(patience) {
    for (const Hop& hop : plan.hops) shared_.rings.push_back(std::make_unique<Ring>(hop.slots));
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
    for (int32_t rank = 0; rank < shared_.plan.sizes.ranks; ++rank) {
      XCCL_ASSIGN_OR_RETURN(std::thread thread, StartThread([this, rank] { Work(rank); }));
      threads_.push_back(std::move(thread));
    }
    return OkStatus();
  }

  StatusOr<std::vector<Received>> Dispatch(const Routing& routing, std::span<const Rows> rows) override {
    XCCL_RETURN_IF_ERROR(CheckRouting(routing, shared_.plan.sizes));
    const int32_t ranks = shared_.plan.sizes.ranks;
    if (static_cast<int32_t>(rows.size()) != ranks)
      return InvalidInput(fmt::format("dispatch: rows of {} ranks; expected {}", rows.size(), ranks));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const int64_t expected = routing.TokensOf(rank) * shared_.plan.sizes.row_bytes;
      if (static_cast<int64_t>(rows[rank].size()) != expected)
        return InvalidInput(
            fmt::format("dispatch: rank {}: {} bytes; expected {}", rank, rows[rank].size(), expected));
    }
    std::vector<Received> received(ranks);
    XCCL_RETURN_IF_ERROR(DoAll(Call::kDispatch, [&](int32_t rank) {
      received[rank] = DispatchOfRank(shared_, rank, routing, rows[rank]);
    }));
    return received;
  }

  StatusOr<std::vector<Rows>> Combine(std::span<const Received> received, DataType type, int64_t elements,
                                      std::span<const Rows> outputs) override {
    const auto ranks = static_cast<size_t>(shared_.plan.sizes.ranks);
    if (type != DataType::kFloat && type != DataType::kHalf && type != DataType::kBfloat16)
      return InvalidInput(fmt::format("combine: {} rows; expected float, half or bfloat16", ToString(type)));
    if (received.size() != ranks || outputs.size() != ranks || elements < 1)
      return InvalidInput(fmt::format("combine: rows of {} ranks; expected {}", outputs.size(), ranks));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto expected = received[rank].row_of_entry.size() * static_cast<size_t>(elements * SizeOf(type));
      if (outputs[rank].size() != expected)
        return InvalidInput(
            fmt::format("combine: rank {}: {} bytes; expected {}", rank, outputs[rank].size(), expected));
    }
    std::vector<Rows> results(ranks);
    XCCL_RETURN_IF_ERROR(DoAll(Call::kCombine, [&](int32_t rank) {
      const Seen& seen = received[rank].seen;
      const auto tokens = static_cast<int32_t>(std::ranges::count(seen.homes, rank));
      results[rank] = CombineOfRank(shared_, rank, received[rank], tokens, type, elements, outputs[rank]);
    }));
    return results;
  }

 private:
  void Work(int32_t rank) {
    uint64_t done = 0;
    while (true) {
      const std::function<void(int32_t)>* job;
      {
        std::unique_lock lock(mutex_);
        begin_.wait(lock, [&] { return job_number_ != done; });
        done = job_number_;
        if (ending_) return;
        job = job_;
      }
      (*job)(rank);
      const std::lock_guard lock(mutex_);
      if (--working_ == 0) end_.notify_all();
    }
  }

  // Runs the job on all ranks' threads. Errors: kSystem where none makes progress for too long.
  Status DoAll(Call call, const std::function<void(int32_t)>& job) {
    for (size_t h = 0; h < shared_.rings.size(); ++h) {
      Bell &from = shared_.bells[shared_.plan.hops[h].from.index()],
           &to = shared_.bells[shared_.plan.hops[h].to.index()];
      if (call == Call::kDispatch)
        shared_.rings[h]->Begin(from, to);
      else
        shared_.rings[h]->Begin(to, from);
    }
    shared_.watch.stop = false;
    std::unique_lock lock(mutex_);
    job_ = &job;
    working_ = shared_.plan.sizes.ranks;
    ++job_number_;
    begin_.notify_all();
    uint64_t seen = shared_.watch.progress;
    while (!end_.wait_for(lock, patience_, [&] { return working_ == 0; })) {
      const uint64_t now = shared_.watch.progress;
      if (now == seen) shared_.watch.stop = true;
      seen = now;
    }
    if (!shared_.watch.stop) return OkStatus();
    return SystemError(fmt::format("{}: no rank made progress for {} s; expected some; hint: --timeout",
                                   ToString(call), std::chrono::duration<double>(patience_).count()));
  }

  Shared shared_;
  const std::chrono::nanoseconds patience_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(int32_t)>* job_ = nullptr;
  uint64_t job_number_ = 0;
  int32_t working_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

StatusOr<std::unique_ptr<ExpertTeam>> ExpertTeam::Create(const ExpertPlan& plan,
                                                         std::chrono::nanoseconds patience) {
  for (size_t depth = 1; depth < plan.stage_of_depth.size(); ++depth)
    if (plan.stage_of_depth[depth] <= plan.stage_of_depth[depth - 1])
      return InvalidInput("stages: expected them to rise with the depth of the sender");
  auto team = std::make_unique<Threads>(plan, patience);
  XCCL_RETURN_IF_ERROR(team->Start());
  return std::unique_ptr<ExpertTeam>(std::move(team));
}

}  // namespace xccl::dispatch
