// Operators that programs make, and memory for buffers.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/c_api/handles.h"
#include "runtime/c_api/testing/books.h"
#include "runtime/testing/cuda/fake_driver.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

using Comms = std::vector<xcclComm_t>;

Comms Loaded(int ranks, const std::string& book) {
  Comms comms(ranks);
  EXPECT_EQ(xcclCommInitAll(comms.data(), ranks, nullptr), xcclSuccess);
  for (const xcclComm_t comm : comms)
    EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) << xcclGetLastError(comm);
  return comms;
}

void DestroyAll(const Comms& comms) {
  for (const xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

template <typename T>
xcclRedOp_t Times(xcclComm_t comm, T scalar, xcclDataType_t type) {
  xcclRedOp_t op = xcclMaxRedOp;
  EXPECT_EQ(xcclRedOpCreatePreMulSum(&op, &scalar, type, xcclScalarHostImmediate, comm), xcclSuccess)
      << xcclGetLastError(comm);
  return op;
}

// Rank r's elements are r + 1 and its scalar is 10 r + 2; in place and out of place.
TEST(PreMulSum, MultipliesWhatEveryRankHas) {
  constexpr int kRanks = 3;
  const Comms comms =
      Loaded(kRanks,
             MakeBook("premulsum", kRanks,
                      {CollectiveKind::kAllreduce, CollectiveKind::kReduce, CollectiveKind::kReduceScatter}));
  for (const size_t count : {size_t{1}, size_t{5000}}) {
    std::vector<std::vector<float>> in(kRanks), all(kRanks), same(kRanks), one(kRanks), share(kRanks);
    for (int r = 0; r < kRanks; ++r) {
      const xcclRedOp_t op = Times(comms[r], static_cast<float>(10 * r + 2), xcclFloat32);
      in[r].assign(kRanks * count, static_cast<float>(r + 1));
      all[r] = one[r] = share[r] = std::vector<float>(count);
      same[r] = in[r];
      EXPECT_EQ(xcclAllReduce(in[r].data(), all[r].data(), count, xcclFloat32, op, comms[r], nullptr),
                xcclSuccess);
      EXPECT_EQ(xcclAllReduce(same[r].data(), same[r].data(), count, xcclFloat32, op, comms[r], nullptr),
                xcclSuccess);
      EXPECT_EQ(xcclReduce(in[r].data(), r == 1 ? one[r].data() : in[r].data(), count, xcclFloat32, op, 1,
                           comms[r], nullptr),
                xcclSuccess);
      EXPECT_EQ(xcclReduceScatter(in[r].data(), share[r].data(), count, xcclFloat32, op, comms[r], nullptr),
                xcclSuccess);
      // The calls have their scalar.
      EXPECT_EQ(xcclRedOpDestroy(op, comms[r]), xcclSuccess);
    }
    const std::vector<float> sum(count, 1 * 2 + 2 * 12 + 3 * 22);
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_EQ(xcclCommSynchronize(comms[r]), xcclSuccess) << xcclGetLastError(comms[r]);
      same[r].resize(count);
      EXPECT_TRUE(all[r] == sum && same[r] == sum && share[r] == sum && (r != 1 || one[r] == sum)) << r;
      EXPECT_EQ(in[r], std::vector<float>(kRanks * count, static_cast<float>(r + 1)));
    }
  }
  DestroyAll(comms);
}

TEST(PreMulSum, IsRoundedInItsOwnType) {
  const Comms comms = Loaded(2, MakeBook("premulsum_types", 2, {CollectiveKind::kAllreduce}));
  // 0x3f80 and 0x4040 are 1 and 3 in bfloat16; 0x3fc0 is 1.5.
  std::vector<uint16_t> narrow = {0x3f80, 0x4040};
  std::vector<uint8_t> wrapping = {100, 3};
  const xcclRedOp_t half_more[] = {Times<uint16_t>(comms[0], 0x3fc0, xcclBfloat16),
                                   Times<uint16_t>(comms[1], 0x3fc0, xcclBfloat16)};
  const xcclRedOp_t thrice[] = {Times<uint8_t>(comms[0], 3, xcclUint8),
                                Times<uint8_t>(comms[1], 1, xcclUint8)};
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(xcclAllReduce(&narrow[r], &narrow[r], 1, xcclBfloat16, half_more[r], comms[r], nullptr),
              xcclSuccess);
    EXPECT_EQ(xcclAllReduce(&wrapping[r], &wrapping[r], 1, xcclUint8, thrice[r], comms[r], nullptr),
              xcclSuccess);
  }
  for (const xcclComm_t comm : comms)
    EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess) << xcclGetLastError(comm);
  EXPECT_EQ(narrow, std::vector<uint16_t>(2, 0x40c0));  // 6
  EXPECT_EQ(wrapping, std::vector<uint8_t>(2, (300 + 3) % 256));
  DestroyAll(comms);
}

