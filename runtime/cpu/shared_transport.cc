// Memory orders. Data: the sender's writes to a slot, then head.store(release); the receiver's
// head.load(acquire), then its reads. Slots come back the same way through tail. Sleeping: a waiter stores
// `sleeping` and then looks at its doorbell; a ringer changes the doorbell and then looks at `sleeping`. Both
// are sequentially consistent, so at least one of them sees the other, and no ring is lost.
#include "runtime/cpu/shared_transport.h"

#include <fmt/core.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>
#include <thread>

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSpins = 2000;  // about 20 us: a peer on another core is about to answer
constexpr std::chrono::milliseconds kPeerCheckInterval(20);

void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A futex on a word that other processes may share: std::atomic::wait is private to a process.
long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* limit) {
  static_assert(sizeof word == sizeof(uint32_t));
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

void RingCell(RankCell& cell) {
  cell.doorbell.fetch_add(1, std::memory_order_seq_cst);
  if (cell.sleeping.load(std::memory_order_seq_cst) != 0) Futex(cell.doorbell, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace

SharedTransport::SharedTransport(const SharedRegion& region, Rank rank)
    : region_(region), rank_(rank), cell_(region.rank(rank.value)) {
  spins_ = region.header().participants <= std::max(1U, std::thread::hardware_concurrency());
  cell_.pid.store(getpid(), std::memory_order_release);
}

SharedTransport::~SharedTransport() { cell_.left.store(1, std::memory_order_release); }

ConnectionEnd SharedTransport::At(int32_t connection) {
  ConnectionCell& cell = region_.connection(connection);
  return {region_.slots(connection), region_.directs(connection), &cell.head, &cell.tail};
}

void SharedTransport::Put(int32_t connection, int64_t) {
  std::atomic<uint64_t>& head = region_.connection(connection).head;
  head.store(head.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  RingCell(region_.rank(region_.wiring().connections[connection].dst.value));
}

void SharedTransport::Take(int32_t connection) {
  std::atomic<uint64_t>& tail = region_.connection(connection).tail;
  tail.store(tail.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  RingCell(region_.rank(region_.wiring().connections[connection].src.value));
}

uint32_t SharedTransport::Ticket() const { return cell_.doorbell.load(std::memory_order_acquire); }

void SharedTransport::Wait(uint32_t ticket, std::chrono::nanoseconds limit) {
  const auto rung = [&] { return cell_.doorbell.load(std::memory_order_acquire) != ticket; };
  // Where ranks share cores, spinning keeps the rank that is waited for from running, and yielding gives the
  // core to strangers. Sleeping wakes in order.
  for (int i = 0; spins_ && i < kSpins; ++i) {
    if (rung()) return;
    Relax();
  }
  cell_.sleeping.store(1, std::memory_order_seq_cst);
  const timespec timeout = {limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  if (cell_.doorbell.load(std::memory_order_seq_cst) == ticket)
    Futex(cell_.doorbell, FUTEX_WAIT, ticket, &timeout);
  cell_.sleeping.store(0, std::memory_order_relaxed);
}

// Entering is stored before the failure is read, and failing before `inside` is read. A rank that enters too
// late sees the failure, and one that does not is seen.
void SharedTransport::Enter() { cell_.inside.store(1, std::memory_order_seq_cst); }

void SharedTransport::Leave() {
  cell_.inside.store(0, std::memory_order_seq_cst);
  if (region_.sharing() != Sharing::kThreads || region_.header().failure.load(std::memory_order_seq_cst) == 0)
    return;
  for (int32_t r = 0; r < ranks(); ++r)
    while (region_.rank(r).inside.load(std::memory_order_seq_cst) != 0)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void SharedTransport::NoteProgress() {
  cell_.progress.store(cell_.progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

uint64_t SharedTransport::TotalProgress() const {
  uint64_t total = 0;
  for (int32_t r = 0; r < ranks(); ++r) total += region_.rank(r).progress.load(std::memory_order_relaxed);
  return total;
}

void SharedTransport::Fail(const Status& status) { FailRegion(region_, status); }

void FailRegion(const SharedRegion& region, const Status& status) {
  RegionHeader& header = region.header();
  uint32_t none = 0;
  if (header.failure.compare_exchange_strong(none, RegionHeader::kFailing, std::memory_order_seq_cst)) {
    header.failure_code = static_cast<int32_t>(status.code());
    const size_t length = std::min(status.message().size(), sizeof header.failure_text - 1);
    std::memcpy(header.failure_text, status.message().data(), length);
    header.failure_text[length] = '\0';
    header.failure.store(RegionHeader::kFailed, std::memory_order_seq_cst);
  }
  for (int32_t r = 0; r < region.wiring().ranks; ++r) RingCell(region.rank(r));
}

std::optional<Status> SharedTransport::Failure() const {
  const RegionHeader& header = region_.header();
  uint32_t state = header.failure.load(std::memory_order_seq_cst);
  if (state == 0) return std::nullopt;
  // The rank that claimed the failure writes its text; if it dies doing so, do not wait for ever.
  for (int i = 0; i < 1000 && state != RegionHeader::kFailed; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    state = header.failure.load(std::memory_order_acquire);
  }
  if (state != RegionHeader::kFailed) return LimitReached("the operation failed; its reason was lost");
  return Status(static_cast<StatusCode>(header.failure_code), header.failure_text);
}

void SharedTransport::WatchPeers() {
  peers_.resize(static_cast<size_t>(ranks()));
  for (int32_t r = 0; r < ranks(); ++r) {
    const int32_t pid = region_.rank(r).pid.load(std::memory_order_acquire);
    if (pid != getpid() && pid > 0) peers_[r] = WatchProcess(pid);
  }
  checked_at_ = Clock::now();
}

void SharedTransport::CheckPeers() {
  if (peers_.empty() || Clock::now() - checked_at_ < kPeerCheckInterval) return;
  checked_at_ = Clock::now();
  for (size_t r = 0; r < peers_.size(); ++r) {
    // Acquire: a rank that left before it ended has put all its messages.
    if (HasEnded(peers_[r]) &&
        region_.rank(static_cast<int32_t>(r)).left.load(std::memory_order_acquire) == 0)
      Fail(LimitReached(fmt::format("rank {}: its process {} has ended", r,
                                    region_.rank(static_cast<int32_t>(r)).pid.load())));
  }
}

Status SharedTransport::Barrier(std::chrono::nanoseconds limit) {
  RegionHeader& header = region_.header();
  const uint32_t generation = header.generation.load(std::memory_order_acquire);
  // Acquire and release: what every rank did before the barrier is visible to all after it.
  if (header.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == header.participants) {
    header.arrived.store(0, std::memory_order_relaxed);
    header.generation.store(generation + 1, std::memory_order_release);
    for (int32_t r = 0; r < ranks(); ++r) RingCell(region_.rank(r));
    return OkStatus();
  }
  Clock::time_point since = Clock::now();
  uint64_t seen = TotalProgress();
  while (true) {
    const uint32_t ticket = Ticket();
    if (header.generation.load(std::memory_order_acquire) != generation) return OkStatus();
    if (std::optional<Status> failure = Failure()) return *failure;
    Wait(ticket, std::min<std::chrono::nanoseconds>(kPeerCheckInterval, limit));
    CheckPeers();
    if (Clock::now() - since < limit) continue;
    const uint64_t progress = TotalProgress();
    if (progress == seen && header.generation.load(std::memory_order_acquire) == generation)
      Fail(LimitReached(
          fmt::format("rank {}: expected {} ranks at a barrier, saw {}; nothing moved for {} ms", rank_.value,
                      header.participants, header.arrived.load(std::memory_order_relaxed),
                      std::chrono::duration_cast<std::chrono::milliseconds>(limit).count())));
    seen = progress;
    since = Clock::now();
  }
}

}  // namespace xccl
