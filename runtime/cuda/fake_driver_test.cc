// Checks that FakeDriver refuses misuse of the driver. Tests of the runtime rely on that.
#include "runtime/testing/cuda/fake_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/memory.h"

namespace xccl::cuda {
namespace {

// Devices with a kernel "touch", which accesses 8 bytes at its parameter, and a kernel "spin", which accesses
// them until `leave` is set.
struct Machine {
  explicit Machine(FakeOptions options = {}) : fake((options.devices = 2, options)) {
    fake.AddKernel("touch", sizeof(DevicePointer), [](const FakeDriver::Launch& launch) {
      static_cast<void>(FakeDriver::Allows(launch.device, PointerOf(launch), 8));
    });
    fake.AddKernel("spin", sizeof(DevicePointer), [this](const FakeDriver::Launch& launch) {
      while (!leave && FakeDriver::Allows(launch.device, PointerOf(launch), 8)) std::this_thread::yield();
    });
    for (int32_t i = 0; i < 2; ++i) {
      gpus.push_back(*Gpu::Open(fake.table(), i));
      streams.push_back(*CreateStream(gpus.back()));
    }
    const ScopedContext context(*gpus[0]);
    driver.ModuleLoadData(&module, "fake");
  }
  ~Machine() {
    leave = true;
    const ScopedContext context(*gpus[0]);
    driver.ModuleUnload(module);
  }

  static const void* PointerOf(const FakeDriver::Launch& launch) {
    DevicePointer at = 0;
    std::memcpy(&at, launch.parameter, sizeof at);
    return PointerTo<const void>(at);
  }
  Result Launch(int32_t device, const char* kernel, DevicePointer at, Stream stream) {
    const ScopedContext context(*gpus[static_cast<size_t>(device)]);
    Function function = nullptr;
    if (const Result found = driver.ModuleGetFunction(&function, module, kernel); found != Result::kSuccess)
      return found;
    void* parameters[] = {&at};
    return driver.LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
  }
  Result Launch(int32_t device, const char* kernel, DevicePointer at) {
    return Launch(device, kernel, at, streams[static_cast<size_t>(device)].get());
  }
  Result Wait(int32_t device) {
    const ScopedContext context(*gpus[static_cast<size_t>(device)]);
    return driver.StreamSynchronize(streams[static_cast<size_t>(device)].get());
  }
  Result LetReach(int32_t device, int32_t peer) {
    const ScopedContext context(*gpus[static_cast<size_t>(device)]);
    return driver.CtxEnablePeerAccess(gpus[static_cast<size_t>(peer)]->context(), 0);
  }
  DeviceMemory Make(int32_t device, Sharing sharing, std::vector<std::shared_ptr<const Gpu>> peers = {}) {
    return *DeviceMemory::Create(gpus[static_cast<size_t>(device)], 4096, sharing, peers, "test");
  }

