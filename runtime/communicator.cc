#include "runtime/communicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/exceptions.h"
#include "base/files.h"
#include "base/threads.h"
#include "ir/plan.h"
#include "ir/verify/read_plan.h"
#include "runtime/rank_work.h"

namespace xccl {
namespace {

constexpr size_t kMostPrepared = 64;  // works kept per book

// Requires: a collective of the call's kind.
CollectiveSizes SizesOf(const Collective& collective, const Call& call) {
  return CollectiveSizes::OfParts(
      collective, std::vector<int64_t>(static_cast<size_t>(collective.num_parts()), call.count),
      SizeOf(call.type));
}

Status CheckCall(const Call& call, Rank rank, int32_t ranks) {
  const std::string name(ToString(call.collective));
  if (call.count < 0 || call.count > (int64_t{1} << 60) / ranks / SizeOf(call.type))
    return InvalidInput(fmt::format("{}: count {}; expected 0 to {}", name, call.count,
                                    (int64_t{1} << 60) / ranks / SizeOf(call.type)));
  if (IsRooted(call.collective) && (!call.root || call.root->value < 0 || call.root->value >= ranks))
    return InvalidInput(
        fmt::format("{}: root {}; expected 0 to {}", name, call.root ? call.root->value : -1, ranks - 1));
  const bool is_root = call.root == rank;
  const KindTraits& traits = TraitsOf(call.collective);
  const bool sends = traits.before != KindTraits::Holders::kRoot || is_root;
  const bool receives = traits.after != KindTraits::Holders::kRoot || is_root;
  if (call.count > 0 && call.send == nullptr && sends)
    return InvalidInput(name + ": the send buffer is null");
  if (call.count > 0 && call.receive == nullptr && receives)
    return InvalidInput(name + ": the receive buffer is null");
  return OkStatus();
}

}  // namespace

// A book that has been loaded, and this rank's end of its connections.
struct Communicator::Loaded {
  PlanBook book;
  std::vector<ServedPlan> plans;  // by index in the book's entries
  Wiring wiring;
  std::unique_ptr<Transport> transport;
  std::optional<ProgramRunner> runner;  // else
  // Used by the worker alone.
  std::map<WorkKey, RankWork> prepared;
  std::vector<std::byte> scratch;
};

bool IsInPlace(const Call& call, Rank rank) {
  if (call.collective == CollectiveKind::kBarrier || call.send == nullptr || call.receive == nullptr)
    return false;
  const KindTraits& traits = TraitsOf(call.collective);
  if (traits.parts == KindTraits::Parts::kOne) return call.send == call.receive;
  if (traits.parts != KindTraits::Parts::kPerMember || traits.counted) return false;
  if (IsRooted(call.collective) && call.root != rank) return false;
  const int64_t own = call.count * SizeOf(call.type) * rank.value;
  return traits.before == KindTraits::Holders::kOwn ? call.send == call.receive + own
                                                    : call.receive == call.send + own;
}

Communicator::Communicator(Rank rank, int32_t ranks, Backend backend, const CommunicatorOptions& options)
    : rank_(rank), ranks_(ranks), backend_(std::move(backend)), options_(options) {}

Communicator::~Communicator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

Status Communicator::StartWorker() {
  const std::lock_guard lock(mutex_);
  if (worker_.joinable()) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(worker_, StartThread([this] { Work(); }));
  return OkStatus();
}

void Communicator::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<Status()> call = std::move(queue_.front());
    queue_.pop_front();
    if (!failure_.ok()) {
      changed_.notify_all();
      continue;
    }
    busy_ = true;
    lock.unlock();
    const Status status = call();
    lock.lock();
    busy_ = false;
    if (!status.ok() && failure_.ok()) failure_ = status;
    changed_.notify_all();
  }
}

