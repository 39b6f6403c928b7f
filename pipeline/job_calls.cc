#include "pipeline/job_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

using Key = std::tuple<CollectiveKind, int32_t, std::optional<Rank>, int64_t>;
// A log, and the caller: its rank in the job, else in the communicator, else -1 minus that one's index.
using Caller = std::tuple<size_t, int64_t>;

struct Sum {
  std::map<Caller, int64_t> calls;
  double timed = 0, us = 0;
  bool nccl_may_serve = false;
};

int64_t Added(int64_t a, int64_t b) { return a > kForeverPs - b ? kForeverPs : a + b; }

std::map<Key, Sum> SumsOf(const JobLogs& logs) {
  std::map<Key, Sum> sums;
  for (size_t l = 0; l < logs.logs.size(); ++l) {
    const CallLog& log = logs.logs[l];
    for (size_t c = 0; c < log.communicators.size(); ++c) {
      const LoggedCommunicator& on = log.communicators[c];
      Caller caller{l, -1 - static_cast<int64_t>(c)};
      if (on.rank)
        std::get<1>(caller) = on.members.empty() ? on.rank->value : on.members[on.rank->index()].value;
      for (const CountedCalls& row : on.rows) {
        Sum& sum = sums[{row.collective, on.ranks, row.root, row.size_bytes}];
        int64_t& calls = sum.calls[caller];
        calls = Added(calls, std::min(row.calls, kForeverPs));
        sum.timed += static_cast<double>(row.timed);
        sum.us += PsToUs(row.time_ps);
        sum.nccl_may_serve |= log.library == "nccl";
      }
    }
  }
  return sums;
}

// Divides `job` ranks into groups of `ranks` ranks. Successive ranks of a group are `stride` apart.
std::vector<std::vector<Rank>> StridedGroups(int32_t job, int32_t ranks, int32_t stride) {
  std::vector<std::vector<Rank>> groups;
  for (int32_t begin = 0; begin < job; begin += ranks * stride)
    for (int32_t first = begin; first < begin + stride; ++first) {
      std::vector<Rank>& group = groups.emplace_back();
      for (int32_t i = 0; i < ranks; ++i) group.emplace_back(first + i * stride);
    }
  return groups;
}

// Returns the groups of equal stride that fit `places`: pairs of a rank of the job and the same rank's number
// in its communicator. Empty: no stride fits, or several do.
std::vector<std::vector<Rank>> GroupsByPlaces(const std::vector<std::pair<Rank, Rank>>& places, int32_t job,
                                              int32_t ranks) {
  if (places.empty() || job % ranks != 0) return {};
  std::vector<int32_t> fitting;
  for (int32_t stride = 1; stride <= job / ranks; ++stride) {
    if (job % (ranks * stride) != 0) continue;
    const bool fits = std::ranges::all_of(places, [&](const std::pair<Rank, Rank>& place) {
      return place.first.value / stride % ranks == place.second.value;
    });
    if (fits) fitting.push_back(stride);
  }
  return fitting.size() == 1 ? StridedGroups(job, ranks, fitting[0]) : std::vector<std::vector<Rank>>();
}

JobGroups GroupsOf(const JobLogs& logs, int32_t ranks, int32_t job) {
  std::map<std::vector<Rank>, int64_t> known;  // by group: its calls
  std::vector<std::pair<Rank, Rank>> places;
  bool in_order = true, complete = true;
  for (const CallLog& log : logs.logs)
    for (const LoggedCommunicator& on : log.communicators) {
      if (on.ranks != ranks || on.rows.empty()) continue;
      if (on.members.empty()) {
        complete = complete && log.rank && on.rank;
        if (log.rank && on.rank) places.emplace_back(*log.rank, *on.rank);
        continue;
      }
      std::vector<Rank> members = on.members;
      if (!std::ranges::is_sorted(members)) in_order = false;
      std::ranges::sort(members);
      int64_t& calls = known[std::move(members)];
      for (const CountedCalls& row : on.rows) calls = Added(calls, std::min(row.calls, kForeverPs));
    }
  JobGroups groups{.ranks = ranks, .members = {}};
  if (!in_order)
    groups.warnings.push_back(fmt::format(
        "{}: their ranks are not in the job's order; expected ascending ranks, which the plans are "
        "made for",
        Counted(ranks, "rank")));
  std::vector<std::pair<int64_t, std::vector<Rank>>> sorted;
  for (const auto& [members, calls] : known) sorted.emplace_back(-calls, members);
  std::ranges::sort(sorted);
  for (auto& [calls, members] : sorted) groups.members.push_back(std::move(members));
  if (!groups.members.empty()) return groups;
  if (complete) groups.members = GroupsByPlaces(places, job, ranks);
  if (!groups.members.empty()) return groups;
  groups.known = false;
  groups.members.push_back(AllRanks(ranks));
  groups.warnings.push_back(
      fmt::format("{}: the log does not say which of {}; the first are taken", Counted(ranks, "rank"), job));
  return groups;
}

}  // namespace

StatusOr<JobCalls> CallsOfJob(const JobLogs& logs) {
  JobCalls job;
  job.warnings = logs.warnings;
  std::set<int32_t, std::greater<>> sizes;
  int64_t left_out = 0, of_experts = 0;
  for (const CallLog& log : logs.logs) {
    job.ranks = std::max(job.ranks, log.ranks);
    for (const LoggedCommunicator& on : log.communicators) {
      for (const CountedExperts& row : on.experts)
        of_experts = Added(of_experts, std::min(row.calls, kForeverPs));
      if (on.rows.empty()) continue;
      sizes.insert(on.ranks);
      job.ranks = std::max(job.ranks, on.ranks);
      for (const Rank member : on.members) job.ranks = std::max(job.ranks, member.value + 1);
      left_out = Added(left_out, std::min(on.left_out, kForeverPs));
    }
  }
  if (left_out > 0)
    job.warnings.push_back(
        fmt::format("{} of sizes beyond a table's end left out", Counted(left_out, "call")));
  if (of_experts > 0)
    job.warnings.push_back(fmt::format("{} of expert dispatch and combine left out; hint: plan -c dispatch",
                                       Counted(of_experts, "call")));
  for (const auto& [key, sum] : SumsOf(logs)) {
    const auto& [collective, ranks, root, size] = key;
    JobCall call{collective, ranks, root, size};
    constexpr int64_t kMostCalls = int64_t{1} << 40;
    for (const auto& [caller, calls] : sum.calls)
      call.calls = std::max(call.calls, std::min(calls, kMostCalls));
    if (sum.timed > 0) call.us = sum.us / sum.timed;
    call.nccl_may_serve = sum.nccl_may_serve;
    job.calls.push_back(call);
  }
  if (job.calls.empty())
    return InvalidInput(
        of_experts > 0 ? "the logs have calls of experts alone; expected a collective; hint: plan -c dispatch"
                       : "the logs have no call; expected at least one");
  for (const int32_t ranks : sizes) job.groups.push_back(GroupsOf(logs, ranks, job.ranks));
  return job;
}

StatusOr<JobCalls> ReadJobCalls(const std::vector<std::string>& files) {
  CallLogReader reader;
  for (const std::string& file : files) {
    XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    XCCL_RETURN_IF_ERROR(reader.Add(text, file));
  }
  return CallsOfJob(reader.Finish());
}

}  // namespace xccl
