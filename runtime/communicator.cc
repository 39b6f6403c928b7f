#include "runtime/communicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <tuple>
#include <utility>

#include "base/exceptions.h"
#include "base/threads.h"
#include "runtime/rails.h"
#include "runtime/rank_work.h"
#include "runtime/read_book.h"
#include "runtime/reduce.h"

namespace xccl {
namespace {

constexpr size_t kMostPrepared = 64;  // works kept per book
// Calls that follow each other sooner save the messages of GiveBack.
constexpr std::chrono::milliseconds kRestAfter(1);

// The key of a RankWork: plan, count, element size, in place.
using WorkKey = std::tuple<size_t, int64_t, int64_t, bool>;

// Requires: a collective of the call's kind.
CollectiveSizes SizesOf(const Collective& collective, const Call& call) {
  return CollectiveSizes::OfParts(
      collective, std::vector<int64_t>(static_cast<size_t>(collective.num_parts()), call.count),
      SizeOf(call.type));
}

// One rank's share, or the whole buffer where there are no shares.
int64_t ShareBytes(const Call& call) { return call.count * SizeOf(call.type); }

Status CheckCall(const Call& call, Rank rank, int32_t ranks) {
  const std::string name(ToString(call.collective));
  const int64_t most = (int64_t{1} << 60) / ranks / SizeOf(call.type);
  if (call.count < 0 || call.count > most)
    return UsageError(fmt::format("{}: count {}; expected 0 to {}", name, call.count, most));
  if (IsRooted(call.collective) && (!call.root || call.root->value < 0 || call.root->value >= ranks))
    return UsageError(
        fmt::format("{}: root {}; expected 0 to {}", name, call.root ? call.root->value : -1, ranks - 1));
  const bool is_root = call.root == rank;
  const KindTraits& traits = TraitsOf(call.collective);
  const bool sends = traits.before != KindTraits::Holders::kRoot || is_root;
  const bool receives = traits.after != KindTraits::Holders::kRoot || is_root;
  if (call.count > 0 && call.send == nullptr && sends) return UsageError(name + ": the send buffer is null");
  if (call.count > 0 && call.receive == nullptr && receives)
    return UsageError(name + ": the receive buffer is null");
  return OkStatus();
}

bool Overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && std::less<>()(a, b + b_bytes) && std::less<>()(b, a + a_bytes);
}

// As nccl-tests counts.
int64_t SizeBytesOf(const Call& call, int32_t ranks) {
  return ShareBytes(call) * (TraitsOf(call.collective).parts == KindTraits::Parts::kOne ? 1 : ranks);
}

// The messages of a group as one call. Requires: at least one.
CallCounter::Key KeyOf(std::span<const PairMessage> messages, uint64_t server) {
  CallCounter::Key key{
      .collective = messages[0].call, .type = messages[0].type, .op = {}, .root = {}, .server = server};
  int64_t sent = 0, received = 0, largest = 0;
  for (const PairMessage& message : messages) {
    const int64_t bytes = message.count * SizeOf(message.type);
    (message.sends ? sent : received) += bytes;
    largest = std::max(largest, bytes);
  }
  key.size_bytes = key.collective == CollectiveKind::kAlltoallv ? std::max(sent, received) : largest;
  return key;
}

int64_t NsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

// The status of the exception in flight. Texts are left out where there is no memory for them.
Status StatusInFlight(Rank rank) noexcept {
  try {
    try {
      throw;
    } catch (const std::exception& error) {
      return Annotate(StatusOf(error), fmt::format("rank {}", rank.value));
    }
  } catch (const std::exception&) {
    return SystemError("out of memory");
  }
}

}  // namespace

// A book that has been loaded, and this rank's end of its connections. A runner of AddRunner has no plans.
struct Communicator::Loaded {
  PlanBook book;
  std::vector<ServedPlan> plans;  // by index in the book's entries
  size_t first_plan = 0;          // index of this book's first plan among all books' plans
  Wiring wiring;
  std::unique_ptr<Endpoint> endpoint;
  std::optional<ProgramRunner> runner;  // else
  // Used by the worker alone.
  std::map<WorkKey, RankWork> prepared;
  std::vector<std::byte> scratch, input;

