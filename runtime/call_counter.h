// Counts what a process calls, for the file that XCCL_LOG_CALLS names (ir/call_log.h). A communicator's rank
// has one counter. A call is one look-up in the counter's hash table under its mutex; nothing is written
// then. The file is written whenever a communicator ends, and when the process exits; a failure is one line
// on standard error and fails no call.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/call_log.h"

namespace xccl {

// Safe from any thread.
class CallCounter {
 public:
  // The key of a row. Servers are numbers that the counter's user chooses.
  struct Key {
    CollectiveKind collective = CollectiveKind::kAllreduce;
    DataType type = DataType::kFloat;
    std::optional<ReduceOp> op;
    std::optional<Rank> root;
    int64_t size_bytes = 0;
    uint64_t server = 0;
    bool operator==(const Key&) const = default;
  };

  // `server`: the name of the server of that number, which is kept when its first row is made. `ns`: the
  // call's time; absent: unknown.
  void Add(const Key& key, std::string_view server, std::optional<int64_t> ns);

  // The key of a row of expert calls.
  struct ExpertKey {
    bool combines = false;
    int64_t row_bytes = 0;
    std::string served_by = {};
    auto operator<=>(const ExpertKey&) const = default;
  };
  // tokens: of this rank, in the call. ns: as in Add.
  void AddExperts(const ExpertKey& key, int64_t tokens, std::optional<int64_t> ns);

 private:
  friend class CallLogFile;
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Row {
    std::string served_by;
    int64_t calls = 0, timed = 0, ns = 0;
  };
  struct ExpertRow {
    int64_t tokens = 0, calls = 0, timed = 0, ns = 0;
  };

  CallCounter(Rank rank, int32_t ranks, std::vector<Rank> members)
      : rank_(rank), ranks_(ranks), members_(std::move(members)) {}
  bool SameRank(const CallCounter& other) const {
    return rank_ == other.rank_ && ranks_ == other.ranks_ && members_ == other.members_;
  }
  // Adds the rows of another counter of the same rank of the same ranks.
  void Join(CallCounter& other);
  void Add(const ExpertKey& key, const ExpertRow& row);  // requires: mutex_ is held
  LoggedCommunicator Rows();

  const Rank rank_;
  const int32_t ranks_;
  const std::vector<Rank> members_;  // ranks of the job; empty: unknown
  std::mutex mutex_;                 // guards what follows
  std::unordered_map<Key, Row, Hash> rows_;
  std::map<ExpertKey, ExpertRow> experts_;
  int64_t left_out_ = 0;
};

// The process's place among those of its job, where its launcher says.
struct JobPlace {
  Rank rank;
  int32_t ranks = 1;
};

// The log of this process. Safe from any thread.
class CallLogFile {
 public:
  // `pattern`: the file's name, in which %r, %h, %p and %% are the rank, the host, the process and a percent
  // sign. Where it has neither %r nor %p, and other processes have ranks as well, ".RANK" is added. The rank
  // is that of `place`, or else the first communicator's. `library`: as in CallLog.
  CallLogFile(std::string pattern, std::string library, std::optional<JobPlace> place);

  const std::optional<JobPlace>& place() const { return place_; }
  // A counter for a rank of a communicator. `members`: as in LoggedCommunicator.
  std::shared_ptr<CallCounter> AddCommunicator(Rank rank, int32_t ranks, std::vector<Rank> members);
  // For a communicator that ends: its counter is joined with those of the same rank that have ended, so that
  // a job may make any number of communicators.
  void End(const std::shared_ptr<CallCounter>& counter);
  // Writes the file; nothing where there was no communicator, and nothing in a fork of the process.
  void Write() noexcept;

 private:
  CallLog Log();             // requires: mutex_ is held
  std::string Path() const;  // likewise

  const std::string pattern_, library_;
  const std::optional<JobPlace> place_;
  const int64_t process_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<CallCounter>> counters_, ended_;
  Rank first_rank_;
  int32_t first_ranks_ = 0;  // of the first communicator
  std::set<Rank> here_;      // ranks of communicators of so many ranks
  std::string path_;         // written last; empty: nothing yet
  bool failed_ = false;
};

}  // namespace xccl
