// Sleeping: a waiter stores `sleeping` and then looks at its doorbell; a ringer changes the doorbell and then
// looks at `sleeping`. Both are sequentially consistent, so at least one of them sees the other, and no ring
// is lost.
#include "runtime/transport/shared_region.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <thread>
#include <utility>

namespace xccl {
namespace {

constexpr int64_t kPage = 4096;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }
int64_t RanksAt() { return RoundUp(sizeof(RegionHeader), kPage); }
int64_t ConnectionsAt(const RegionLayout& layout) {
  return RoundUp(RanksAt() + layout.wiring.ranks * int64_t{sizeof(RankCell)}, kPage);
}
int64_t SlotsAt(const RegionLayout& layout) {
  return RoundUp(ConnectionsAt(layout) + layout.num_connections * int64_t{sizeof(ConnectionCell)}, kPage);
}

void Construct(std::byte* memory, const RegionLayout& layout, int32_t participants) {
  auto* header = new (memory) RegionHeader();
  header->participants = static_cast<uint32_t>(participants == 0 ? layout.wiring.ranks : participants);
  for (int32_t r = 0; r < layout.wiring.ranks; ++r)
    new (memory + RanksAt() + r * int64_t{sizeof(RankCell)}) RankCell();
  for (int32_t c = 0; c < layout.num_connections; ++c)
    new (memory + ConnectionsAt(layout) + c * int64_t{sizeof(ConnectionCell)}) ConnectionCell();
}

// A futex on a word that other processes may share: std::atomic::wait is private to a process.
long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* limit) {
  static_assert(sizeof word == sizeof(uint32_t));
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

Status NoMemory(int64_t bytes, int error) {
  return SystemError(fmt::format("shared memory of {} bytes for the slots: {}", bytes, std::strerror(error)));
}

}  // namespace

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

RegionLayout WholeWiring(const Wiring& wiring) {
  RegionLayout layout{.wiring = wiring, .place = {}, .num_connections = 0};
  for (size_t c = 0; c < wiring.connections.size(); ++c) layout.place.push_back(layout.num_connections++);
  return layout;
}

RegionLayout WithinHost(const Wiring& wiring, const std::vector<int32_t>& hosts, int32_t host) {
  RegionLayout layout{.wiring = wiring, .place = {}, .num_connections = 0};
  for (const ConnectionKey& key : wiring.connections) {
    const bool within = hosts[key.src.index()] == host && hosts[key.dst.index()] == host;
    layout.place.push_back(within ? layout.num_connections++ : -1);
  }
  return layout;
}

int64_t RegionBytes(const RegionLayout& layout) {
  return SlotsAt(layout) + int64_t{layout.num_connections} * layout.wiring.slots * layout.wiring.slot_bytes;
}

SharedRegion::SharedRegion(RegionLayout layout, Sharing sharing, HostMemory memory)
    : layout_(std::move(layout)), sharing_(sharing), memory_(std::move(memory)) {
  if (sharing == Sharing::kThreads)
    directs_ = std::make_unique<DirectSource[]>(static_cast<size_t>(layout_.num_connections) *
                                                static_cast<size_t>(layout_.wiring.slots));
}

