#include "sweep/sweep.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "sweep/job.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

constexpr int64_t kMostPieces = 1 << 20;

// The value of an option, "" where it is not given.
std::string OptionOf(const SweepJob& job, std::string_view flag) {
  for (const std::string& option : Split(job.options, ' '))
    if (option.starts_with(flag) && option.size() > flag.size() && option[flag.size()] == '=')
      return option.substr(flag.size() + 1);
  return "";
}

// Ranks of the machine, hosts multiplied; 0 where it cannot be read, which is the job's own error.
class RankCounts {
 public:
  int64_t Of(const SweepJob& job) {
    const auto [found, added] = ranks_.try_emplace(job.topology, 0);
    if (added) {
      const StatusOr<Topology> topology = LoadTopology(job.topology);
      if (topology.ok()) found->second = topology->num_ranks();
    }
    const StatusOr<int64_t> hosts = ParseInteger(OptionOf(job, "--hosts"), 1, 1 << 20);
    return found->second * (hosts.ok() ? *hosts : 1);
  }

 private:
  std::map<std::string, int64_t> ranks_;
};

bool SearchesLong(const SweepJob& job) {
  const StatusOr<const Engine*> engine = FindEngine(job.engine);
  return engine.ok() && (*engine)->searches_long;
}

std::vector<size_t> LongestFirst(const std::vector<SweepJob>& jobs, std::vector<size_t> order) {
  RankCounts ranks;
  std::vector<std::pair<bool, int64_t>> cost(jobs.size());
  for (const size_t j : order) cost[j] = {SearchesLong(jobs[j]), ranks.Of(jobs[j])};
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return cost[a] > cost[b]; });
  return order;
}

struct Running {
  const SweepJob* job;
  JobProcess process;
};

// Waits until one of the jobs has ended, or the deadline has passed.
std::list<Running>::iterator WaitForOne(std::list<Running>& running, const Deadline& deadline) {
  constexpr double kLongestMs = 1e6;
  std::vector<pollfd> ends;
  for (const Running& each : running) ends.push_back({each.process.ended_fd(), POLLIN, 0});
  while (!deadline()) {
    const double left_ms = std::ceil(std::min(1e3 * deadline.SecondsLeft(), kLongestMs));
    if (poll(ends.data(), ends.size(), static_cast<int>(left_ms)) <= 0) continue;
    auto ended = running.begin();
    for (const pollfd& end : ends) {
      if (end.revents != 0) return ended;
      ++ended;
    }
  }
  return running.end();
}

}  // namespace

StatusOr<SweepPart> ParseSweepPart(std::string_view text) {
  const std::vector<std::string> numbers = Split(text, '/');
  if (numbers.size() == 2) {
    const StatusOr<int64_t> parts = ParseInteger(numbers[1], 1, kMostPieces);
    const StatusOr<int64_t> part = ParseInteger(numbers[0], 0, kMostPieces);
    if (parts.ok() && part.ok() && *part < *parts) return SweepPart{*part, *parts};
  }
  return InvalidInput(
      fmt::format("'{}': no part; expected I/N, part I of N, with I from 0 to N-1", Shortened(text)));
}

std::vector<SweepJob> JobsOfPart(std::vector<SweepJob> jobs, const SweepPart& part) {
  std::vector<SweepJob> own;
  for (size_t j = 0; j < jobs.size(); ++j)
    if (static_cast<int64_t>(j) % part.parts == part.part) own.push_back(std::move(jobs[j]));
  return own;
}

StatusOr<Sweep> Sweep::Open(SweepRequest request) {
  XCCL_ASSIGN_OR_RETURN(SweepTable table, SweepTable::Open(request.table));
  std::vector<size_t> order;
  for (size_t j = 0; j < request.jobs.size(); ++j) {
    const SweepJob& job = request.jobs[j];
    if (request.retry ? table.rows().StatusOf(job) != "ok" : !table.rows().Has(job)) order.push_back(j);
  }
  Sweep sweep(std::move(request), std::move(table));
  sweep.order_ = LongestFirst(sweep.request_.jobs, std::move(order));
  return sweep;
}

const SweepJob* Sweep::Next() { return next_ < order_.size() ? &request_.jobs[order_[next_++]] : nullptr; }

std::string Sweep::Summary() const {
  std::map<std::string, size_t> counts;
  for (const SweepJob& job : request_.jobs) ++counts[table_.rows().StatusOf(job)];
  std::vector<std::string> parts = {fmt::format("{} ok", counts["ok"])};
  for (const auto& [status, count] : counts)
    if (status != "ok") parts.push_back(fmt::format("{} {}", count, status));
  return fmt::format("{}: {} job{}: {}; {} were there\n", request_.table, num_jobs(),
                     num_jobs() == 1 ? "" : "s", Join(parts, ", "), num_found());
}

Status RunSweep(Sweep& sweep, const std::string& program, int32_t workers, const Deadline& deadline,
                const std::function<void(size_t rows)>& said) {
  std::list<Running> running;
  size_t rows = sweep.num_found();
  while (true) {
    while (running.size() < static_cast<size_t>(workers) && !deadline()) {
      const SweepJob* const job = sweep.Next();
      if (job == nullptr) break;
      XCCL_ASSIGN_OR_RETURN(JobProcess process, JobProcess::Start(program, PlanArguments(*job)));
      running.push_back({job, std::move(process)});
    }
    if (running.empty() && sweep.num_left() == 0) return sweep.Finish();
    const auto ended = WaitForOne(running, deadline);
    if (ended == running.end())
      return LimitReached(
          fmt::format("sweep: {} passed with {} of {} jobs to do; hint: the same command again",
                      deadline.ToString(), sweep.num_jobs() - rows, sweep.num_jobs()));
    XCCL_RETURN_IF_ERROR(sweep.Record(*ended->job, ended->process.Finish()));
    running.erase(ended);
    said(++rows);
  }
}

StatusOr<size_t> MergeTables(std::span<const SweepJob> jobs, std::span<const std::string> tables,
                             const std::string& table) {
  SweepRows rows;
  for (const std::string& file : tables) {
    XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    XCCL_RETURN_IF_ERROR(rows.Add(text, file));
  }
  XCCL_ASSIGN_OR_RETURN(SweepTable merged, SweepTable::Open(table));
  merged.rows().Add(rows);
  XCCL_RETURN_IF_ERROR(merged.Finish(jobs));
  return static_cast<size_t>(
      std::ranges::count_if(jobs, [&](const SweepJob& job) { return !merged.rows().Has(job); }));
}

}  // namespace xccl