TEST(PreMulSum, OneRankAlone) {
  xcclComm_t comm = nullptr;
  ASSERT_EQ(xcclCommInitAll(&comm, 1, nullptr), xcclSuccess);
  const xcclRedOp_t op = Times(comm, 2.5, xcclFloat64);
  std::vector<double> in(1000, 2), out(1000);
  EXPECT_EQ(xcclAllReduce(in.data(), out.data(), 1000, xcclFloat64, op, comm, nullptr), xcclSuccess);
  EXPECT_EQ(out, std::vector<double>(1000, 5));
  EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

TEST(PreMulSum, WrongOnesAreRefused) {
  const Comms comms = Loaded(2, MakeBook("premulsum_wrong", 2, {CollectiveKind::kAllreduce}));
  const float two = 2;
  xcclRedOp_t op = xcclSum;
  const auto refused = [&](xcclResult_t seen, xcclResult_t result, const std::string& text) {
    EXPECT_EQ(seen, result) << text;
    EXPECT_EQ(xcclGetLastError(comms[0]), text);
  };
  const auto create = [&](xcclRedOp_t* to, const void* scalar, int type, int residence) {
    return xcclRedOpCreatePreMulSum(to, scalar, static_cast<xcclDataType_t>(type),
                                    static_cast<xcclScalarResidence_t>(residence), comms[0]);
  };
  refused(create(nullptr, &two, xcclFloat32, 1), xcclInvalidArgument, "the operator is null");
  refused(create(&op, nullptr, xcclFloat32, 1), xcclInvalidArgument, "the scalar is null");
  refused(create(&op, &two, 12, 1), xcclInvalidArgument, "data type 12; expected 0 to 11");
  refused(
      create(&op, &two, xcclFloat32, 0), xcclInvalidUsage,
      "scalar residence xcclScalarDevice; expected xcclScalarHostImmediate: the CPU reads it in the call");
  op = Times(comms[0], two, xcclFloat32);
  int32_t x = 1;
  refused(xcclAllReduce(&x, &x, 1, xcclInt32, op, comms[0], nullptr), xcclInvalidArgument,
          "reduction 5: its scalar is float; expected int32, as the call's data");
  EXPECT_EQ(xcclRedOpDestroy(op, comms[0]), xcclSuccess);
  const std::string gone = "reduction 5; expected one made by xcclRedOpCreatePreMulSum";
  refused(xcclRedOpDestroy(op, comms[0]), xcclInvalidArgument, gone);
  refused(xcclRedOpDestroy(xcclSum, comms[0]), xcclInvalidArgument,
          "reduction 0; expected one made by xcclRedOpCreatePreMulSum");
  refused(xcclAllReduce(&x, &x, 1, xcclInt32, op, comms[0], nullptr), xcclInvalidArgument,
          "reduction 5; expected 0 to 4, or one made by xcclRedOpCreatePreMulSum");
  EXPECT_EQ(Times(comms[0], two, xcclFloat32), static_cast<xcclRedOp_t>(6));  // numbers are not used again
  DestroyAll(comms);
  xcclComm_t on_gpu = nullptr;
  const int device = 3;
  ASSERT_EQ(xcclCommInitAll(&on_gpu, 1, &device), xcclSuccess);
  EXPECT_EQ(xcclRedOpCreatePreMulSum(&op, &two, xcclFloat32, xcclScalarHostImmediate, on_gpu),
            xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(on_gpu),
               "rank 0: is on GPU 3; expected the CPU: no kernel multiplies by a scalar");
  EXPECT_EQ(xcclCommDestroy(on_gpu), xcclSuccess);
}

TEST(Memory, OfTheHost) {
  void* memory = nullptr;
  ASSERT_EQ(xcclMemAlloc(&memory, 100'000), xcclSuccess);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
  std::memset(memory, 1, 100'000);
  EXPECT_EQ(xcclMemFree(memory), xcclSuccess);
  EXPECT_EQ(xcclMemFree(memory), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "no memory of xcclMemAlloc, or it was freed before");
  memory = &memory;
  EXPECT_EQ(xcclMemAlloc(&memory, 0), xcclSuccess);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(xcclMemFree(nullptr), xcclSuccess);
  EXPECT_EQ(xcclMemAlloc(nullptr, 8), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "ptr is null");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(xcclMemAlloc(&memory, size_t{1} << 62), xcclSystemError);
  EXPECT_STREQ(xcclGetLastError(nullptr), "4611686018427387904 bytes: out of memory");
#endif
}

TEST(Memory, OfTheCurrentDeviceWhereARankIsOnAGpu) {
  cuda::FakeDriver fake;
  c_api::TheGpus().driver = [&fake]() -> StatusOr<const cuda::Driver*> { return &fake.table(); };
  xcclComm_t comm = nullptr;
  ASSERT_EQ(xcclCommInitAll(&comm, 1, nullptr), xcclSuccess);
  ASSERT_EQ(xcclCommUseCuda(comm, 0), xcclSuccess);
  void* memory = nullptr;
  // No device is current.
  EXPECT_EQ(xcclMemAlloc(&memory, 100), xcclSystemError);
  EXPECT_STREQ(
      xcclGetLastError(nullptr),
      "cuMemAlloc of 100 bytes: CUDA error 201; expected room, and a current device as cudaSetDevice "
      "sets it");
  cuda::Context context = nullptr;
  ASSERT_EQ(fake.table().DevicePrimaryCtxRetain(&context, 0), cuda::Result::kSuccess);
  ASSERT_EQ(fake.table().CtxPushCurrent(context), cuda::Result::kSuccess);
  EXPECT_EQ(xcclMemAlloc(&memory, 100), xcclSuccess) << xcclGetLastError(nullptr);
  EXPECT_NE(fake.Leaks(), "");
  EXPECT_EQ(xcclMemFree(memory), xcclSuccess) << xcclGetLastError(nullptr);
  ASSERT_EQ(fake.table().CtxPopCurrent(&context), cuda::Result::kSuccess);
  ASSERT_EQ(fake.table().DevicePrimaryCtxRelease(0), cuda::Result::kSuccess);
  EXPECT_EQ(fake.Leaks(), "");
  EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  c_api::TheGpus() = c_api::Gpus();
}

}  // namespace
}  // namespace xccl