  void Fail(const Status& reason) const { runner ? runner->abort(reason) : endpoint->Fail(reason); }
  Status Failure() const { return runner ? runner->error() : endpoint->Failure().value_or(OkStatus()); }
  StatusOr<const RankWork*> WorkFor(Rank rank, const Queued& queued, bool in_place, bool one_address_space);
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

std::array<MemoryUse, 2> MemoryOf(const Call& call, Rank rank, int32_t ranks) {
  const KindTraits& traits = TraitsOf(call.collective);
  const auto bytes = [&](KindTraits::Holders holders) -> int64_t {
    if (call.collective == CollectiveKind::kBarrier) return 0;
    if (holders == KindTraits::Holders::kRoot && call.root != rank) return 0;
    const bool one_share =
        traits.parts == KindTraits::Parts::kOne ||
        (traits.parts == KindTraits::Parts::kPerMember && holders == KindTraits::Holders::kOwn);
    return ShareBytes(call) * (one_share ? 1 : ranks);
  };
  return {MemoryUse{call.send, bytes(traits.before), false, 0},
          MemoryUse{call.receive, bytes(traits.after), true, 0}};
}

Communicator::Communicator(Rank rank, int32_t ranks, BackendMaker backend, const CommunicatorOptions& options)
    : rank_(rank), ranks_(ranks), make_backend_(std::move(backend)), time_limit_(options.time_limit) {}

Communicator::Communicator(Rank rank, int32_t ranks, Backend backend, const CommunicatorOptions& options)
    : Communicator(
          rank, ranks, [backend = std::move(backend)]() -> StatusOr<Backend> { return backend; }, options) {}

Communicator::~Communicator() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

// Requires: loading_ is held.
StatusOr<Backend*> Communicator::Connect() {
  if (!backend_) {
    XCCL_ASSIGN_OR_RETURN(backend_, make_backend_());
    connected_ = true;
  }
  return &*backend_;
}

Status Communicator::StartWorker() {
  const std::lock_guard lock(mutex_);
  if (worker_.joinable()) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(worker_, StartThread([this] { Work(); }));
  return OkStatus();
}

void Communicator::Work() {
  const auto awaited = [this] { return stopping_ || !queue_.empty(); };
  std::unique_lock lock(mutex_);
  bool rested = true;  // senders have been told of all that was taken
  while (true) {
    while (!rested && !changed_.wait_for(lock, kRestAfter, awaited)) {
      lock.unlock();
      rested = GiveBack();
      lock.lock();
    }
    changed_.wait(lock, awaited);
    if (queue_.empty()) return;
    rested = false;
    Queued queued = std::move(queue_.front());
    queue_.pop_front();
    if (failure_.ok()) {
      busy_ = true;
      lock.unlock();
      const Status status = ExecuteCounted(std::move(queued));
      if (!status.ok()) End(status);
      lock.lock();
      busy_ = false;
    }
    changed_.notify_all();
  }
}

// Ranks that are about to close wait for it. Pairs keep nothing back.
bool Communicator::GiveBack() {
  bool all = true;
  for (const Loaded* book : Books())
    if (book->endpoint != nullptr) all = book->endpoint->GiveBack() && all;
  for (Endpoint* const other : Others()) all = other->GiveBack() && all;
  return all;
}

std::vector<Communicator::Loaded*> Communicator::Books() const {
  const std::lock_guard lock(mutex_);
  std::vector<Loaded*> books;
  for (const std::unique_ptr<Loaded>& book : books_) books.push_back(book.get());
  return books;
}

const Communicator::Loaded* Communicator::LastBook() const {
  const Loaded* last = nullptr;
  for (const Loaded* book : Books())
    if (!book->plans.empty()) last = book;
  return last;
}

std::vector<Endpoint*> Communicator::Others() const {
  const std::lock_guard lock(mutex_);
  std::vector<Endpoint*> others;
  for (const std::unique_ptr<Endpoint>& other : others_) others.push_back(other.get());
  return others;
}

// Ranks may wait for this one in any book.
void Communicator::End(const Status& reason) noexcept try {
  std::unique_lock lock(mutex_);
  if (failure_.ok()) failure_ = reason;
  lock.unlock();
  for (const Loaded* book : Books()) book->Fail(reason);
  for (Endpoint* const other : Others()) other->Fail(reason);
  lock.lock();
  Pairs* const pairs = pairs_.get();  // once connected, they stay
  lock.unlock();
  if (pairs != nullptr) pairs->Fail(reason);
} catch (const std::exception&) {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = SystemError("out of memory");
}

Status Communicator::LoadPlanBook(const std::string& directory) {
  const std::lock_guard loading(loading_);
  XCCL_RETURN_IF_ERROR(AsyncError());
  XCCL_ASSIGN_OR_RETURN(const Backend* const backend, Connect());
  uint64_t hash = 0;
  StatusOr<std::vector<ServedPlan>> plans =
      ReadServedPlans(directory, ranks_, static_cast<bool>(backend->load), hash);
  // Ranks that have read theirs must not wait for one that could not.
  if (backend->agree) XCCL_RETURN_IF_ERROR(backend->agree(plans.status(), hash));
  if (!plans.ok()) return plans.status();
  return LoadServed(directory, *std::move(plans));
}

Status Communicator::LoadPlans(std::string name, std::vector<ServedPlan> plans) {
  const std::lock_guard loading(loading_);
  XCCL_RETURN_IF_ERROR(AsyncError());
  return LoadServed(std::move(name), std::move(plans));
}

Status Communicator::Together(const std::function<Status()>& body) {
  const std::lock_guard loading(loading_);
  return body();
}

Status Communicator::LoadServed(std::string name, std::vector<ServedPlan> plans) {
  auto loaded = std::make_unique<Loaded>();
  loaded->book.directory = std::move(name);
  loaded->plans = std::move(plans);
  std::vector<const Program*> programs;
  for (const ServedPlan& plan : loaded->plans) {
    loaded->book.entries.push_back(plan.entry);
    programs.push_back(&plan.program);
  }
  XCCL_ASSIGN_OR_RETURN(Backend* const backend, Connect());
  if (backend->load) {
    XCCL_ASSIGN_OR_RETURN(loaded->runner, backend->load(loaded->book.directory, loaded->plans));
  } else {
    XCCL_RETURN_IF_ERROR(StartWorker());
    XCCL_ASSIGN_OR_RETURN(loaded->wiring, WiringOf(programs));
    for (const ServedPlan& plan : loaded->plans)
      if (!plan.rails.empty()) SetRails(plan.program, plan.rails, loaded->wiring);
    XCCL_ASSIGN_OR_RETURN(loaded->endpoint, backend->connect(loaded->wiring));
  }
  return Keep(std::move(loaded));
}

Status Communicator::Keep(std::unique_ptr<Loaded> loaded) {
  std::unique_lock lock(mutex_);
  if (!books_.empty()) loaded->first_plan = books_.back()->first_plan + books_.back()->plans.size();
  books_.push_back(std::move(loaded));
  Status failure = failure_;
  lock.unlock();
  if (!failure.ok()) End(failure);  // it came meanwhile, and the others must not wait for this rank
  return failure;
}

// Requires: loading_ is held. what: "messages between pairs run", for errors.
StatusOr<std::unique_ptr<Endpoint>> Communicator::ConnectWiring(const StatusOr<Wiring>& wiring, uint64_t hash,
                                                                std::string_view what) {
  XCCL_ASSIGN_OR_RETURN(const Backend* const backend, Connect());
  if (backend->load) return InvalidInput(fmt::format("the ranks are on GPUs; {} on the CPU alone", what));
  if (backend->agree) XCCL_RETURN_IF_ERROR(backend->agree(wiring.status(), hash));
  XCCL_RETURN_IF_ERROR(wiring.status());
  XCCL_RETURN_IF_ERROR(StartWorker());
  return backend->connect(*wiring);
}

StatusOr<Endpoint*> Communicator::ConnectFor(const StatusOr<Wiring>& wiring, uint64_t hash) {
  const std::lock_guard loading(loading_);
  XCCL_RETURN_IF_ERROR(AsyncError());
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Endpoint> endpoint,
                        ConnectWiring(wiring, hash, "work over connections of its own runs"));
  std::unique_lock lock(mutex_);
  others_.push_back(std::move(endpoint));
  Endpoint* const made = others_.back().get();
  Status failure = failure_;
  lock.unlock();
  if (failure.ok()) return made;
  End(failure);  // it came meanwhile, and the others must not wait for this rank
  return failure;
}

