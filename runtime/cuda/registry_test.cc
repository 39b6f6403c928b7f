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
#include "runtime/cuda/fake_driver.h"

namespace xccl::cuda {
namespace {

struct Side {
  int32_t rank;
  std::shared_ptr<const Gpu> gpu;
  Exchange exchange;
  BufferRegistry registry;
};

// Runs `body` as two processes; it returns 0, or where it went wrong.
void AsTwo(const std::string& name, const std::function<int(Side&)>& body) {
  const std::string meeting = "xccl-registry-test-" + std::to_string(getpid()) + "-" + name;
  pid_t children[2];
  for (int32_t rank : {0, 1}) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    int result = 99;
    FakeDriver fake;
    {
      const std::shared_ptr<const Gpu> gpu = *Gpu::Open(fake.table(), 0);
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

}  // namespace
}  // namespace xccl::cuda
