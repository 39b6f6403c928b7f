#include "runtime/nccl/shim/counted.h"

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "ir/call_log.h"
#include "runtime/c_api/call_log.h"

namespace xccl::nccl_shim {
namespace {

struct Counted {
  int ranks = 0;
  std::shared_ptr<CallCounter> counter;
};

struct Table {
  std::shared_mutex mutex;  // guards what follows
  std::unordered_map<NcclComm, Counted> counted;
};

// It is never freed: programs use NCCL until their very end.
Table& All() {
  static Table& table = *new Table;
  return table;
}

// The entry of a rank, made when it is asked for first; none where NCCL does not say yet which rank it is.
std::optional<Counted> Find(const Nccl& nccl, NcclComm comm, CallLogFile& log) {
  Table& all = All();
  {
    const std::shared_lock lock(all.mutex);
    if (const auto found = all.counted.find(comm); found != all.counted.end()) return found->second;
  }
  int ranks = 0, rank = 0;
  {
    const InsideNccl inside;
    if (nccl.CommCount(comm, &ranks) != kSuccess || nccl.CommUserRank(comm, &rank) != kSuccess)
      return std::nullopt;
  }
  const std::lock_guard lock(all.mutex);
  const auto [entry, is_new] = all.counted.try_emplace(comm);
  if (is_new)
    entry->second = {
        ranks, log.AddCommunicator(Rank(rank), ranks, c_api::MembersOf(Rank(rank), ranks, log.place()))};
  return entry->second;
}

}  // namespace

CallLogFile* TheLog() { return c_api::TheCallLog("nccl"); }

void CountNcclCall(const Nccl& nccl, const NcclCall& call, NcclComm comm, CallLogFile& log) {
  constexpr uint64_t kNccl = 0;
  const std::optional<Counted> found = Find(nccl, comm, log);
  if (!found || !IsWellFormed(call, found->ranks)) return;
  CallCounter::Key key{.collective = call.kind,
                       .type = static_cast<DataType>(call.type),
                       .op = {},
                       .root = {},
                       .size_bytes = SizeBytes(call, found->ranks),
                       .server = kNccl};
  if (IsReduction(call.kind)) key.op = ReduceOpOfNccl(call.op);
  if (IsRooted(call.kind)) key.root = Rank(call.root);
  found->counter->Add(key, "NCCL", std::nullopt);
}

void EndCounting(NcclComm comm) {
  CallLogFile* const log = TheLog();
  if (log == nullptr) return;
  Table& all = All();
  std::shared_ptr<CallCounter> ended;
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.counted.find(comm); found != all.counted.end()) {
      ended = std::move(found->second.counter);
      all.counted.erase(found);
    }
  }
  log->End(ended);
  log->Write();
}

}  // namespace xccl::nccl_shim