Status Communicator::EnqueueJob(Job job) {
  const std::lock_guard launching(launching_);
  XCCL_RETURN_IF_ERROR(Failure(false));
  const std::lock_guard lock(mutex_);
  owes_ = true;
  queue_.push_back({.call = {}, .signature = {}, .job = std::move(job)});
  changed_.notify_all();
  return OkStatus();
}

Status Communicator::AddRunner(const std::function<Status()>& check, uint64_t hash,
                               const std::function<StatusOr<ProgramRunner>()>& make) {
  const std::lock_guard loading(loading_);
  XCCL_RETURN_IF_ERROR(AsyncError());
  XCCL_ASSIGN_OR_RETURN(const Backend* const backend, Connect());
  const Status checked = check();
  if (backend->agree) XCCL_RETURN_IF_ERROR(backend->agree(checked, hash));
  XCCL_RETURN_IF_ERROR(checked);
  auto loaded = std::make_unique<Loaded>();
  XCCL_ASSIGN_OR_RETURN(loaded->runner, make());
  return Keep(std::move(loaded));
}

Status Communicator::Launch(const std::function<Status()>& launch) {
  const std::lock_guard launching(launching_);
  XCCL_RETURN_IF_ERROR(Failure(false));
  return Launched(launch());
}

// Other ranks may have launched what failed here, and must not wait for this one.
Status Communicator::Launched(Status status) {
  owes_ = status.ok();
  if (status.ok()) return status;
  End(status);
  return AsyncError();
}

