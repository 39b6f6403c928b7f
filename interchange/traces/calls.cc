// NCCL's files are read line by line into communicators. When all files are there, ranks are looked for:
// 1. A communicator whose size no line told has as many ranks as its highest rank says.
// 2. The job is the largest communicator; a process's or GPU's rank in it is its rank of the job.
// 3. The members of a communicator are known where a line of each of its ranks tells its id.
#include "interchange/traces/calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/file_kinds.h"
#include "base/strings.h"
#include "base/units.h"
#include "interchange/traces/foreign_calls.h"

namespace xccl {
namespace {

using Place = std::tuple<std::string, int64_t, int64_t>;  // host, process, device
Place PlaceOf(const ForeignCommunicator& of) { return {of.host, of.process, of.device}; }

// Sizes that no line told; says how many ranks were found.
void FindSizes(std::vector<ForeignCommunicator>& all, std::vector<std::string>& warnings) {
  std::map<std::string, int64_t> ranks;
  for (const ForeignCommunicator& each : all)
    if (!each.id.empty() && each.rank) ranks[each.id] = std::max(ranks[each.id], *each.rank + 1);
  int64_t most = 0;
  for (ForeignCommunicator& each : all) {
    if (each.ranks > 0 || each.id.empty()) continue;
    each.ranks = ranks[each.id];
    most = std::max(most, each.ranks);
  }
  if (most > 0)
    warnings.push_back(
        fmt::format("a profile does not say how many ranks a communicator has; the files have up to {}; "
                    "expected the files of all ranks",
                    most));
}

// By place: its rank in the largest communicator.
std::map<Place, int64_t> FindJob(const std::vector<ForeignCommunicator>& all, int64_t& job_ranks) {
  for (const ForeignCommunicator& each : all) job_ranks = std::max(job_ranks, each.ranks);
  std::map<Place, int64_t> rank_of;
  for (const ForeignCommunicator& each : all) {
    if (each.job_rank) rank_of.emplace(PlaceOf(each), *each.job_rank);
    if (each.ranks == job_ranks && each.rank) rank_of.emplace(PlaceOf(each), *each.rank);
  }
  return rank_of;
}

// By id: the job's rank of each rank; -1: unknown.
std::map<std::string, std::vector<int64_t>> FindMembers(const std::vector<ForeignCommunicator>& all,
                                                        const std::map<Place, int64_t>& rank_of) {
  std::map<std::string, std::vector<int64_t>> members;
  for (const ForeignCommunicator& each : all) {
    const auto rank = rank_of.find(PlaceOf(each));
    if (each.id.empty() || !each.rank || rank == rank_of.end() || *each.rank >= each.ranks) continue;
    std::vector<int64_t>& of =
        members.try_emplace(each.id, static_cast<size_t>(each.ranks), -1).first->second;
    if (static_cast<size_t>(*each.rank) < of.size()) of[static_cast<size_t>(*each.rank)] = rank->second;
  }
  return members;
}

std::vector<Rank> RanksOf(const std::vector<int64_t>& members) {
  std::vector<int64_t> sorted = members;
  std::ranges::sort(sorted);
  if (sorted[0] < 0 || std::ranges::adjacent_find(sorted) != sorted.end()) return {};
  std::vector<Rank> ranks;
  for (const int64_t member : members) ranks.emplace_back(member);
  return ranks;
}

// The size as nccl-tests counts, from NCCL's; absent: too large.
bool ToWholeSizes(std::vector<CountedCalls>& rows, int64_t ranks) {
  for (CountedCalls& row : rows) {
    if (row.collective == CollectiveKind::kSendrecv ||
        TraitsOf(row.collective).parts == KindTraits::Parts::kOne)
      continue;
    if (row.size_bytes > kForeverPs / ranks) return false;
    row.size_bytes *= ranks;
  }
  return true;
}

}  // namespace

struct CallLogReader::State {
  JobLogs job;
  ForeignCalls foreign;
};

CallLogReader::CallLogReader() : state_(std::make_unique<State>()) {}
CallLogReader::~CallLogReader() = default;
CallLogReader::CallLogReader(CallLogReader&&) noexcept = default;
CallLogReader& CallLogReader::operator=(CallLogReader&&) noexcept = default;

bool IsCallLog(std::string_view text) {
  text = WithoutByteOrderMark(text);
  return KindOfText(text) == FileKind::kCallLog || IsNcclProfile(text) || HasNcclCalls(text);
}

Status CallLogReader::Add(std::string_view text, const std::string& file) {
  text = WithoutByteOrderMark(text);
  if (KindOfText(text) == FileKind::kCallLog) {
    XCCL_ASSIGN_OR_RETURN(CallLog log, ReadCallLog(text, file));
    state_->job.logs.push_back(std::move(log));
    return OkStatus();
  }
  ForeignCalls& calls = state_->foreign;
  const int64_t before = calls.calls, unread_before = calls.unread;
  if (IsNcclProfile(text))
    ReadNcclProfile(text, calls);
  else
    ReadNcclCalls(text, calls);
  if (const int64_t unread = calls.unread - unread_before; unread > 0)
    state_->job.warnings.push_back(
        fmt::format("{}: {} of calls left out: cut, or not NCCL's values", file, Counted(unread, "line")));
  if (calls.calls > before) return OkStatus();
  XCCL_RETURN_IF_ERROR(CheckKind(text, file, FileKind::kCallLog));
  if (text.find("NCCL INFO ") != text.npos)
    return InvalidInput(file +
                        ": lines of NCCL, none of a call; expected 'NCCL INFO AllReduce: opCount ...'; hint: "
                        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL");
  return InvalidInput(file +
                      ": no calls; expected a log of XCCL_LOG_CALLS, of NCCL_DEBUG_SUBSYS=INIT,COLL or of "
                      "NCCL's profiler");
}

JobLogs CallLogReader::Finish() {
  JobLogs job = std::move(state_->job);
  std::vector<ForeignCommunicator> all = std::move(state_->foreign.communicators);
  *state_ = {};
  FindSizes(all, job.warnings);
  int64_t job_ranks = 0;
  const std::map<Place, int64_t> rank_of = FindJob(all, job_ranks);
  const std::map<std::string, std::vector<int64_t>> members = FindMembers(all, rank_of);
  std::map<Place, size_t> log_of;
  for (ForeignCommunicator& each : all) {
    if (each.ranks < 1 || each.rows.empty() || !ToWholeSizes(each.rows, each.ranks)) continue;
    const auto [log, is_new] = log_of.try_emplace(PlaceOf(each), job.logs.size());
    if (is_new) {
      CallLog& made = job.logs.emplace_back();
      made.library = "nccl";
      made.host = each.host;
      made.process = each.process;
      made.ranks = static_cast<int32_t>(job_ranks);
      const auto rank = rank_of.find(PlaceOf(each));
      if (rank != rank_of.end() && rank->second < job_ranks) made.rank = Rank(rank->second);
    }
    LoggedCommunicator& communicator = job.logs[log->second].communicators.emplace_back();
    if (each.rank && *each.rank < each.ranks) communicator.rank = Rank(*each.rank);
    communicator.ranks = static_cast<int32_t>(each.ranks);
    communicator.rows = std::move(each.rows);
    const auto known = members.find(each.id);
    if (each.ranks == job_ranks)
      communicator.members = AllRanks(communicator.ranks);
    else if (known != members.end() && std::ssize(known->second) == each.ranks)
      communicator.members = RanksOf(known->second);
  }
  return job;
}

}  // namespace xccl
