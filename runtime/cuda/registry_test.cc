// Two ranks that meet in one process's threads would share addresses; here they are processes, each with a
// fake driver.
#include "runtime/cuda/registry.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>

#include "device/abi.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::cuda {
namespace {

struct Side {
  int32_t rank;
  std::shared_ptr<const Gpu> gpu;
  Exchange exchange;
  BufferRegistry registry;
};

// Runs `body` as two processes; it returns 0, or where it went wrong.
void AsTwo(const std::string& name, const std::function<int(Side&)>& body, const FakeOptions& machine = {}) {
  const std::string meeting = "xccl-registry-test-" + std::to_string(getpid()) + "-" + name;
  pid_t children[2];
  for (int32_t rank : {0, 1}) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    int result = 99;
    FakeDriver fake(machine);
    {
      const std::shared_ptr<const Gpu> gpu = *Gpu::Open(fake.table(), rank % machine.devices);
      const Exchange exchange = *SocketExchange(meeting, rank, 2, std::chrono::seconds(20));
      Side side{rank, gpu, exchange, BufferRegistry(gpu, Rank(rank), exchange)};
      result = body(side);
    }
    if (result == 0 && !fake.Leaks().empty()) result = 98;
    _exit(result);
  }
  for (const pid_t child : children) {
    int ending = 0;
    waitpid(child, &ending, 0);
    EXPECT_EQ(ending, 0) << name;
  }
}

TEST(BufferRegistry, APeersBufferIsWhereTheDeltaSays) {
  for (const Sharing sharing : {Sharing::kLegacy, Sharing::kFileDescriptor}) {
    AsTwo(std::string(ToString(sharing)).substr(0, 4), [sharing](Side& side) {
      // The ranks' allocations differ in size; the buffer begins within.
      const size_t bytes = 100000 + 70000 * static_cast<size_t>(side.rank);
      const DeviceMemory memory = *DeviceMemory::Create(side.gpu, bytes, sharing, {}, "test");
      const DevicePointer buffer = memory.address() + 1000;
      std::memset(PointerTo<char>(buffer), 'a' + side.rank, 5000);
      if (!side.registry.empty() || side.registry.Find(buffer, 1)) return 1;
      const StatusOr<int32_t> window = side.registry.Register(buffer, 5000);
      if (!window.ok() || *window != 1 || side.registry.empty()) return 2;
      if (side.registry.Find(buffer, 5000) != 1 || side.registry.Find(buffer + 4999, 1) != 1) return 3;
      if (side.registry.Find(buffer, 5001) || side.registry.Find(buffer - 1, 2)) return 4;
      const uint64_t delta = side.registry.DeltasTo(Rank(1 - side.rank))[1];
      if (delta == device::kUnmapped || side.registry.DeltasTo(Rank(side.rank))[1] != device::kUnmapped)
        return 5;
      // The peer writes through the address that this rank tells it.
      const DevicePointer told = buffer + delta;
      Parcel mine{std::string(reinterpret_cast<const char*>(&told), sizeof told), {}};
      const auto all = side.exchange.all(std::move(mine));
      if (!all.ok()) return 6;
      DevicePointer at = 0;
      std::memcpy(&at, (*all)[static_cast<size_t>(1 - side.rank)].bytes.data(), sizeof at);
      if (*PointerTo<char>(at) != 'a' + 1 - side.rank) return 7;
      std::memset(PointerTo<char>(at + 4000), 'x', 1000);
      if (!side.exchange.all({}).ok() || *PointerTo<char>(buffer + 4999) != 'x') return 8;
      if (!side.registry.Deregister(1).ok() || !side.registry.empty()) return 9;
      if (side.registry.DeltasTo(Rank(1 - side.rank))[1] != device::kUnmapped) return 10;
      return side.registry.Deregister(1) == InvalidInput("deregister: no buffer is registered as 1") ? 0 : 11;
    });
  }
}

