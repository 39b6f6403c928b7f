#include "runtime/cuda/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/constants.h"
#include "runtime/testing/cuda/fake_driver.h"

namespace xccl::cuda {
namespace {

std::shared_ptr<const Gpu> OpenGpu(const FakeDriver& fake, int32_t ordinal = 0) {
  const auto gpu = Gpu::Open(fake.table(), ordinal);
  EXPECT_TRUE(gpu.ok()) << gpu.status().message();
  return *gpu;
}

TEST(Gpu, SaysWhatItCan) {
  FakeOptions machine;
  machine.devices = 2;
  machine.capability = 103;
  machine.multicast = true;
  FakeDriver fake(machine);
  const auto gpu = OpenGpu(fake, 1);
  EXPECT_EQ(gpu->properties().name, "Fake GPU 1");
  EXPECT_EQ(gpu->properties().arch, 103);
  EXPECT_EQ(gpu->properties().multiprocessors, 132);
  EXPECT_TRUE(gpu->properties().multicast && gpu->properties().file_descriptors);
  EXPECT_EQ(Gpu::Open(fake.table(), 2).status().message(), "cuda: device 2; expected 0 to 1");
  fake.FailCall(fake.calls() + 1, Result::kNoDevice);
  EXPECT_EQ(Gpu::Open(fake.table(), 0).status().message(),
            "cuda: cuDeviceGet of 0: fake error (100, FAKE_ERROR)");
}

TEST(DeviceMemory, IsZeroRoundedAndWritable) {
  FakeDriver fake;
  for (const Sharing sharing : {Sharing::kNone, Sharing::kFileDescriptor, Sharing::kLegacy}) {
    const auto gpu = OpenGpu(fake);
    const auto memory = DeviceMemory::Create(gpu, 100, sharing, {}, "test");
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    EXPECT_EQ(memory->bytes(), sharing == Sharing::kLegacy ? 100 : size_t{1} << 16);
    auto* bytes = reinterpret_cast<unsigned char*>(memory->address());
    for (size_t i = 0; i < memory->bytes(); ++i) ASSERT_EQ(bytes[i], 0);
    bytes[memory->bytes() - 1] = 1;
  }
  EXPECT_EQ(fake.Leaks(), "");
  EXPECT_EQ(fake.memory_in_use(), 0U);
}

TEST(DeviceMemory, SaysWhatIsNeeded) {
  FakeOptions machine;
  machine.memory_bytes = 1 << 20;
  FakeDriver fake(machine);
  const auto gpu = OpenGpu(fake);
  const auto first = DeviceMemory::Create(gpu, 1 << 19, Sharing::kNone, {}, "a");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(DeviceMemory::Create(gpu, 600000, Sharing::kNone, {}, "ring: rank 3").status().message(),
            "cuda: device 0: ring: rank 3: needs 600000 bytes of device memory; 524288 of 1048576 are free");
}

TEST(DeviceMemory, TheBestSharingThatTheDeviceHas) {
  GpuProperties p;
  EXPECT_EQ(BestSharing(p), Sharing::kLegacy);
  p.virtual_memory = true;
  EXPECT_EQ(BestSharing(p), Sharing::kLegacy);
  p.file_descriptors = true;
  EXPECT_EQ(BestSharing(p), Sharing::kFileDescriptor);
}

// The driver refuses to open one's own legacy handle.
TEST(DeviceMemory, AParcelOfTheSameProcessIsUsedWhereItIs) {
  FakeOptions machine;
  machine.virtual_memory = false;
  FakeDriver fake(machine);
  const auto gpu = OpenGpu(fake);
  const auto memory = DeviceMemory::Create(gpu, 4096, Sharing::kLegacy, {}, "test");
  ASSERT_TRUE(memory.ok());
  const auto parcel = memory->Export();
  ASSERT_TRUE(parcel.ok()) << parcel.status().message();
  {
    const auto alias = DeviceMemory::Import(gpu, *parcel);
    ASSERT_TRUE(alias.ok()) << alias.status().message();
    EXPECT_EQ(alias->address(), memory->address());
  }
  *reinterpret_cast<char*>(memory->address()) = 1;  // still there
}

// Another device reaches it, and its maker may go first.
TEST(DeviceMemory, AParcelOfVirtualMemoryIsMappedForAnotherDeviceOfTheProcess) {
  FakeOptions machine;
  machine.devices = 2;
  FakeDriver fake(machine);
  const auto gpu = OpenGpu(fake);
  auto memory = DeviceMemory::Create(gpu, 4096, Sharing::kFileDescriptor, {}, "test");
  ASSERT_TRUE(memory.ok());
  const auto parcel = memory->Export();
  ASSERT_TRUE(parcel.ok()) << parcel.status().message();
  *PointerTo<char>(memory->address()) = 5;
  {
    const auto alias = DeviceMemory::Import(*Gpu::Open(fake.table(), 1), *parcel);
    ASSERT_TRUE(alias.ok()) << alias.status().message();
    EXPECT_TRUE(FakeDriver::Allows(1, PointerTo<char>(alias->address()), 4096));
    *memory = DeviceMemory();
    EXPECT_EQ(*PointerTo<char>(alias->address()), 5);
  }
}

TEST(DeviceMemory, RefusesAnotherVersionsParcel) {
  FakeDriver fake;
  EXPECT_EQ(DeviceMemory::Import(OpenGpu(fake), Parcel{"abc", {}}).status().message(),
            "cuda: a peer described its memory in 3 bytes; expected 96: is it another version?");
}

TEST(MulticastMemory, AllJoinBeforeAnyBinds) {
  FakeOptions machine;
  machine.devices = 2;
  machine.multicast = true;
  FakeDriver fake(machine);
  constexpr size_t kBytes = 131072, kOffset = 262144;
  {
    const std::vector<std::shared_ptr<const Gpu>> gpus = {OpenGpu(fake, 0), OpenGpu(fake, 1)};
    std::vector<DeviceMemory> parts;
    for (const auto& gpu : gpus) {
      auto memory = DeviceMemory::Create(gpu, kOffset + kBytes, Sharing::kFileDescriptor, {}, "part");
      ASSERT_TRUE(memory.ok());
      parts.push_back(*std::move(memory));
    }
    auto group = MulticastMemory::Create(gpus[0], 2, kBytes, Sharing::kFileDescriptor);
    ASSERT_TRUE(group.ok()) << group.status().message();
    const auto parcel = group->Export();
    ASSERT_TRUE(parcel.ok());
    auto other = MulticastMemory::Import(gpus[1], *parcel);
    ASSERT_TRUE(other.ok()) << other.status().message();
    EXPECT_EQ(group->Join(*gpus[0]), OkStatus());
    EXPECT_EQ(group->Bind(gpus[0], parts[0], kOffset).message(),
              "cuda: device 0: cuMulticastBindMem of 131072 bytes: fake error (600, FAKE_ERROR)");
    EXPECT_EQ(other->Join(*gpus[1]), OkStatus());
    EXPECT_EQ(group->Bind(gpus[0], parts[0], kOffset), OkStatus());
    EXPECT_EQ(other->Bind(gpus[1], parts[1], kOffset), OkStatus());
    EXPECT_EQ(group->Map({gpus.data(), 1}), OkStatus());
    ASSERT_NE(group->address(), 0U);
    // Data stored there would be in both.
    const std::vector<char*> copies = FakeDriver::CopiesAt(group->address() + 5);
    ASSERT_EQ(copies.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      *copies[i] = 'x';
      EXPECT_EQ(*reinterpret_cast<const char*>(parts[i].address() + kOffset + 5), 'x');
    }
    EXPECT_TRUE(FakeDriver::CopiesAt(parts[0].address()).empty());
  }
  EXPECT_EQ(fake.Leaks(), "");
}

TEST(MulticastMemory, RefusesWhatTheDriverWould) {
  FakeOptions machine;
  machine.devices = 2;
  machine.multicast = true;
  FakeDriver fake(machine);
  const auto gpu = OpenGpu(fake);
  EXPECT_EQ(MulticastMemory::Create(gpu, 1, 131072, Sharing::kNone).status().message(),
            "cuda: a multicast group of 1 device; expected 2 or more");
  EXPECT_EQ(MulticastMemory::Create(gpu, 2, 100000, Sharing::kNone).status().message(),
            "cuda: device 0: a multicast group of 100000 bytes; expected a multiple of 131072");
  EXPECT_EQ(MulticastMemory::Create(gpu, 2, 131072, Sharing::kLegacy).status().message(),
            "cuda: legacy IPC memory in a multicast group");
  auto group = MulticastMemory::Create(gpu, 2, 131072, Sharing::kNone);
  ASSERT_TRUE(group.ok());
  const auto legacy = DeviceMemory::Create(gpu, 131072, Sharing::kLegacy, {}, "part");
  ASSERT_TRUE(legacy.ok());
  EXPECT_EQ(group->Bind(gpu, *legacy, 0).message(),
            "cuda: 131072 bytes of legacy IPC bound from 0 on to a multicast group of 131072 bytes");
  EXPECT_EQ(group->Join(*gpu), OkStatus());
  EXPECT_EQ(group->Join(*gpu).message(), "cuda: device 0: cuMulticastAddDevice: fake error (1, FAKE_ERROR)");
}

TEST(ConstantTables, KeepEachContentOnce) {
  FakeDriver fake;
  {
    ConstantTables tables(OpenGpu(fake));
    const auto a = tables.Put("first"), b = tables.Put("second"), again = tables.Put("first");
    ASSERT_TRUE(a.ok() && b.ok() && again.ok());
    EXPECT_EQ(*a, *again);
    EXPECT_NE(*a, *b);
    EXPECT_EQ(*b % 128, 0U);
    EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(*b), "second", 6), 0);
    EXPECT_EQ(tables.Put(std::string(65 << 20, 'x')).status().message(),
              "cuda: tables of 68157696 bytes for calls of different sizes; the limit is 67108864 bytes");
  }
  EXPECT_EQ(fake.Leaks(), "");
}

}  // namespace
}  // namespace xccl::cuda
