// Registering takes two rounds. In the first every rank offers its allocation, {rank, begin, what a switch
// may reach} and a description; each rank maps what the others offer. In the second every rank tells the
// others how far from the owner's addresses it sees them. A rank that fails sends its reason instead, so all
// fail alike and none waits. Then, if the offers allow it, they connect the switch.
#include "runtime/cuda/registry.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "device/abi.h"
#include "runtime/cuda/switches.h"

namespace xccl::cuda {
namespace {

// The number of a window's byte that is the same on all ranks: the window here, the offset below.
constexpr int32_t kWindowBit = 48;

struct Offer {
  int32_t failed = 0;  // the reason follows
  int32_t rank = 0;
  DevicePointer begin = 0;  // start of the allocation, in the owner
  // The memory that the switch may reach: the buffer's offset in it, and its size in bytes; 0: none.
  uint64_t offset = 0, reach = 0;
};

// Fills in the memory that a switch may reach: the buffer, rounded out to whole units that a driver binds.
void OfferReach(const Gpu& gpu, const DeviceMemory& memory, DevicePointer address, size_t bytes,
                Offer& offer) {
  if (!gpu.properties().multicast || memory.handle() == 0) return;
  const uint64_t begin = address - memory.address(), unit = kRegionAlignment;
  const uint64_t end = (begin + bytes + unit - 1) / unit * unit;
  if (end > memory.bytes()) return;
  offer.offset = begin % unit;
  offer.reach = end - (begin - offer.offset);
}

Parcel Pack(const Offer& offer, const std::string& rest) {
  return {std::string(reinterpret_cast<const char*>(&offer), sizeof offer) + rest, {}};
}

StatusOr<Offer> Unpack(const Parcel& parcel, std::string& rest) {
  Offer offer;
  if (parcel.bytes.size() < sizeof offer)
    return InvalidInput("a process registers nothing; expected all to register in the same order");
  std::memcpy(&offer, parcel.bytes.data(), sizeof offer);
  rest = parcel.bytes.substr(sizeof offer);
  if (offer.failed != 0) return InvalidInput(fmt::format("rank {}: {}", offer.rank, rest));
  return offer;
}

Status FirstFailure(const std::vector<Parcel>& all) {
  std::string rest;
  for (const Parcel& parcel : all) XCCL_RETURN_IF_ERROR(Unpack(parcel, rest).status());
  return OkStatus();
}

}  // namespace

// Maps the peers' allocations. `seen`: by party, the offset that turns its addresses into those here.
Status BufferRegistry::Map(const std::vector<Parcel>& offers, Window& window,
                           std::vector<uint64_t>& seen) const {
  for (size_t p = 0; p < offers.size(); ++p) {
    if (static_cast<int32_t>(p) == exchange_.party) continue;
    Parcel memory;
    XCCL_ASSIGN_OR_RETURN(const Offer offer, Unpack(offers[p], memory.bytes));
    for (const OwnedFile& file : offers[p].files) memory.files.emplace_back(dup(file.get()));
    XCCL_ASSIGN_OR_RETURN(DeviceMemory mapped, DeviceMemory::Import(gpu_, memory));
    seen[p] = mapped.address() - offer.begin;
    window.mapped.push_back(std::move(mapped));
  }
  return OkStatus();
}

// Has the switch reach the window if all ranks offer alike; otherwise leaves it as it is.
Status BufferRegistry::Switch(const std::vector<Parcel>& offers, Window& window) const {
  Team team;
  std::optional<Offer> first;
  for (const Parcel& parcel : offers) {
    std::string rest;
    XCCL_ASSIGN_OR_RETURN(const Offer offer, Unpack(parcel, rest));
    if (!first) first = offer;
    if (offer.reach == 0 || offer.reach != first->reach || offer.offset != first->offset) return OkStatus();
    team.ranks.push_back(Rank(offer.rank));
  }
  std::ranges::sort(team.ranks);
  team.bytes = static_cast<int64_t>(first->reach);
  const int64_t begin = static_cast<int64_t>(window.address - window.own.address() - first->offset);
  const SwitchRank here{rank_, gpu_, &window.own, {begin}};
  XCCL_ASSIGN_OR_RETURN(Switches made,
                        ConnectSwitches({team}, {&here, 1}, team.ranks.back().value + 1, true, exchange_));
  window.bound = window.address - first->offset;
  window.multicast = std::move(made.teams[0]);
  return OkStatus();
}

StatusOr<int32_t> BufferRegistry::Register(DevicePointer address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  size_t number = 1;  // 0 is "one address space"
  while (number < windows_.size() && windows_[number]) ++number;
  if (number == windows_.size())
    return InvalidInput(fmt::format("register: {} buffers are registered; expected {} at most at once",
                                    kWindows - 1, kWindows - 1));
  const CaptureRelaxed relaxed(*gpu_);
  Offer offer{.rank = rank_.value};
  const auto failed = [&](const Status& status) {
    offer.failed = 1;
    return Pack(offer, status.message());
  };
  Window window{.address = address, .bytes = bytes, .own = {}, .mapped = {}};
  const auto describe = [&]() -> StatusOr<Parcel> {
    XCCL_ASSIGN_OR_RETURN(window.own, DeviceMemory::Borrow(gpu_, address, bytes));
    XCCL_ASSIGN_OR_RETURN(Parcel memory, window.own.Export());
    offer.begin = window.own.address();
    OfferReach(*gpu_, window.own, address, bytes, offer);
    Parcel mine = Pack(offer, memory.bytes);
    mine.files = std::move(memory.files);
    return mine;
  };
  StatusOr<Parcel> mine = describe();
  XCCL_ASSIGN_OR_RETURN(const std::vector<Parcel> offers,
                        exchange_.all(mine.ok() ? *std::move(mine) : failed(mine.status())));
  XCCL_RETURN_IF_ERROR(Annotate(FirstFailure(offers), "register"));
  std::vector<uint64_t> seen(offers.size(), device::kUnmapped);
  const Status mapped = Map(offers, window, seen);
  XCCL_ASSIGN_OR_RETURN(
      const std::vector<Parcel> answers,
      exchange_.all(mapped.ok() ? Pack(offer, std::string(reinterpret_cast<const char*>(seen.data()),
                                                          seen.size() * sizeof(uint64_t)))
                                : failed(mapped)));
  XCCL_RETURN_IF_ERROR(Annotate(FirstFailure(answers), "register"));
  for (size_t p = 0; p < answers.size(); ++p) {
    if (static_cast<int32_t>(p) == exchange_.party) continue;
    std::string rest;
    XCCL_ASSIGN_OR_RETURN(const Offer peer, Unpack(answers[p], rest));
    uint64_t delta = device::kUnmapped;
    const size_t at = static_cast<size_t>(exchange_.party) * sizeof delta;
    if (rest.size() >= at + sizeof delta) std::memcpy(&delta, rest.data() + at, sizeof delta);
    window.deltas.emplace_back(Rank(peer.rank), delta);
  }
  XCCL_RETURN_IF_ERROR(Switch(offers, window));
  windows_[number] = std::move(window);
  return static_cast<int32_t>(number);
}

Status BufferRegistry::Deregister(int32_t window) {
  const std::lock_guard lock(mutex_);
  if (window < 1 || window >= kWindows || !windows_[static_cast<size_t>(window)])
    return InvalidInput(fmt::format("deregister: no buffer is registered as {}", window));
  const CaptureRelaxed relaxed(*gpu_);
  // No rank unmaps a buffer that another's kernel may still use.
  Status all = exchange_.all({}).status();
  windows_[static_cast<size_t>(window)].reset();
  return all;
}

std::optional<int32_t> BufferRegistry::Find(DevicePointer address, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (size_t w = 1; w < windows_.size(); ++w)
    if (windows_[w] && address >= windows_[w]->address && bytes <= windows_[w]->bytes &&
        address - windows_[w]->address <= windows_[w]->bytes - bytes)
      return static_cast<int32_t>(w);
  return std::nullopt;
}

std::array<uint64_t, kWindows> BufferRegistry::DeltasTo(Rank rank) const {
  const std::lock_guard lock(mutex_);
  std::array<uint64_t, kWindows> all;
  all.fill(device::kUnmapped);
  for (size_t w = 1; w < windows_.size(); ++w) {
    if (!windows_[w]) continue;
    for (const auto& [peer, delta] : windows_[w]->deltas)
      if (peer == rank) all[w] = delta;
  }
  return all;
}

std::array<uint64_t, 2 * kWindows> BufferRegistry::SwitchDeltas() const {
  const std::lock_guard lock(mutex_);
  std::array<uint64_t, 2 * kWindows> rows;
  rows.fill(device::kUnmapped);
  for (size_t w = 1; w < windows_.size(); ++w) {
    if (!windows_[w] || !windows_[w]->multicast) continue;
    const uint64_t number = static_cast<uint64_t>(w) << kWindowBit;
    rows[w] = number - windows_[w]->bound;
    rows[kWindows + w] = windows_[w]->multicast->address() - number;
  }
  return rows;
}

bool BufferRegistry::switched() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(windows_, [](const std::optional<Window>& w) { return w && w->multicast; });
}

bool BufferRegistry::empty() const {
  const std::lock_guard lock(mutex_);
  for (const std::optional<Window>& window : windows_)
    if (window) return false;
  return true;
}

}  // namespace xccl::cuda
