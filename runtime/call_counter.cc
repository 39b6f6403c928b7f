#include "runtime/call_counter.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/standard_streams.h"
#include "base/units.h"

namespace xccl {
namespace {

constexpr size_t kMostRows = 4096;  // of a communicator

std::string HostName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool IsShared(std::string_view pattern) {
  for (size_t at = pattern.find('%'); at != pattern.npos && at + 1 < pattern.size();
       at = pattern.find('%', at + 2))
    if (pattern[at + 1] == 'r' || pattern[at + 1] == 'p') return false;
  return true;
}

int64_t PsOf(int64_t ns) { return std::min(ns, kForeverPs / kPsPerNs) * kPsPerNs; }

}  // namespace

size_t CallCounter::Hash::operator()(const Key& key) const {
  uint64_t small = static_cast<uint64_t>(key.collective) << 16 | static_cast<uint64_t>(key.type) << 8 |
                   (key.op ? static_cast<uint64_t>(*key.op) + 1 : 0);
  small |= (key.root ? static_cast<uint64_t>(key.root->value) + 1 : 0) << 32;
  uint64_t hash = 0;
  for (const uint64_t word : {small, static_cast<uint64_t>(key.size_bytes), key.server}) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

void CallCounter::Add(const Key& key, std::string_view server, std::optional<int64_t> ns) {
  const std::lock_guard lock(mutex_);
  auto row = rows_.find(key);
  if (row == rows_.end()) {
    if (rows_.size() >= kMostRows) {
      ++left_out_;
      return;
    }
    row = rows_.emplace(key, Row{std::string(server)}).first;
  }
  ++row->second.calls;
  if (!ns) return;
  ++row->second.timed;
  row->second.ns += *ns;
}

void CallCounter::AddExperts(const ExpertKey& key, int64_t tokens, std::optional<int64_t> ns) {
  const std::lock_guard lock(mutex_);
  Add(key, {.tokens = tokens, .calls = 1, .timed = ns ? 1 : 0, .ns = ns.value_or(0)});
}

void CallCounter::Add(const ExpertKey& key, const ExpertRow& row) {
  if (experts_.size() >= kMostRows && !experts_.contains(key)) {
    left_out_ += row.calls;
    return;
  }
  ExpertRow& sum = experts_[key];
  sum.tokens += row.tokens;
  sum.calls += row.calls;
  sum.timed += row.timed;
  sum.ns += row.ns;
}

void CallCounter::Join(CallCounter& other) {
  const std::scoped_lock lock(mutex_, other.mutex_);
  left_out_ += other.left_out_;
  for (const auto& [key, row] : other.experts_) Add(key, row);
  for (const auto& [key, row] : other.rows_) {
    // A number is another server to another communicator.
    Key own = key;
    auto at = rows_.find(own);
    while (at != rows_.end() && at->second.served_by != row.served_by) {
      ++own.server;
      at = rows_.find(own);
    }
    if (at == rows_.end() && rows_.size() >= kMostRows) {
      left_out_ += row.calls;
      continue;
    }
    Row& sum = rows_.try_emplace(own, Row{row.served_by}).first->second;
    sum.calls += row.calls;
    sum.timed += row.timed;
    sum.ns += row.ns;
  }
}

LoggedCommunicator CallCounter::Rows() {
  const std::lock_guard lock(mutex_);
  LoggedCommunicator communicator{.rank = rank_, .ranks = ranks_, .members = members_, .left_out = left_out_};
  for (const auto& [key, row] : rows_)
    communicator.rows.push_back({key.collective, key.size_bytes, key.type, key.op, key.root, row.served_by,
                                 row.calls, row.timed, PsOf(row.ns)});
  std::ranges::sort(communicator.rows, {}, [](const CountedCalls& row) {
    return std::tuple(row.collective, row.root, row.size_bytes, row.type, row.op, row.served_by);
  });
  for (const auto& [key, row] : experts_)
    communicator.experts.push_back(
        {key.combines, key.row_bytes, key.served_by, row.tokens, row.calls, row.timed, PsOf(row.ns)});
  return communicator;
}

CallLogFile::CallLogFile(std::string pattern, std::string library, std::optional<JobPlace> place)
    : pattern_(std::move(pattern)), library_(std::move(library)), place_(place), process_(getpid()) {}

std::shared_ptr<CallCounter> CallLogFile::AddCommunicator(Rank rank, int32_t ranks,
                                                          std::vector<Rank> members) {
  const std::lock_guard lock(mutex_);
  if (first_ranks_ == 0) {
    first_rank_ = rank;
    first_ranks_ = ranks;
  }
  if (ranks == first_ranks_) here_.insert(rank);
  counters_.push_back(std::shared_ptr<CallCounter>(new CallCounter(rank, ranks, std::move(members))));
  return counters_.back();
}

void CallLogFile::End(const std::shared_ptr<CallCounter>& counter) {
  if (counter == nullptr) return;
  const std::lock_guard lock(mutex_);
  std::erase(counters_, counter);
  const auto same = std::ranges::find_if(ended_, [&](const auto& each) { return each->SameRank(*counter); });
  if (same == ended_.end())
    ended_.push_back(counter);
  else if (*same != counter)
    (*same)->Join(*counter);
}

CallLog CallLogFile::Log() {
  CallLog log{.library = library_, .host = HostName(), .process = process_, .rank = {}};
  if (place_) {
    log.rank = place_->rank;
    log.ranks = place_->ranks;
  }
  for (const auto* counters : {&ended_, &counters_})
    for (const std::shared_ptr<CallCounter>& counter : *counters)
      log.communicators.push_back(counter->Rows());
  std::ranges::stable_sort(log.communicators, {}, [](const LoggedCommunicator& each) {
    return std::tuple(-each.ranks, each.members, each.rank);
  });
  return log;
}

std::string CallLogFile::Path() const {
  const std::string rank = std::to_string((place_ ? place_->rank : first_rank_).value);
  std::string path;
  for (size_t i = 0; i < pattern_.size(); ++i) {
    const char next = pattern_[i] == '%' && i + 1 < pattern_.size() ? pattern_[i + 1] : '\0';
    if (next == 'r')
      path += rank;
    else if (next == 'h')
      path += HostName();
    else if (next == 'p')
      path += std::to_string(process_);
    else
      path += pattern_[i];
    if (next == 'r' || next == 'h' || next == 'p' || next == '%') ++i;
  }
  const bool others = place_ ? place_->ranks > 1 : std::ssize(here_) < first_ranks_;
  return IsShared(pattern_) && others ? path + "." + rank : path;
}

void CallLogFile::Write() noexcept try {
  if (getpid() != process_) return;
  const std::lock_guard lock(mutex_);
  if (first_ranks_ == 0) return;
  const std::string path = Path();
  const Status written = WriteFileAtomically(path, WriteCallLog(Log()));
  if (!written.ok()) {
    if (!std::exchange(failed_, true))
      PrintError(fmt::format("xccl: XCCL_LOG_CALLS: {}\n", written.message()));
    return;
  }
  // A rank of this process came that was taken to be elsewhere.
  if (!path_.empty() && path_ != path) std::remove(path_.c_str());
  path_ = path;
} catch (const std::exception&) {
  PrintError("xccl: XCCL_LOG_CALLS: out of memory\n");
}

}  // namespace xccl
