#include "runtime/endpoint.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

#include "runtime/transport/shm/transport.h"

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSpins = 2000;  // about 20 us: a peer on another core is about to answer
// Asking a network for progress is a system call or two. Measured: 0, 4, 20, 100, 400.
constexpr int kNetworkSpins = 20;
constexpr std::chrono::milliseconds kLongestSleep(20);

void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Endpoint::Parts WithinRegion(const SharedRegion& region) {
  Endpoint::Parts parts;
  parts.region = &region;
  parts.transports.push_back(std::make_unique<shm::ShmTransport>(region));
  return parts;
}

}  // namespace

Endpoint::Endpoint(const SharedRegion& region, Rank rank) : Endpoint(WithinRegion(region), rank) {}

Endpoint::Endpoint(Parts parts, Rank rank)
    : memory_(std::move(parts.memory)),
      region_(*parts.region),
      group_(parts.group),
      rank_(rank),
      cell_(region_.rank(rank.value)),
      spins_(region_.header().participants <= std::max(1U, std::thread::hardware_concurrency())),
      transports_(std::move(parts.transports)),
      transport_of_(std::move(parts.transport_of)) {
  for (const std::unique_ptr<Transport>& transport : transports_) networked_ |= !transport->files().empty();
}

Endpoint::~Endpoint() { cell_.left.store(1, std::memory_order_release); }

void Endpoint::Announce(const CallSignature& call) {
  cell_.call_which.store(0, std::memory_order_seq_cst);
  cell_.call_what.store(call.what, std::memory_order_seq_cst);
  cell_.call_which.store(call.which, std::memory_order_seq_cst);
  if (group_ != nullptr) group_->NoteCall(call);
}

bool Endpoint::HasLeft(Rank rank) const {
  if (region_.rank(rank.value).left.load(std::memory_order_acquire) != 0) return true;
  return group_ != nullptr && group_->HasLeft(rank);
}

void Endpoint::FailFor(Rank left, const CallSignature& last, const CallSignature& mine) {
  FailAsSaid(PeerEnded(fmt::format(
      "rank {}: has left {}; expected it in {}, with rank {}", left.value,
      last.IsSet() ? fmt::format("after call {}", last.Number()) : std::string("before its first call"),
      ToString(mine), rank_.value)));
}

void Endpoint::CheckCalls(const CallSignature& mine) {
  for (int32_t r = 0; r < ranks(); ++r) {
    const RankCell& cell = region_.rank(r);
    const bool left = cell.left.load(std::memory_order_acquire) != 0;
    CallSignature theirs;
    theirs.which = cell.call_which.load(std::memory_order_seq_cst);
    theirs.what = cell.call_what.load(std::memory_order_seq_cst);
    if (theirs.which != cell.call_which.load(std::memory_order_seq_cst)) continue;  // it changes
    const bool same_number = theirs.IsSet() && theirs.Number() == mine.Number();
    if (same_number && theirs != mine)
      Fail(InvalidInput(Disagreement(Rank(r), theirs, rank_, mine)));
    else if (left && (!theirs.IsSet() || theirs.IsBefore(mine)))
      FailFor(Rank(r), theirs, mine);
  }
  if (group_ == nullptr) return;
  for (const EndpointGroup::LeftRank& left : group_->Left())
    if (!left.call.IsSet() || left.call.IsBefore(mine)) return FailFor(left.rank, left.call, mine);
}

bool Endpoint::Progress() {
  bool moved = false;
  if (!networked_) return moved;
  for (const std::unique_ptr<Transport>& transport : transports_) {
    const StatusOr<bool> progress = transport->Progress();
    if (progress.ok()) {
      moved |= *progress;
    } else {
      Fail(Annotate(progress.status(), fmt::format("rank {}", rank_.value)));
    }
  }
  return moved;
}

bool Endpoint::Flushed() const {
  return std::ranges::all_of(transports_, [](const auto& transport) { return transport->Flushed(); });
}

bool Endpoint::GiveBack() {
  for (const std::unique_ptr<Transport>& transport : transports_) transport->GiveBack();
  Progress();
  return Flushed() || Failure();
}

uint32_t Endpoint::Ticket() const { return cell_.doorbell.load(std::memory_order_acquire); }

void Endpoint::Wait(uint32_t ticket, std::chrono::nanoseconds limit) {
  const auto rung = [&] { return cell_.doorbell.load(std::memory_order_acquire) != ticket; };
  // Where ranks share cores, spinning keeps the rank that is waited for from running, and yielding gives the
  // core to strangers. Sleeping wakes in order.
  const int spins = networked_ ? kNetworkSpins : kSpins;
  for (int i = 0; spins_ && i < spins; ++i) {
    if (rung() || Progress()) return;
    if (networked_) {
      std::this_thread::yield();
    } else {
      Relax();
    }
  }
  if (networked_) {
    SleepOnFiles(ticket, limit);
  } else {
    region_.SleepOnDoorbell(rank_.value, ticket, limit);
  }
}

