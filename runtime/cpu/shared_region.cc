#include "runtime/cpu/shared_region.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/owned_file.h"

namespace xccl {
namespace {

constexpr int64_t kPage = 4096;
constexpr uint64_t kReady = 0x58434c31'52454459;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }
int64_t RanksAt() { return RoundUp(sizeof(RegionHeader), kPage); }
int64_t ConnectionsAt(const Wiring& w) {
  return RoundUp(RanksAt() + w.ranks * int64_t{sizeof(RankCell)}, kPage);
}
int64_t SlotsAt(const Wiring& w) {
  return RoundUp(ConnectionsAt(w) + static_cast<int64_t>(w.connections.size() * sizeof(ConnectionCell)),
                 kPage);
}

void Construct(std::byte* memory, const Wiring& wiring) {
  new (memory) RegionHeader();
  for (int32_t r = 0; r < wiring.ranks; ++r)
    new (memory + RanksAt() + r * int64_t{sizeof(RankCell)}) RankCell();
  for (size_t c = 0; c < wiring.connections.size(); ++c)
    new (memory + ConnectionsAt(wiring) + c * sizeof(ConnectionCell)) ConnectionCell();
}

}  // namespace

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

SharedRegion::SharedRegion(Wiring wiring, Sharing sharing, HostMemory memory)
    : wiring_(std::move(wiring)), sharing_(sharing), memory_(std::move(memory)) {
  if (sharing == Sharing::kThreads)
    directs_ =
        std::make_unique<DirectSource[]>(wiring_.connections.size() * static_cast<size_t>(wiring_.slots));
}

int64_t RegionBytes(const Wiring& wiring) { return SlotsAt(wiring) + wiring.SlotMemory(); }

StatusOr<SharedRegion> SharedRegion::Create(const Wiring& wiring, Sharing sharing, const std::string& name,
                                            int32_t participants) {
  const int64_t bytes = RegionBytes(wiring);
  OwnedFile file;
  int flags = sharing == Sharing::kThreads ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_ANONYMOUS;
  if (sharing == Sharing::kNamed) {
    flags = MAP_SHARED;
    file = OwnedFile(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    if (!file.open() || ftruncate(file.get(), bytes) != 0) {
      const Status failed =
          InvalidInput(fmt::format("shared memory {} of {} bytes: {}", name, bytes, std::strerror(errno)));
      if (file.open()) Unlink(name);
      return failed;
    }
  }
  StatusOr<HostMemory> memory =
      HostMemory::Map(bytes, flags | MAP_NORESERVE, file.get(), "memory for connections");
  if (!memory.ok()) {
    if (sharing == Sharing::kNamed) Unlink(name);
    return memory.status();
  }
  Construct(memory->data(), wiring);
  SharedRegion region(wiring, sharing, *std::move(memory));
  region.header().creator = getpid();
  region.header().participants = static_cast<uint32_t>(participants > 0 ? participants : wiring.ranks);
  region.header().ready.store(kReady, std::memory_order_release);
  return region;
}

StatusOr<SharedRegion> SharedRegion::Open(const Wiring& wiring, const std::string& name) {
  const OwnedFile file(shm_open(name.c_str(), O_RDWR, 0600));
  if (!file.open()) return LimitReached(fmt::format("shared memory {}: {}", name, std::strerror(errno)));
  struct stat found = {};
  const int64_t bytes = RegionBytes(wiring);
  // The creator may not have sized it yet; touching pages past the end would be fatal.
  if (fstat(file.get(), &found) != 0 || found.st_size == 0)
    return LimitReached("shared memory " + name + ": not ready");
  if (found.st_size != bytes)
    return InvalidInput(
        fmt::format("shared memory {}: {} bytes; expected {}: ranks do not agree on plans or sizes", name,
                    static_cast<int64_t>(found.st_size), bytes));
  XCCL_ASSIGN_OR_RETURN(HostMemory memory, HostMemory::Map(bytes, MAP_SHARED | MAP_NORESERVE, file.get(),
                                                           "shared memory " + name));
  SharedRegion region(wiring, Sharing::kNamed, std::move(memory));
  // Acquire: the creator's cells are complete when its mark is there.
  if (region.header().ready.load(std::memory_order_acquire) != kReady)
    return LimitReached("shared memory " + name + ": not ready");
  // A killed run left it under the same name.
  if (kill(region.header().creator, 0) != 0 && errno == ESRCH)
    return LimitReached("shared memory " + name + ": its creator has ended");
  return region;
}

void SharedRegion::Unlink(const std::string& name) { shm_unlink(name.c_str()); }

RegionHeader& SharedRegion::header() const { return *reinterpret_cast<RegionHeader*>(memory_.data()); }

RankCell& SharedRegion::rank(int32_t r) const {
  return *reinterpret_cast<RankCell*>(memory_.data() + RanksAt() + r * int64_t{sizeof(RankCell)});
}

ConnectionCell& SharedRegion::connection(int32_t c) const {
  return *reinterpret_cast<ConnectionCell*>(memory_.data() + ConnectionsAt(wiring_) +
                                            c * int64_t{sizeof(ConnectionCell)});
}

std::byte* SharedRegion::slots(int32_t c) const {
  return memory_.data() + SlotsAt(wiring_) + c * wiring_.slots * wiring_.slot_bytes;
}

DirectSource* SharedRegion::directs(int32_t c) const {
  return directs_ == nullptr ? nullptr : directs_.get() + static_cast<int64_t>(c) * wiring_.slots;
}

}  // namespace xccl