StatusOr<SharedRegion> SharedRegion::Create(const Wiring& wiring, Sharing sharing, int32_t participants) {
  const RegionLayout layout = WholeWiring(wiring);
  const int64_t bytes = RegionBytes(layout);
  const int flags = (sharing == Sharing::kThreads ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS | MAP_NORESERVE;
  XCCL_ASSIGN_OR_RETURN(HostMemory memory, HostMemory::Map(bytes, flags, -1, "memory for slots"));
  Construct(memory.data(), layout, participants);
  return SharedRegion(layout, sharing, std::move(memory));
}

StatusOr<OwnedFile> SharedRegion::CreateFile(const RegionLayout& layout, int32_t participants) {
  const int64_t bytes = RegionBytes(layout);
  OwnedFile file(memfd_create("xccl", MFD_CLOEXEC));
  if (!file.open()) return NoMemory(bytes, errno);
  // Reserved here: a page that cannot be had later would be fatal.
  if (const int error = posix_fallocate(file.get(), 0, bytes); error != 0) return NoMemory(bytes, error);
  XCCL_ASSIGN_OR_RETURN(const HostMemory memory,
                        HostMemory::Map(bytes, MAP_SHARED, file.get(), "shared memory for slots"));
  Construct(memory.data(), layout, participants);
  return file;
}

StatusOr<SharedRegion> SharedRegion::Map(RegionLayout layout, const OwnedFile& file,
                                         std::vector<OwnedFile> doorbells) {
  struct stat found = {};
  const int64_t bytes = RegionBytes(layout);
  if (fstat(file.get(), &found) != 0 || found.st_size != bytes)
    return InvalidInput(fmt::format("shared memory of {} bytes; expected {}: ranks do not agree on plans",
                                    static_cast<int64_t>(found.st_size), bytes));
  XCCL_ASSIGN_OR_RETURN(HostMemory memory,
                        HostMemory::Map(bytes, MAP_SHARED, file.get(), "shared memory for slots"));
  SharedRegion region(std::move(layout), Sharing::kProcesses, std::move(memory));
  region.doorbells_ = std::move(doorbells);
  return region;
}

RegionHeader& SharedRegion::header() const { return *reinterpret_cast<RegionHeader*>(memory_.data()); }

RankCell& SharedRegion::rank(int32_t r) const {
  return *reinterpret_cast<RankCell*>(memory_.data() + RanksAt() + r * int64_t{sizeof(RankCell)});
}

ConnectionCell& SharedRegion::connection(int32_t c) const {
  return *reinterpret_cast<ConnectionCell*>(memory_.data() + ConnectionsAt(layout_) +
                                            layout_.place[c] * int64_t{sizeof(ConnectionCell)});
}

std::byte* SharedRegion::slots(int32_t c) const {
  return memory_.data() + SlotsAt(layout_) +
         int64_t{layout_.place[c]} * layout_.wiring.slots * layout_.wiring.slot_bytes;
}

DirectSource* SharedRegion::directs(int32_t c) const {
  return directs_ == nullptr ? nullptr : directs_.get() + int64_t{layout_.place[c]} * layout_.wiring.slots;
}

void SharedRegion::Ring(int32_t r) const {
  RankCell& cell = rank(r);
  cell.doorbell.fetch_add(1, std::memory_order_seq_cst);
  const uint32_t sleeping = cell.sleeping.load(std::memory_order_seq_cst);
  if (sleeping == RankCell::kOnDoorbell) Futex(cell.doorbell, FUTEX_WAKE, INT_MAX, nullptr);
  if (sleeping == RankCell::kOnFiles && doorbell(r) >= 0) {
    const uint64_t one = 1;
    // It fails only when the counter is full, and then the rank is woken anyway.
    [[maybe_unused]] const ssize_t written = write(doorbell(r), &one, sizeof one);
  }
}

void SharedRegion::SleepOnDoorbell(int32_t r, uint32_t ticket, std::chrono::nanoseconds limit) const {
  RankCell& cell = rank(r);
  cell.sleeping.store(RankCell::kOnDoorbell, std::memory_order_seq_cst);
  const timespec timeout = {limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  if (cell.doorbell.load(std::memory_order_seq_cst) == ticket)
    Futex(cell.doorbell, FUTEX_WAIT, ticket, &timeout);
  cell.sleeping.store(RankCell::kAwake, std::memory_order_relaxed);
}

void SharedRegion::Fail(const Status& status) const {
  uint32_t none = 0;
  if (header().failure.compare_exchange_strong(none, RegionHeader::kFailing, std::memory_order_seq_cst)) {
    header().failure_code = static_cast<int32_t>(status.code());
    const size_t length = std::min(status.message().size(), sizeof header().failure_text - 1);
    std::memcpy(header().failure_text, status.message().data(), length);
    header().failure_text[length] = '\0';
    header().failure.store(RegionHeader::kFailed, std::memory_order_seq_cst);
  }
  for (int32_t r = 0; r < wiring().ranks; ++r) Ring(r);
}

std::optional<Status> SharedRegion::Failure() const {
  uint32_t state = header().failure.load(std::memory_order_seq_cst);
  if (state == 0) return std::nullopt;
  // The rank that claimed the failure writes its text; if it dies doing so, do not wait for ever.
  for (int i = 0; i < 1000 && state != RegionHeader::kFailed; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    state = header().failure.load(std::memory_order_acquire);
  }
  if (state != RegionHeader::kFailed) return LimitReached("the operation failed; its reason was lost");
  return Status(static_cast<StatusCode>(header().failure_code), header().failure_text);
}

}  // namespace xccl
