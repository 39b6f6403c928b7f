// Counts of the calls that the ranks of one process made: which collectives, how large, how often, how long,
// and who served them. Communicators of the runtime write it where XCCL_LOG_CALLS is set; NCCL's logs are
// read as it. docs/library.md, "What a job did", has the format:
//   {"format":1, "call_log":"xccl", "host":"gpu01", "process":4711, "rank":0, "ranks":8, "communicators":[
//     {"rank":0, "ranks":8, "members":[0,1,2,3,4,5,6,7], "calls":[{"collective":"allreduce",
//       "size_bytes":1048576, "type":"float", "op":"sum", "served_by":"ar.plan.json", "calls":12,
//       "timed":12, "time_ps":3456000000}, ...], "experts":[{"call":"dispatch", "row_bytes":7392,
//       "served_by":"moe.plan.json", "tokens":49152, "calls":12, "timed":12, "time_ps":9876000000}, ...]},
//     ...]}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"

namespace xccl {

// Calls of one rank that differ in their times alone.
struct CountedCalls {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  int64_t size_bytes = 0;  // as nccl-tests counts; of sendrecv, that of the largest message of a group
  DataType type = DataType::kFloat;
  std::optional<ReduceOp> op = {};  // absent: it does not reduce, or by an operator that the program made
  std::optional<Rank> root = {};    // by rank of the communicator
  std::string served_by = {};       // a plan's file, "NCCL", or "built-in"; empty: unknown
  int64_t calls = 0;
  int64_t timed = 0;    // number of calls whose time is known
  int64_t time_ps = 0;  // the sum of the known times, on this rank's host
  bool operator==(const CountedCalls&) const = default;
};

// Calls of expert dispatch or combine that differ in their times and tokens alone.
struct CountedExperts {
  bool combines = false;       // else they dispatch
  int64_t row_bytes = 0;       // of a token, with its scales
  std::string served_by = {};  // the plan's file
  int64_t tokens = 0;          // of this rank, in all calls together
  int64_t calls = 0;
  int64_t timed = 0;    // number of calls whose time is known; all, if a file does not say
  int64_t time_ps = 0;  // the sum of the timed calls' times
  bool operator==(const CountedExperts&) const = default;
};

// One rank of a communicator.
struct LoggedCommunicator {
  std::optional<Rank> rank = {};  // absent: unknown
  int32_t ranks = 1;
  std::vector<Rank> members = {};  // by rank of the communicator: the job's rank; empty: unknown
  std::vector<CountedCalls> rows = {};
  std::vector<CountedExperts> experts = {};
  int64_t left_out = 0;  // calls that found no room in the table
  bool operator==(const LoggedCommunicator&) const = default;
};

struct CallLog {
  std::string library;    // "xccl": every call needs a plan; "nccl": NCCL serves what no plan does
  std::string host = {};  // empty: unknown
  int64_t process = 0;
  std::optional<Rank> rank = {};  // of the job, by its launcher
  int32_t ranks = 0;              // of the job; 0: unknown
  std::vector<LoggedCommunicator> communicators = {};
  bool operator==(const CallLog&) const = default;
};

// Return the value that has this number in nccl.h, and thereby in RCCL and xccl.h. Return nullopt if there is
// none, as for an operator that the program made.
std::optional<DataType> DataTypeOfNccl(int64_t number);
std::optional<ReduceOp> ReduceOpOfNccl(int64_t number);

// Returns the log as JSON. Equal logs give equal bytes, and ReadCallLog gives an equal log back.
std::string WriteCallLog(const CallLog& log);
// Returns the log in the text. Errors: kInvalidInput "file: key.path: text"; for another kind of file, the
// message names that kind.
StatusOr<CallLog> ReadCallLog(std::string_view text, const std::string& file);

}  // namespace xccl
