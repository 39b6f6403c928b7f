// Calls as NCCL's own files tell them, before the job is known: a file may leave out who is which rank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/call_log.h"

namespace xccl {

// One rank of a communicator, as far as lines have told it.
struct ForeignCommunicator {
  std::string host;
  int64_t process = 0;
  int64_t device = -1;  // -1: unknown
  std::string id;       // equal for its ranks; empty: unknown
  std::optional<int64_t> rank, job_rank;
  int64_t ranks = 0;  // 0: unknown
  std::vector<CountedCalls> rows = {};

  // `share_bytes`: as NCCL counts, of the whole buffer or of one rank's share; the size is known when `ranks`
  // is. `ns`: absent: unknown.
  void Add(CollectiveKind kind, int64_t share_bytes, DataType type, std::optional<ReduceOp> op,
           std::optional<int64_t> root, std::optional<int64_t> ns);

 private:
  std::map<std::tuple<CollectiveKind, int64_t, DataType, std::optional<ReduceOp>, std::optional<int64_t>>,
           size_t>
      places_;  // in rows
};

struct ForeignCalls {
  std::vector<ForeignCommunicator> communicators;
  int64_t calls = 0;
  int64_t unread = 0;  // lines of calls that are cut, or have a value that is not NCCL's
};

// The kind of a call that NCCL names so: "AllReduce", "Send" (sendrecv); absent: none that is counted.
std::optional<CollectiveKind> KindOfNccl(std::string_view name);

bool HasNcclCalls(std::string_view text);
void ReadNcclCalls(std::string_view text, ForeignCalls& calls);

// The plugins' files.
bool IsNcclProfile(std::string_view text);
void ReadNcclProfile(std::string_view text, ForeignCalls& calls);

}  // namespace xccl