Status Communicator::ConnectPairs() {
  const std::lock_guard loading(loading_);
  XCCL_RETURN_IF_ERROR(AsyncError());
  if (pairs_ != nullptr || ranks_ == 1) return OkStatus();
  // Another rank may load a book instead.
  constexpr uint64_t kNoBook = 1;
  XCCL_ASSIGN_OR_RETURN(std::unique_ptr<Endpoint> endpoint,
                        ConnectWiring(WiringOfPairs(ranks_), kNoBook, "messages between pairs run"));
  auto pairs = std::make_unique<Pairs>(std::move(endpoint));
  std::unique_lock lock(mutex_);
  pairs_ = std::move(pairs);
  Status failure = failure_;
  lock.unlock();
  if (!failure.ok()) End(failure);  // it came meanwhile, and the others must not wait for this rank
  return failure;
}

Status Communicator::CheckPairArguments(std::span<const PairMessage> messages) const {
  for (const PairMessage& message : messages) {
    const std::string_view name = message.call == CollectiveKind::kAlltoallv ? ToString(message.call)
                                  : message.sends                            ? "send"
                                                                             : "recv";
    if (message.peer.value < 0 || message.peer.value >= ranks_)
      return UsageError(fmt::format("{}: peer {}; expected 0 to {}", name, message.peer.value, ranks_ - 1));
    const int64_t most = (int64_t{1} << 60) / SizeOf(message.type);
    if (message.count < 0 || message.count > most)
      return UsageError(fmt::format("{}: count {}; expected 0 to {}", name, message.count, most));
    if (message.count > 0 && message.data == nullptr)
      return UsageError(fmt::format("{}: the {} buffer is null", name, message.sends ? "send" : "receive"));
  }
  return CheckReceives(messages);
}

Status Communicator::CheckPairs(std::span<const PairMessage> messages) {
  XCCL_RETURN_IF_ERROR(CheckPairArguments(messages));
  XCCL_RETURN_IF_ERROR(Failure(false));
  XCCL_RETURN_IF_ERROR(CheckOwn(messages, rank_));
  const std::lock_guard lock(mutex_);
  if (pairs_ != nullptr || ranks_ == 1) return OkStatus();
  return InvalidInput("the pairs of ranks are not connected; hint: xcclCommConnect on all ranks");
}

