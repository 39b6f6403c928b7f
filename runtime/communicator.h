// One rank of a group that runs planned collectives. Calls are queued and return at once, so one caller may
// drive several ranks. On back ends that connect ranks, a thread of the communicator executes them in order;
// on back ends that run whole programs they go to the call's stream. The first failure ends the communicator
// on all ranks: later calls fail with the same reason.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"
#include "runtime/backend.h"
#include "runtime/call_counter.h"
#include "runtime/executor.h"
#include "runtime/memory_use.h"
#include "runtime/pairs.h"
#include "runtime/plan_book.h"
#include "runtime/served_plan.h"
#include "runtime/transport/call_signature.h"

namespace xccl {

// A time limit that never comes; sums of a few of them still fit the clock.
inline constexpr std::chrono::nanoseconds kForEver = std::chrono::hours(24 * 365 * 30);

struct CommunicatorOptions {
  std::chrono::nanoseconds time_limit = kForEver;  // without progress on any rank
};

// Public functions are safe from any thread.
class Communicator {
 public:
  using BackendMaker = std::function<StatusOr<Backend>()>;
  // Requires: 0 <= rank < ranks. The back end is made when the first plans are loaded.
  Communicator(Rank rank, int32_t ranks, BackendMaker backend, const CommunicatorOptions& options);
  Communicator(Rank rank, int32_t ranks, Backend backend, const CommunicatorOptions& options);
  ~Communicator();  // waits for what is queued

  Rank rank() const { return rank_; }
  int32_t ranks() const { return ranks_; }
  // The back end has been made.
  bool connected() const { return connected_.load(); }
  // Holds for the calls that begin to run afterwards.
  void SetTimeLimit(std::chrono::nanoseconds limit) { time_limit_.store(limit); }
  std::chrono::nanoseconds time_limit() const { return time_limit_.load(); }

  // Counts the calls that succeed from here on: those that wait for other ranks with their times, on the host
  // alone, from when they begin to run. Requires: nothing has been called.
  void CountCalls(std::shared_ptr<CallCounter> counter) { counter_ = std::move(counter); }
  const std::shared_ptr<CallCounter>& counter() const { return counter_; }

  // Reads and verifies the plans of a book that are for this number of ranks, and connects. All ranks load
  // the same books in the same order. A call takes its plan from the book loaded last that has one for it.
  // Errors: those of reading; no plan for `ranks`; kSystem without a thread to execute calls on.
  Status LoadPlanBook(const std::string& directory);
  // As LoadPlanBook, for plans in memory. Requires: the plans verify and are for all ranks of this
  // communicator.
  Status LoadPlans(std::string name, std::vector<ServedPlan> plans);

  // Runs what all ranks do together, as they load books, and not at the same time.
  Status Together(const std::function<Status()>& body);

  // The back end's notes on the plans loaded so far, a line each.
  std::vector<std::string> Notices() const;

  // Queues a call; the queue has no bound. Ranks whose calls differ fail with both calls in the text; back
  // ends that run whole programs do not compare them. A call of no elements does nothing and needs no plan, a
  // barrier excepted. One rank alone on the host copies at once and needs no plan either. Buffers may overlap
  // in any way: where the plan cannot run in place, the input is copied first. Back ends that run whole
  // programs refuse calls that would need the copy. Errors at once: kUsage for null buffers, a root that is
  // no rank and counts out of range; no plan serves it; an earlier failure.
  Status Enqueue(const Call& call);
  // The errors that Enqueue would return at once, without queueing the call. CheckArguments looks at the
  // arguments alone, Check at everything.
  Status CheckArguments(const Call& call) const;
  Status Check(const Call& call);
  // Connects every pair of ranks, once; all ranks call it in the same place among their loads. Errors:
  // kInvalidInput on back ends that run whole programs, and where the slots need too much memory.
  Status ConnectPairs();
  // Queues messages with other ranks, which run side by side. Errors at once: kUsage for null buffers, a peer
  // that is no rank, counts out of range and receives that share memory; kInvalidInput where the pairs are
  // not connected and for messages of the rank to itself without their counterpart; an earlier failure.
  // CheckPairs returns these errors without queueing anything, CheckPairArguments the errors of the arguments
  // alone.
  Status EnqueuePairs(std::vector<PairMessage> messages);
  Status CheckPairArguments(std::span<const PairMessage> messages) const;
  Status CheckPairs(std::span<const PairMessage> messages);
  // This rank's end of connections for work of another kind than planned collectives; all ranks call it in
  // the same place among their loads, each with what became of its wiring and a hash of what that was made
  // of. The endpoint lives as long as this, and fails with it. Errors: as ConnectPairs; the wiring's, of any
  // rank.
  StatusOr<Endpoint*> ConnectFor(const StatusOr<Wiring>& wiring, uint64_t hash);
  // Queues a job on such an endpoint, which runs in turn with the calls; it gets the time limit. Its failure
  // ends the communicator. Errors at once: an earlier failure.
  using Job = std::function<Status(std::chrono::nanoseconds time_limit)>;
  Status EnqueueJob(Job job);
  // AddRunner is ConnectFor on back ends that run whole programs, where work of another kind goes to streams.
  // Once the back end is made, check() says whether this rank can connect; of ranks that are processes all
  // return the first failure, and none connects. make() connects, and the runner says how the work ends; its
  // `launch` is not used. Launch() is EnqueueJob there: it queues some of the work and returns, and its
  // failure ends the communicator. Both return an earlier failure at once, and AddRunner returns the errors
  // of check() and make().
  Status AddRunner(const std::function<Status()>& check, uint64_t hash,
                   const std::function<StatusOr<ProgramRunner>()>& make);
  Status Launch(const std::function<Status()>& launch);
  // Buffers that peers may read and write without a copy in between, until they are deregistered. All ranks
  // call both in the same order, after a book was loaded. 0: peers reach all buffers anyway, or none.
  StatusOr<int32_t> Register(const std::byte* buffer, size_t bytes);
  Status Deregister(int32_t handle);
  // Waits until everything queued is done. Returns the first failure.
  Status Synchronize();
  // As Synchronize, but a failure that the caller knows, since all calls had been waited for or AsyncError
  // told it, is not returned again.
  Status Finish();
  // The first failure of any rank, without waiting.
  Status AsyncError();
  // Ends the operation on all ranks and wakes all who wait; queued calls do not run.
  void Abort() { End(Aborted()); }
  Status Aborted() const;  // the reason that an abort gives

