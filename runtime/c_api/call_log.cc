#include "runtime/c_api/call_log.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/bootstrap/placement.h"

namespace xccl::c_api {
namespace {

std::optional<JobPlace> PlaceInJob() {
  if (!IsLaunched(ProcessEnvironment)) return std::nullopt;
  const StatusOr<Placement> placement = FindPlacement(ProcessEnvironment);
  if (!placement.ok()) return std::nullopt;
  return JobPlace{placement->rank, placement->ranks};
}

// A log is never freed: programs communicate until their very end.
struct Holder {
  std::mutex mutex;  // guards `made`
  bool made = false;
  std::atomic<CallLogFile*> log = nullptr;
};
Holder& TheHolder() {
  static Holder& holder = *new Holder;
  return holder;
}

void WriteAtExit() {
  if (CallLogFile* const log = TheHolder().log; log != nullptr) log->Write();
}

}  // namespace

CallLogFile* TheCallLog(std::string_view library) {
  Holder& holder = TheHolder();
  const std::lock_guard lock(holder.mutex);
  if (std::exchange(holder.made, true)) return holder.log;
  const std::optional<std::string> pattern = ProcessEnvironment("XCCL_LOG_CALLS");
  if (!pattern || pattern->empty()) return nullptr;
  holder.log = new CallLogFile(*pattern, std::string(library), PlaceInJob());
  static std::once_flag at_exit;
  std::call_once(at_exit, [] { static_cast<void>(std::atexit(WriteAtExit)); });
  return holder.log;
}

std::vector<Rank> MembersOf(Rank rank, int32_t ranks, const std::optional<JobPlace>& place) {
  if (place && (place->rank != rank || place->ranks != ranks)) return {};
  return AllRanks(ranks);
}

void CountCalls(Comm& comm) {
  CallLogFile* const log = TheCallLog();
  if (log == nullptr) return;
  const Rank rank = comm.communicator.rank();
  const int32_t ranks = comm.communicator.ranks();
  if (!comm.members) comm.members = MembersOf(rank, ranks, log->place());
  comm.communicator.CountCalls(log->AddCommunicator(rank, ranks, *comm.members));
}

void EndCounting(const Comm& comm) {
  CallLogFile* const log = TheCallLog();
  if (log == nullptr || comm.communicator.counter() == nullptr) return;
  log->End(comm.communicator.counter());
  log->Write();
}

void ForgetCallLog() {
  Holder& holder = TheHolder();
  const std::lock_guard lock(holder.mutex);
  delete holder.log.exchange(nullptr);
  holder.made = false;
}

}  // namespace xccl::c_api