Status Communicator::EnqueuePairs(std::vector<PairMessage> messages) {
  const std::lock_guard launching(launching_);
  XCCL_RETURN_IF_ERROR(CheckPairs(messages));
  if (messages.empty()) return OkStatus();
  if (ranks_ == 1) {
    const std::unique_ptr<std::byte[]> held = HoldSends(messages);
    CopyOwn(messages, rank_);
    return OkStatus();
  }
  const std::lock_guard lock(mutex_);
  owes_ = true;
  queue_.push_back({.call = {}, .signature = {}, .pairs = std::move(messages)});
  changed_.notify_all();
  return OkStatus();
}

StatusOr<int32_t> Communicator::Register(const std::byte* buffer, size_t bytes) {
  const std::lock_guard launching(launching_);
  XCCL_RETURN_IF_ERROR(AsyncError());
  const Loaded* const book = LastBook();
  if (book == nullptr) return InvalidInput("register: no plan book is loaded");
  const std::optional<ProgramRunner>& runner = book->runner;
  if (!runner || !runner->register_buffer) return 0;
  return runner->register_buffer(buffer, bytes);
}

Status Communicator::Deregister(int32_t handle) {
  if (handle == 0) return OkStatus();
  const std::lock_guard launching(launching_);
  const Loaded* const book = LastBook();
  if (book == nullptr || !book->runner || !book->runner->deregister_buffer)
    return InvalidInput(fmt::format("deregister: no buffer is registered as {}", handle));
  return book->runner->deregister_buffer(handle);
}

std::vector<std::string> Communicator::Notices() const {
  std::vector<std::string> all;
  for (const Loaded* book : Books())
    if (book->runner) all.insert(all.end(), book->runner->notices.begin(), book->runner->notices.end());
  return all;
}

StatusOr<Communicator::Queued> Communicator::Choose(const Call& call) const {
  const std::lock_guard lock(mutex_);
  // Ranks may differ in being in place, and must not in the plan.
  const PlanQuery query{call.collective, ranks_, call.root, SizeBytesOf(call, ranks_), call.type, {}};
  std::vector<const PlanBook*> searched;
  for (auto loaded = books_.rbegin(); loaded != books_.rend(); ++loaded) {
    if ((*loaded)->plans.empty()) continue;
    if (const std::optional<size_t> plan = FindPlan((*loaded)->book, query))
      return Queued{loaded->get(), *plan, call, {}};
    searched.push_back(&(*loaded)->book);
  }
  if (searched.empty())
    return InvalidInput(fmt::format("{}: no plan book is loaded", ToString(call.collective)));
  return NoPlan(searched, query);
}

Status Communicator::CheckArguments(const Call& call) const { return CheckCall(call, rank_, ranks_); }

// A call of no elements does nothing, and one rank on the host copies within the call.
StatusOr<bool> Communicator::NeedsNoPlan(const Call& call) {
  if (call.count == 0 && call.collective != CollectiveKind::kBarrier) return true;
  if (ranks_ != 1) return false;
  const std::lock_guard loading(loading_);
  XCCL_ASSIGN_OR_RETURN(const Backend* const backend, Connect());
  return !backend->load;
}

// The plan that a call takes; none where it needs none.
StatusOr<std::optional<Communicator::Queued>> Communicator::Prepare(const Call& call) {
  XCCL_RETURN_IF_ERROR(CheckArguments(call));
  XCCL_RETURN_IF_ERROR(Failure(false));  // a launch looks at its device itself
  XCCL_ASSIGN_OR_RETURN(const bool alone, NeedsNoPlan(call));
  if (alone) return std::optional<Queued>();
  XCCL_ASSIGN_OR_RETURN(Queued queued, Choose(call));
  if (queued.loaded->runner && call.scalar)
    return InvalidInput(
        fmt::format("{}: the input is multiplied by a scalar; expected none on a GPU: no kernel does it",
                    ToString(call.collective)));
  if (queued.loaded->runner) XCCL_RETURN_IF_ERROR(CheckOverlap(queued));
  return std::optional(std::move(queued));
}

Status Communicator::Check(const Call& call) { return Prepare(call).status(); }