 private:
  struct Loaded;
  struct Queued {
    Loaded* loaded = nullptr;
    size_t plan = 0;
    Call call;
    CallSignature signature;
    std::vector<PairMessage> pairs = {};  // instead of the above
    Job job = {};                         // likewise
  };

  StatusOr<Backend*> Connect();
  StatusOr<std::unique_ptr<Endpoint>> ConnectWiring(const StatusOr<Wiring>& wiring, uint64_t hash,
                                                    std::string_view what);
  Status LoadServed(std::string name, std::vector<ServedPlan> plans);
  Status Keep(std::unique_ptr<Loaded> loaded);
  Status Launched(Status status);
  Status StartWorker();
  void Work();
  bool GiveBack();
  StatusOr<Queued> Choose(const Call& call) const;
  StatusOr<bool> NeedsNoPlan(const Call& call);
  StatusOr<std::optional<Queued>> Prepare(const Call& call);
  Status CheckOverlap(const Queued& queued) const;
  Status CopyAlone(const Call& call) const;
  Status EnqueueToRunner(const Queued& queued);
  Status Execute(Queued queued);
  Status ExecuteCounted(Queued queued);
  void Count(const Queued& queued, std::optional<int64_t> ns) const;
  Status ExecuteOn(const Queued& queued);
  void End(const Status& reason) noexcept;
  Status Failure(bool devices);  // without waiting; devices: looks at them too
  std::vector<Loaded*> Books() const;
  const Loaded* LastBook() const;  // that has plans; null where there is none
  std::vector<Endpoint*> Others() const;

  const Rank rank_;
  const int32_t ranks_;
  const BackendMaker make_backend_;
  std::shared_ptr<CallCounter> counter_;  // null: calls are not counted
  std::atomic<std::chrono::nanoseconds> time_limit_;
  std::atomic<bool> connected_ = false;
  std::atomic<bool> owes_ = false;  // nobody has asked how the last calls ended
  std::mutex loading_;              // held while plans are loaded; before the others
  std::optional<Backend> backend_;
  std::mutex launching_;      // held around a runner's launch, so that calls keep their order; before mutex_
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  std::vector<std::unique_ptr<Loaded>> books_;     // in the order in which they were loaded; they stay
  uint64_t calls_ = 0;                             // made so far
  std::unique_ptr<Pairs> pairs_;                   // once they are connected
  std::vector<std::unique_ptr<Endpoint>> others_;  // of ConnectFor; they stay
  Status failure_;
  bool busy_ = false, stopping_ = false;
  Loaded* used_ = nullptr;  // the worker's: by its last call; senders may have more to hear of it
  std::thread worker_;      // from the first load of a book whose ranks are connected
};

// Do the call's buffers overlap as NCCL's in-place rules say, on this rank?
bool IsInPlace(const Call& call, Rank rank);

// The memory that a call reads and writes on this rank. Requires: CheckArguments.
std::array<MemoryUse, 2> MemoryOf(const Call& call, Rank rank, int32_t ranks);

}  // namespace xccl