TEST(BufferRegistry, FailsOnAllRanksAlike) {
  AsTwo("fails", [](Side& side) {
    const DeviceMemory memory = *DeviceMemory::Create(side.gpu, 4096, Sharing::kLegacy, {}, "test");
    const Status outside =
        side.registry.Register(memory.address() + 96, side.rank == 1 ? 4096 : 100).status();
    if (outside !=
        InvalidInput("register: rank 1: cuda: device 0: a buffer of 4096 bytes, 96 behind the begin of an "
                     "allocation of 4096; expected 1 byte or more, all within it"))
      return 1;
    for (int32_t w = 1; w < kWindows; ++w)
      if (side.registry.Register(memory.address(), 4096).status() != OkStatus()) return 2;
    if (side.registry.Register(memory.address(), 4096).status() !=
        InvalidInput("register: 31 buffers are registered; expected 31 at most at once"))
      return 3;
    for (int32_t w = 1; w < kWindows; ++w)
      if (!side.registry.Deregister(w).ok()) return 4;
    return 0;
  });
}

// Both processes see the same byte under one number, and the switch stores to both.
TEST(BufferRegistry, TheSwitchReachesWhatAllRegisteredAlike) {
  FakeOptions machine;
  machine.devices = 2;
  machine.multicast = true;
  AsTwo(
      "switch",
      [](Side& side) {
        constexpr auto kUnit = static_cast<size_t>(kRegionAlignment);
        const Sharing sharing = Sharing::kFileDescriptor;
        const DeviceMemory first = *DeviceMemory::Create(side.gpu, 2 * kUnit, sharing, {}, "test");
        const DeviceMemory second = *DeviceMemory::Create(side.gpu, 2 * kUnit, sharing, {}, "test");
        // Rank 1's buffer lies one unit further into its allocation.
        const DevicePointer at = first.address() + 4096 + (side.rank == 1 ? kUnit : 0);
        if (side.registry.switched() || side.registry.Register(at, 5000).value() != 1) return 1;
        if (!side.registry.switched()) return 2;
        const auto rows = side.registry.SwitchDeltas();
        const uint64_t place = at + 100 + rows[1];
        const auto all =
            side.exchange.all({std::string(reinterpret_cast<const char*>(&place), sizeof place), {}});
        if (!all.ok() || (*all)[0].bytes != (*all)[1].bytes) return 3;
        const std::vector<char*> copies = FakeDriver::CopiesAt(place + rows[kWindows + 1]);
        if (copies.size() != 2) return 4;
        for (char* const copy : copies) copy[side.rank] = static_cast<char>('a' + side.rank);
        if (!side.exchange.all({}).ok()) return 5;
        const char* const mine = PointerTo<char>(at + 100);
        if (mine[0] != 'a' || mine[1] != 'b') return 6;
        // Not alike: at other offsets of a unit, of other sizes, or in memory that cannot be bound.
        const DevicePointer apart = second.address() + (side.rank == 1 ? 128 : 0);
        const DeviceMemory legacy = *DeviceMemory::Create(side.gpu, 4096, Sharing::kLegacy, {}, "test");
        if (side.registry.Register(apart, 1000).value() != 2) return 7;
        if (side.registry.Register(second.address(), side.rank == 0 ? 1000 : kUnit + 1).value() != 3)
          return 8;
        if (side.registry.Register(legacy.address(), 1000).value() != 4) return 9;
        const auto now = side.registry.SwitchDeltas();
        for (const size_t w : {2U, 3U, 4U})
          if (now[w] != device::kUnmapped || now[kWindows + w] != device::kUnmapped) return 10;
        if (now[1] != rows[1]) return 11;
        for (const int32_t w : {4, 3, 2, 1})
          if (!side.registry.Deregister(w).ok()) return 12;
        return side.registry.switched() ? 13 : 0;
      },
      machine);
}

}  // namespace
}  // namespace xccl::cuda