Status Communicator::LoadPlanBook(const std::string& directory) {
  XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(directory));
  std::vector<ServedPlan> plans;
  for (const PlanBookEntry& entry : book.entries) {
    if (entry.ranks != ranks_) continue;
    XCCL_ASSIGN_OR_RETURN(Plan plan, ReadPlan(book.PathOf(entry)));
    const std::string path = book.PathOf(entry);
    if (!plan.program) return InvalidInput(path + ": has no program; expected one lowered with -o");
    if (plan.program->program.ranks.size() != ranks_ || plan.collective.num_members() != ranks_ ||
        plan.collective.kind() != entry.collective || plan.collective.spec().root != entry.root)
      return InvalidInput(fmt::format("{}: {} on {} of {} ranks; the index says {} on {} ranks", path,
                                      plan.collective.name(), plan.collective.num_members(),
                                      plan.program->program.ranks.size(), ToString(entry.collective),
                                      entry.ranks));
    std::string kernel;
    if (backend_.load && !entry.kernel.empty()) {
      XCCL_ASSIGN_OR_RETURN(kernel, ReadFile(book.KernelPathOf(entry)));
    }
    plans.push_back({entry, std::move(plan.program->collective), std::move(plan.program->program),
                     std::move(kernel), book.CubinPathsOf(entry)});
  }
  if (plans.empty()) return InvalidInput(fmt::format("{}: no plan for {} ranks", directory, ranks_));
  return LoadPlans(directory, std::move(plans));
}

Status Communicator::LoadPlans(std::string name, std::vector<ServedPlan> plans) {
  auto loaded = std::make_shared<Loaded>();
  loaded->book.directory = std::move(name);
  loaded->plans = std::move(plans);
  std::vector<const Program*> programs;
  for (const ServedPlan& plan : loaded->plans) {
    loaded->book.entries.push_back(plan.entry);
    programs.push_back(&plan.program);
  }
  if (backend_.load) {
    XCCL_ASSIGN_OR_RETURN(loaded->runner, backend_.load(loaded->book.directory, loaded->plans));
  } else {
    XCCL_RETURN_IF_ERROR(StartWorker());
    XCCL_ASSIGN_OR_RETURN(loaded->wiring, WiringOf(programs));
    XCCL_ASSIGN_OR_RETURN(loaded->transport, backend_.connect(loaded->wiring));
  }
  const std::lock_guard lock(mutex_);
  loaded_ = loaded;
  books_.push_back(std::move(loaded));
  return failure_;
}

StatusOr<int32_t> Communicator::Register(const std::byte* buffer, size_t bytes) {
  const std::lock_guard launching(launching_);
  std::unique_lock lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (loaded_ == nullptr) return InvalidInput("register: no plan book is loaded");
  const std::shared_ptr<Loaded> loaded = loaded_;
  lock.unlock();
  if (!loaded->runner || !loaded->runner->register_buffer) return 0;
  return loaded->runner->register_buffer(buffer, bytes);
}

Status Communicator::Deregister(int32_t handle) {
  if (handle == 0) return OkStatus();
  const std::lock_guard launching(launching_);
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Loaded> loaded = loaded_;
  lock.unlock();
  if (loaded == nullptr || !loaded->runner || !loaded->runner->deregister_buffer)
    return InvalidInput(fmt::format("deregister: no buffer is registered as {}", handle));
  return loaded->runner->deregister_buffer(handle);
}

std::vector<std::string> Communicator::Notices() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const std::shared_ptr<Loaded>& book : books_)
    if (book->runner) all.insert(all.end(), book->runner->notices.begin(), book->runner->notices.end());
  return all;
}

Status Communicator::Enqueue(const Call& call) {
  XCCL_RETURN_IF_ERROR(CheckCall(call, rank_, ranks_));
  const std::lock_guard launching(launching_);
  std::unique_lock lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (loaded_ == nullptr)
    return InvalidInput(fmt::format("{}: no plan book is loaded", ToString(call.collective)));
  const bool in_place = IsInPlace(call, rank_);
  const int64_t shares = TraitsOf(call.collective).parts == KindTraits::Parts::kOne ? 1 : ranks_;
  const PlanQuery query{call.collective, ranks_,  call.root, call.count * SizeOf(call.type) * shares,
                        call.type,       in_place};
  XCCL_ASSIGN_OR_RETURN(const size_t plan, SelectPlan(loaded_->book, query));
  if (in_place && !loaded_->plans[plan].program.in_place)
    return InvalidInput(fmt::format("{}: the plan {} does not run in place", ToString(call.collective),
                                    loaded_->plans[plan].entry.file));
  if (loaded_->runner) {
    const std::shared_ptr<Loaded> loaded = loaded_;
    lock.unlock();
    return EnqueueToRunner(*loaded, plan, call, in_place);
  }
  queue_.push_back(
      [this, loaded = loaded_, plan, call, in_place] { return Execute(*loaded, plan, call, in_place); });
  changed_.notify_all();
  return OkStatus();
}