void Endpoint::SleepOnFiles(uint32_t ticket, std::chrono::nanoseconds limit) {
  if (Progress()) return;
  cell_.sleeping.store(RankCell::kOnFiles, std::memory_order_seq_cst);
  std::vector<pollfd> files = {{region_.doorbell(rank_.value), POLLIN, 0}};
  bool may_sleep = cell_.doorbell.load(std::memory_order_seq_cst) == ticket;
  for (const std::unique_ptr<Transport>& transport : transports_) {
    may_sleep = may_sleep && transport->PrepareToSleep();
    for (const int file : transport->files()) files.push_back({file, POLLIN, 0});
  }
  const timespec timeout = {limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  if (may_sleep) ppoll(files.data(), files.size(), &timeout, nullptr);
  cell_.sleeping.store(RankCell::kAwake, std::memory_order_relaxed);
  if ((files[0].revents & POLLIN) != 0) {
    uint64_t rings = 0;
    // It was readable, and this rank alone reads it.
    [[maybe_unused]] const ssize_t taken = read(files[0].fd, &rings, sizeof rings);
  }
  Progress();
}

// Entering is stored before the failure is read, and failing before `inside` is read. A rank that enters too
// late sees the failure, and one that does not is seen.
void Endpoint::Enter() { cell_.inside.store(1, std::memory_order_seq_cst); }

void Endpoint::Leave() {
  cell_.inside.store(0, std::memory_order_seq_cst);
  if (region_.sharing() != Sharing::kThreads || region_.header().failure.load(std::memory_order_seq_cst) == 0)
    return;
  for (int32_t r = 0; r < ranks(); ++r)
    while (region_.rank(r).inside.load(std::memory_order_seq_cst) != 0)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Endpoint::NoteProgress() {
  cell_.progress.store(cell_.progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (group_ != nullptr) group_->NoteProgress();
}

uint64_t Endpoint::TotalProgress() const {
  uint64_t total = group_ == nullptr ? 0 : group_->Progress();
  for (int32_t r = 0; r < ranks(); ++r) total += region_.rank(r).progress.load(std::memory_order_relaxed);
  return total;
}

void Endpoint::Fail(const Status& status) {
  // The group may know better who ended, and tells the region.
  if (group_ != nullptr) group_->Fail(status);
  region_.Fail(status);
}

void Endpoint::FailAsSaid(const Status& status) {
  if (group_ != nullptr) group_->FailAsSaid(status);
  region_.Fail(status);
}

Status Endpoint::Barrier(std::chrono::nanoseconds limit) {
  if (group_ != nullptr) return group_->Barrier(limit);
  RegionHeader& header = region_.header();
  const uint32_t generation = header.generation.load(std::memory_order_acquire);
  // Acquire and release: what every rank did before the barrier is visible to all after it.
  if (header.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == header.participants) {
    header.arrived.store(0, std::memory_order_relaxed);
    header.generation.store(generation + 1, std::memory_order_release);
    for (int32_t r = 0; r < ranks(); ++r) region_.Ring(r);
    return OkStatus();
  }
  Stillness stillness(*this);
  while (true) {
    const uint32_t ticket = Ticket();
    if (header.generation.load(std::memory_order_acquire) != generation) return OkStatus();
    if (std::optional<Status> failure = Failure()) return *failure;
    Wait(ticket, std::min<std::chrono::nanoseconds>(kLongestSleep, limit));
    if (stillness.Lasts() >= limit && header.generation.load(std::memory_order_acquire) == generation)
      Fail(LimitReached(
          fmt::format("rank {}: expected {} ranks at a barrier, saw {}; nothing moved for {} ms", rank_.value,
                      header.participants, header.arrived.load(std::memory_order_relaxed),
                      std::chrono::duration_cast<std::chrono::milliseconds>(limit).count())));
  }
}

Stillness::Stillness(const Endpoint& endpoint)
    : endpoint_(&endpoint), seen_(endpoint.TotalProgress()), since_(Clock::now()) {}

std::chrono::nanoseconds Stillness::Lasts() {
  const uint64_t progress = endpoint_->TotalProgress();
  if (progress != std::exchange(seen_, progress)) since_ = Clock::now();
  return Clock::now() - since_;
}

}  // namespace xccl