  FakeDriver fake;
  const Driver& driver = fake.table();
  std::atomic<bool> leave = false;
  std::vector<std::shared_ptr<const Gpu>> gpus;
  std::vector<OwnedStream> streams;
  Module module = nullptr;
};

TEST(FakeDriver, KernelsReachMemoryOfAnotherDeviceOnlyWhereTheyWereGivenAccess) {
  char of_test[8];
  struct Case {
    const char* name;
    std::function<DeviceMemory(Machine&)> make;
    bool reaches;  // device 1
  };
  const Case cases[] = {
      {"its own", [](Machine& m) { return m.Make(1, Sharing::kLegacy); }, true},
      {"its own mapping", [](Machine& m) { return m.Make(1, Sharing::kNone); }, true},
      {"another's", [](Machine& m) { return m.Make(0, Sharing::kLegacy); }, false},
      {"a peer's",
       [](Machine& m) {
         EXPECT_EQ(m.LetReach(1, 0), Result::kSuccess);
         EXPECT_EQ(m.LetReach(1, 0), Result::kPeerAccessAlreadyEnabled);
         return m.Make(0, Sharing::kLegacy);
       },
       true},
      {"the other way",
       [](Machine& m) {
         EXPECT_EQ(m.LetReach(0, 1), Result::kSuccess);
         return m.Make(0, Sharing::kLegacy);
       },
       false},
      {"a mapping for its maker, of a peer",
       [](Machine& m) {
         EXPECT_EQ(m.LetReach(1, 0), Result::kSuccess);
         return m.Make(0, Sharing::kNone);
       },
       false},
      {"a mapping for both", [](Machine& m) { return m.Make(0, Sharing::kNone, m.gpus); }, true},
      {"the host's", [](Machine&) { return DeviceMemory(); }, false},
  };
  for (const Case& one : cases) {
    Machine machine;
    const DeviceMemory memory = one.make(machine);
    const DevicePointer at =
        memory.address() != 0 ? memory.address() + 8 : reinterpret_cast<DevicePointer>(of_test);
    ASSERT_EQ(machine.Launch(1, "touch", at), Result::kSuccess);
    EXPECT_EQ(machine.Wait(1), one.reaches ? Result::kSuccess : Result::kIllegalAddress) << one.name;
    EXPECT_EQ(machine.Wait(0), Result::kSuccess) << one.name;
  }
}

TEST(FakeDriver, PinnedMemoryIsReachedByAllAndFreedMemoryByNone) {
  Machine machine;
  const PinnedMemory pinned = *PinnedMemory::Create(machine.gpus[0], 64);
  EXPECT_EQ(machine.Launch(1, "touch", pinned.device() + 56), Result::kSuccess);
  EXPECT_EQ(machine.Wait(1), Result::kSuccess);
  DevicePointer freed = 0;
  {
    const DeviceMemory memory = machine.Make(1, Sharing::kLegacy);
    freed = memory.address();
    EXPECT_EQ(machine.Launch(1, "touch", freed), Result::kSuccess);
    EXPECT_EQ(machine.Wait(1), Result::kSuccess);
  }
  EXPECT_EQ(machine.Launch(1, "touch", freed), Result::kSuccess);
  EXPECT_EQ(machine.Wait(1), Result::kIllegalAddress);
}

TEST(FakeDriver, AnIllegalAccessEndsTheContext) {
  Machine machine;
  const DeviceMemory memory = machine.Make(0, Sharing::kLegacy);
  EXPECT_EQ(machine.Launch(0, "spin", memory.address()), Result::kSuccess);
  const OwnedStream other = *CreateStream(machine.gpus[0]);
  EXPECT_EQ(machine.Launch(0, "touch", 64, other.get()), Result::kSuccess);
  // The spinning kernel is over.
  EXPECT_EQ(Synchronize(other).message(),
            "cuda: device 0: cuStreamSynchronize: fake error (700, FAKE_ERROR)");
  EXPECT_EQ(machine.Launch(0, "touch", memory.address()), Result::kIllegalAddress);
  EXPECT_EQ(machine.Wait(0), Result::kIllegalAddress);
  EXPECT_EQ(machine.Wait(1), Result::kSuccess);
}

TEST(FakeDriver, FreeingMemoryAndLoadingModulesWaitForKernels) {
  FakeOptions options;
  options.wait_limit = std::chrono::milliseconds(20);
  Machine machine(options);
  const DeviceMemory kept = machine.Make(0, Sharing::kLegacy);
  const ScopedContext context(*machine.gpus[0]);
  DevicePointer memory = 0;
  ASSERT_EQ(machine.driver.MemAlloc(&memory, 8), Result::kSuccess);
  EXPECT_EQ(machine.Launch(0, "spin", kept.address()), Result::kSuccess);
  EXPECT_EQ(machine.driver.MemFree(memory), Result::kLaunchTimeout);
  Module module = nullptr;
  EXPECT_EQ(machine.driver.ModuleLoadData(&module, "fake"), Result::kLaunchTimeout);
  EXPECT_EQ(machine.fake.Leaks(),
            "2 contexts, 1 pushed context, 1 allocation, 1 module, 2 streams, 2 endless waits");
  machine.leave = true;
  ASSERT_EQ(machine.Wait(0), Result::kSuccess);
  ASSERT_EQ(machine.driver.ModuleLoadData(&module, "fake"), Result::kSuccess);
  ASSERT_EQ(machine.driver.ModuleUnload(module), Result::kSuccess);
  // The other device was not waited for.
  machine.leave = false;
  const ScopedContext of_other(*machine.gpus[1]);
  const DeviceMemory others = machine.Make(1, Sharing::kLegacy);
  EXPECT_EQ(machine.Launch(1, "spin", others.address()), Result::kSuccess);
  const ScopedContext again(*machine.gpus[0]);
  ASSERT_EQ(machine.driver.MemAlloc(&memory, 8), Result::kSuccess);
  EXPECT_EQ(machine.driver.MemFree(memory), Result::kSuccess);
  machine.leave = true;
}

TEST(FakeDriver, LaunchesWaitForRoomInTheQueue) {
  FakeOptions options;
  options.most_launches = 3;
  options.wait_limit = std::chrono::milliseconds(20);
  Machine machine(options);
  const DeviceMemory memory = machine.Make(0, Sharing::kLegacy);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(machine.Launch(0, "spin", memory.address()), Result::kSuccess);
  EXPECT_EQ(machine.Launch(0, "touch", memory.address()), Result::kLaunchTimeout);
  machine.leave = true;
  EXPECT_EQ(machine.Wait(0), Result::kSuccess);
  EXPECT_EQ(machine.Launch(0, "touch", memory.address()), Result::kSuccess);
}

TEST(FakeDriver, AStreamIsOfOneContext) {
  Machine machine;
  const DeviceMemory memory = machine.Make(0, Sharing::kLegacy);
  EXPECT_EQ(machine.Launch(0, "touch", memory.address(), machine.streams[1].get()), Result::kInvalidHandle);
  EXPECT_EQ(machine.Launch(0, "touch", memory.address(), nullptr), Result::kSuccess);
  const OwnedEvent event = *CreateEvent(machine.gpus[0]);
  const ScopedContext context(*machine.gpus[0]);
  EXPECT_EQ(machine.driver.EventRecord(event.get(), machine.streams[1].get()), Result::kInvalidHandle);
  EXPECT_EQ(machine.driver.EventRecord(event.get(), nullptr), Result::kSuccess);
  EXPECT_EQ(machine.driver.StreamSynchronize(nullptr), Result::kSuccess);
}

TEST(FakeDriver, PeersAreFew) {
  FakeOptions options;
  options.most_peers = 0;
  Machine machine(options);
  EXPECT_EQ(machine.LetReach(0, 1), Result::kTooManyPeers);
  EXPECT_EQ(machine.LetReach(0, 0), Result::kInvalidDevice);
}

}  // namespace
}  // namespace xccl::cuda