Status Communicator::Enqueue(const Call& call) {
  const std::lock_guard launching(launching_);
  XCCL_ASSIGN_OR_RETURN(std::optional<Queued> queued, Prepare(call));
  if (queued && queued->loaded->runner) return EnqueueToRunner(*queued);
  if (!queued && call.count > 0) {
    const auto begin = std::chrono::steady_clock::now();
    Status status = CopyAlone(call);
    if (counter_ != nullptr && status.ok()) Count({.call = call, .signature = {}}, NsSince(begin));
    return status;
  }
  const std::lock_guard lock(mutex_);
  ++calls_;
  if (!queued) return OkStatus();
  queued->signature = SignatureOf({call.collective, call.count, call.type, call.op, call.root,
                                   queued->loaded->first_plan + queued->plan, calls_});
  owes_ = true;
  queue_.push_back(*std::move(queued));
  changed_.notify_all();
  return OkStatus();
}

// A communicator of one rank copies its input to its output, which is also its sum and its average.
Status Communicator::CopyAlone(const Call& call) const {
  if (call.collective != CollectiveKind::kBarrier && call.send != call.receive)
    std::memmove(call.receive, call.send, static_cast<size_t>(ShareBytes(call)));
  if (call.scalar) MultiplyBy(call.type, call.scalar->data(), call.receive, call.receive, call.count);
  return OkStatus();
}

// Devices run a plan on the buffers themselves.
Status Communicator::CheckOverlap(const Queued& queued) const {
  const ServedPlan& served = queued.loaded->plans[queued.plan];
  if (IsInPlace(queued.call, rank_) && served.program.in_place) return OkStatus();
  const auto bytes = [&](const std::vector<PartId>& parts) {
    return static_cast<int64_t>(parts.size()) * ShareBytes(queued.call);
  };
  if (!Overlap(queued.call.send, bytes(served.collective.InputParts(rank_)), queued.call.receive,
               bytes(served.collective.OutputParts(rank_))))
    return OkStatus();
  if (!IsInPlace(queued.call, rank_))
    return UsageError(fmt::format("{}: the buffers overlap; expected them apart, or in place",
                                  ToString(queued.call.collective)));
  return InvalidInput(
      fmt::format("{}: the buffers overlap; expected them apart, since the plan {} does not "
                  "run in place",
                  ToString(queued.call.collective), served.entry.file));
}

Status Communicator::EnqueueToRunner(const Queued& queued) {
  const ServedPlan& served = queued.loaded->plans[queued.plan];
  const Collective& collective = served.collective;
  const bool in_place = IsInPlace(queued.call, rank_) && served.program.in_place;
  Call effective = queued.call;
  // A collective that only moves data has no operator.
  if (!collective.Reduces()) effective.op = ReduceOp::kSum;
  const CollectiveSizes sizes = SizesOf(collective, queued.call);
  Status status = queued.loaded->runner->launch(queued.plan, effective, sizes, in_place);
  if (counter_ != nullptr && status.ok()) Count(queued, std::nullopt);
  return Launched(std::move(status));
}

StatusOr<const RankWork*> Communicator::Loaded::WorkFor(Rank rank, const Queued& queued, bool in_place,
                                                        bool one_address_space) {
  const WorkKey key{queued.plan, queued.call.count, SizeOf(queued.call.type), in_place};
  if (const auto known = prepared.find(key); known != prepared.end()) return &known->second;
  const ServedPlan& served = plans[queued.plan];
  const CollectiveSizes sizes = SizesOf(served.collective, queued.call);
  XCCL_ASSIGN_OR_RETURN(const int32_t passes,
                        PassesFor(served.program, served.collective, sizes, wiring.slot_bytes));
  XCCL_ASSIGN_OR_RETURN(RankWork work, PrepareRank(served.program, served.collective, sizes, wiring, rank,
                                                   passes, in_place, one_address_space));
  if (prepared.size() >= kMostPrepared) prepared.clear();
  return &prepared.emplace(key, std::move(work)).first->second;
}

