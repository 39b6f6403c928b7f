// Registering takes two rounds. In the first every rank offers its allocation, {rank, begin} and a
// description; each rank maps what the others offer. In the second every rank tells the others how far from
// the owner's addresses it sees them. A rank that fails sends its reason instead, so all fail alike and none
// waits.
#include "runtime/cuda/registry.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "device/abi.h"

namespace xccl::cuda {
namespace {

struct Offer {
  int32_t failed = 0;  // the reason follows
  int32_t rank = 0;
  DevicePointer begin = 0;  // start of the allocation, in the owner
};

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

StatusOr<int32_t> BufferRegistry::Register(DevicePointer address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  size_t number = 1;  // 0 is "one address space"
  while (number < windows_.size() && windows_[number]) ++number;
  if (number == windows_.size())
    return InvalidInput(fmt::format("register: {} buffers are registered; expected {} at most at once",
                                    kWindows - 1, kWindows - 1));
  const CaptureRelaxed relaxed(*gpu_);
  Offer offer{0, rank_.value, 0};
  const auto failed = [&](const Status& status) {
    offer.failed = 1;
    return Pack(offer, status.message());
  };
  Window window{.address = address, .bytes = bytes, .own = {}, .mapped = {}};
  const auto describe = [&]() -> StatusOr<Parcel> {
    XCCL_ASSIGN_OR_RETURN(window.own, DeviceMemory::Borrow(gpu_, address, bytes));
    XCCL_ASSIGN_OR_RETURN(Parcel memory, window.own.Export());
    offer.begin = window.own.address();
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

bool BufferRegistry::empty() const {
  const std::lock_guard lock(mutex_);
  for (const std::optional<Window>& window : windows_)
    if (window) return false;
  return true;
}

}  // namespace xccl::cuda