Status Communicator::EnqueueToRunner(Loaded& loaded, size_t plan, const Call& call, bool in_place) {
  const Collective& collective = loaded.plans[plan].collective;
  Call effective = call;
  // A collective that only moves data has no operator.
  if (!collective.Reduces()) effective.op = ReduceOp::kSum;
  const CollectiveSizes sizes = SizesOf(collective, call);
  Status status = loaded.runner->launch(plan, effective, sizes, in_place);
  if (status.ok()) return status;
  // Other ranks may have launched it and must not wait for this one.
  loaded.runner->abort(status);
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = status;
  return failure_;
}

StatusOr<const RankWork*> Communicator::WorkFor(Loaded& loaded, size_t plan, const Call& call,
                                                bool in_place) {
  const WorkKey key{plan, call.count, SizeOf(call.type), in_place};
  if (const auto known = loaded.prepared.find(key); known != loaded.prepared.end()) return &known->second;
  const ServedPlan& served = loaded.plans[plan];
  const CollectiveSizes sizes = SizesOf(served.collective, call);
  XCCL_ASSIGN_OR_RETURN(const int32_t passes,
                        PassesFor(served.program, served.collective, sizes, loaded.wiring.slot_bytes));
  XCCL_ASSIGN_OR_RETURN(RankWork work, PrepareRank(served.program, served.collective, sizes, loaded.wiring,
                                                   rank_, passes, in_place, backend_.one_address_space));
  if (loaded.prepared.size() >= kMostPrepared) loaded.prepared.clear();
  return &loaded.prepared.emplace(key, std::move(work)).first->second;
}

Status Communicator::Execute(Loaded& loaded, size_t plan, const Call& call, bool in_place) {
  Status failure;
  try {
    const StatusOr<const RankWork*> work = WorkFor(loaded, plan, call, in_place);
    if (work.ok()) {
      const size_t scratch = static_cast<size_t>((*work)->scratch_bytes);
      if (loaded.scratch.size() < scratch) loaded.scratch.resize(scratch);
      return ExecuteRank(**work, ExecuteOptions{call.type, call.op, options_.time_limit},
                         RankBuffers{call.send, call.receive, loaded.scratch.data()}, *loaded.transport);
    }
    failure = work.status();
  } catch (const std::exception& error) {
    failure = Annotate(StatusOf(error), fmt::format("rank {}", rank_.value));
  }
  loaded.transport->Fail(failure);
  return failure;
}

Status Communicator::Synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  const std::vector<std::shared_ptr<Loaded>> books = books_;
  lock.unlock();
  Status status;
  for (const std::shared_ptr<Loaded>& book : books)
    if (book->runner && status.ok()) status = book->runner->synchronize();
  lock.lock();
  if (failure_.ok()) failure_ = status;
  return failure_;
}

Status Communicator::AsyncError() const {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Loaded>& book : books_)
    if (book->runner && failure_.ok()) failure_ = book->runner->error();
  return failure_;
}

void Communicator::Abort() {
  const Status aborted = LimitReached(fmt::format("rank {}: aborted", rank_.value));
  std::unique_lock lock(mutex_);
  if (failure_.ok()) failure_ = aborted;
  const std::vector<std::shared_ptr<Loaded>> books = books_;
  lock.unlock();
  for (const std::shared_ptr<Loaded>& book : books) {
    if (book->runner) {
      book->runner->abort(aborted);
    } else {
      book->transport->Fail(aborted);
    }
  }
}

}  // namespace xccl