Status Communicator::ExecuteOn(const Queued& queued) {
  Loaded& loaded = *queued.loaded;
  const Call& call = queued.call;
  // Ranks that disagree may take their plans from different books.
  for (const Loaded* book : Books()) book->endpoint->Announce(queued.signature);
  // A copy of the input is multiplied: ranks other than the root of a reduce keep their input.
  const bool in_place = !call.scalar && IsInPlace(call, rank_) && loaded.plans[queued.plan].program.in_place;
  XCCL_ASSIGN_OR_RETURN(const RankWork* const work,
                        loaded.WorkFor(rank_, queued, in_place, backend_->one_address_space));
  RankBuffers buffers{call.send, call.receive, nullptr};
  if (call.scalar) {
    loaded.input.resize(static_cast<size_t>(work->input_bytes));
    MultiplyBy(call.type, call.scalar->data(), loaded.input.data(), call.send,
               work->input_bytes / work->element_bytes);
    buffers.input = loaded.input.data();
  } else if (!in_place && Overlap(call.send, work->input_bytes, call.receive, work->output_bytes)) {
    loaded.input.assign(call.send, call.send + work->input_bytes);
    buffers.input = loaded.input.data();
  }
  const auto scratch = static_cast<size_t>(work->scratch_bytes);
  if (loaded.scratch.size() < scratch) loaded.scratch.resize(scratch);
  buffers.scratch = loaded.scratch.data();
  return ExecuteRank(*work, ExecuteOptions{call.type, call.op, time_limit_, queued.signature}, buffers,
                     *loaded.endpoint);
}

Status Communicator::Execute(Queued queued) {
  try {
    if (used_ != nullptr && used_ != queued.loaded) used_->endpoint->GiveBack();
    used_ = queued.loaded;
    if (queued.job) return queued.job(time_limit_);
    // Once connected, the pairs stay.
    return queued.pairs.empty() ? ExecuteOn(queued) : pairs_->Run(std::move(queued.pairs), time_limit_);
  } catch (const std::exception&) {
    return StatusInFlight(rank_);
  }
}

// Plans have numbers, and what runs without one is number 0.
void Communicator::Count(const Queued& queued, std::optional<int64_t> ns) const {
  constexpr uint64_t kBuiltIn = 0;
  constexpr std::string_view kName = "built-in";
  if (!queued.pairs.empty()) return counter_->Add(KeyOf(queued.pairs, kBuiltIn), kName, ns);
  const Call& call = queued.call;
  CallCounter::Key key{.collective = call.collective,
                       .type = call.type,
                       .op = {},
                       .root = IsRooted(call.collective) ? call.root : std::nullopt,
                       .size_bytes = SizeBytesOf(call, ranks_)};
  if (IsReduction(call.collective) && !call.scalar) key.op = call.op;
  if (queued.loaded == nullptr) return counter_->Add(key, kName, ns);
  key.server = 1 + queued.loaded->first_plan + queued.plan;
  counter_->Add(key, queued.loaded->plans[queued.plan].entry.file, ns);
}

Status Communicator::ExecuteCounted(Queued queued) {
  if (counter_ == nullptr || queued.job) return Execute(std::move(queued));
  Queued counted = queued;  // messages are moved into their execution
  const auto begin = std::chrono::steady_clock::now();
  Status status = Execute(std::move(queued));
  if (status.ok()) Count(counted, NsSince(begin));
  return status;
}

Status Communicator::Synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  lock.unlock();
  for (const Loaded* book : Books()) {
    if (!book->runner) continue;
    if (const Status status = book->runner->synchronize(); !status.ok()) End(status);
  }
  Status status = AsyncError();
  owes_ = false;
  return status;
}

Status Communicator::Finish() {
  const bool owes = owes_;
  const Status status = Synchronize();
  return owes ? status : OkStatus();
}

Status Communicator::AsyncError() {
  Status status = Failure(true);
  if (!status.ok()) owes_ = false;
  return status;
}

Status Communicator::Failure(bool devices) {
  std::unique_lock lock(mutex_);
  if (!failure_.ok()) return failure_;
  lock.unlock();
  Status status = connected_ && backend_->error ? backend_->error() : OkStatus();
  for (const Loaded* book : Books())
    if (status.ok() && (devices || !book->runner)) status = book->Failure();
  for (const Endpoint* other : Others())
    if (status.ok()) status = other->Failure().value_or(OkStatus());
  lock.lock();
  if (status.ok() && pairs_ != nullptr) status = pairs_->Failure().value_or(OkStatus());
  lock.unlock();
  if (!status.ok()) End(status);
  lock.lock();
  return failure_;
}

Status Communicator::Aborted() const { return LimitReached(fmt::format("rank {}: aborted", rank_.value)); }

}  // namespace xccl
