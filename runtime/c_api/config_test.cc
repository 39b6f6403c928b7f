// Communicators made with a configuration.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/c_api/testing/books.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

struct Made {
  xcclResult_t result;
  xcclComm_t comm;
  std::string text;
};

Made Make(const xcclConfig_t& config) {
  xcclUniqueId id;
  EXPECT_EQ(xcclGetUniqueId(&id), xcclSuccess);
  int somewhere = 0;
  auto* comm = reinterpret_cast<xcclComm_t>(&somewhere);
  const xcclResult_t result = xcclCommInitRankConfig(&comm, 1, id, 0, &config);
  return {result, comm, result == xcclSuccess ? "" : xcclGetLastError(nullptr)};
}

TEST(Config, RanksRunWithOneAndWithout) {
  constexpr int kRanks = 3;
  const std::string book = MakeBook("config", kRanks, {CollectiveKind::kAllreduce});
  xcclUniqueId id;
  ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess);
  std::vector<std::thread> ranks;
  for (int r = 0; r < kRanks; ++r)
    ranks.emplace_back([&, r] {
      xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
      config.blocking = 1;
      config.timeLimit = 60;
      xcclComm_t comm = nullptr;
      ASSERT_EQ(xcclCommInitRankConfig(&comm, kRanks, id, r, r == 1 ? nullptr : &config), xcclSuccess);
      ASSERT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) << xcclGetLastError(comm);
      std::vector<int32_t> data(5, r + 1);
      EXPECT_EQ(xcclAllReduce(data.data(), data.data(), 5, xcclInt32, xcclSum, comm, nullptr), xcclSuccess);
      EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess) << xcclGetLastError(comm);
      EXPECT_EQ(data, std::vector<int32_t>(5, 6));
      EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
    });
  for (std::thread& rank : ranks) rank.join();
}

TEST(Config, ItsTimeLimitAndDeviceHold) {
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  config.device = 3;
  const Made on_gpu = Make(config);
  ASSERT_EQ(on_gpu.result, xcclSuccess) << on_gpu.text;
  int device = 0;
  EXPECT_EQ(xcclCommCuDevice(on_gpu.comm, &device), xcclSuccess);
  EXPECT_EQ(device, 3);
  EXPECT_EQ(xcclCommDestroy(on_gpu.comm), xcclSuccess);

  // The other rank never comes.
  const std::string book = MakeBook("config_limit", 2, {CollectiveKind::kAllreduce});
  config = XCCL_CONFIG_INITIALIZER;
  config.timeLimit = 0.05;
  xcclUniqueId id;
  ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess);
  xcclComm_t comm = nullptr;
  ASSERT_EQ(xcclCommInitRankConfig(&comm, 2, id, 0, &config), xcclSuccess);
  EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclRemoteError) << xcclGetLastError(comm);
  EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

TEST(Config, WrongOnesAreRefusedAndLeaveNothing) {
  const xcclConfig_t good = XCCL_CONFIG_INITIALIZER;
  struct Case {
    xcclConfig_t config;
    xcclResult_t result;
    std::string text;
  };
  std::vector<Case> cases;
  const auto add = [&](auto change, xcclResult_t result, std::string text) {
    xcclConfig_t config = good;
    change(config);
    cases.push_back({config, result, std::move(text)});
  };
  add([](xcclConfig_t& c) { c.magic = 0; }, xcclInvalidArgument,
      "config: magic 0x0; expected 0x7863636c; hint: initialize it with XCCL_CONFIG_INITIALIZER");
  for (const size_t size : {0, 8, 16, 36, 44, 4097})
    add([=](xcclConfig_t& c) { c.size = size; }, xcclInvalidArgument,
        "config: " + std::to_string(size) +
            " bytes; expected 32, 40, 48, or more of a newer xccl.h; hint: initialize it with "
            "XCCL_CONFIG_INITIALIZER");
  add([](xcclConfig_t& c) { c.blocking = 2; }, xcclInvalidArgument, "config: blocking 2; expected 0 or 1");
  add([](xcclConfig_t& c) { c.device = -1; }, xcclInvalidArgument, "GPU -1; expected 0 or more");
  add([](xcclConfig_t& c) { c.maxCTAs = -4; }, xcclInvalidArgument,
      "-4 CTAs and 0 bytes; expected 0 or more of either");
  add([](xcclConfig_t& c) { c.timeLimit = -1; }, xcclInvalidArgument, "time limit -1 s; expected 0 or more");
  for (const Case& each : cases) {
    const Made made = Make(each.config);
    EXPECT_EQ(made.result, each.result) << each.text;
    EXPECT_EQ(made.text, each.text);
    EXPECT_EQ(made.comm, nullptr) << each.text;
  }
  xcclUniqueId id;
  ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess);
  EXPECT_EQ(xcclCommInitRankConfig(nullptr, 1, id, 0, &good), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr), "the communicator is null");
  for (const xcclConfig_t* config : {&good, static_cast<const xcclConfig_t*>(nullptr)}) {
    int somewhere = 0;
    auto* comm = reinterpret_cast<xcclComm_t>(&somewhere);
    EXPECT_EQ(xcclCommInitRankConfig(&comm, 1, id, 1, config), xcclInvalidArgument);
    EXPECT_STREQ(xcclGetLastError(nullptr), "rank 1; expected 0 to 0");
    EXPECT_EQ(comm, nullptr);
  }
}

// Behind the fields of an older header lies something else of the program.
TEST(Config, FieldsThatAnOlderHeaderLacksAreAtTheirDefaults) {
  for (const size_t size : {32, 40}) {
    xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
    config.device = 2;
    config.memoryBytes = size == 32 ? SIZE_MAX : 1 << 20;
    config.timeLimit = -1;
    config.size = size;
    const Made made = Make(config);
    ASSERT_EQ(made.result, xcclSuccess) << made.text;
    int device = 0;
    EXPECT_EQ(xcclCommCuDevice(made.comm, &device), xcclSuccess);
    EXPECT_EQ(device, 2);
    EXPECT_EQ(xcclCommDestroy(made.comm), xcclSuccess);
  }
}

TEST(Config, FieldsOfANewerHeaderAreReadWhereTheyAreUnset) {
  struct Newer {
    xcclConfig_t known = XCCL_CONFIG_INITIALIZER;
    int first = 0, second = XCCL_CONFIG_UNDEF_INT;
    const char* third = nullptr;
    char fourth = 0;
  } config;
  config.known.size = offsetof(Newer, fourth) + 1;
  config.known.version = 10203;
  config.known.device = 2;
  const Made made = Make(config.known);
  ASSERT_EQ(made.result, xcclSuccess) << made.text;
  EXPECT_EQ(xcclCommDestroy(made.comm), xcclSuccess);
  const auto refusal = [&](size_t at) {
    const Made refused = Make(config.known);
    EXPECT_EQ(refused.result, xcclInvalidArgument);
    EXPECT_EQ(refused.text, "config: the field at byte " + std::to_string(at) +
                                ", of xccl.h 10203, is set; expected only those of version " +
                                std::to_string(XCCL_VERSION_CODE) +
                                "; hint: leave it as XCCL_CONFIG_INITIALIZER does, or install the newer "
                                "library");
  };
  config.fourth = 1;
  refusal(offsetof(Newer, fourth));
  config.second = 0;
  config.first = 7;
  refusal(offsetof(Newer, first));
}

// Two ranks of one thread, outside of a group: neither could wait for the other.
TEST(Config, WithoutBlockingLoadsGoOnByThemselves) {
  const std::string book = MakeBook("non_blocking", 2, {CollectiveKind::kAllreduce});
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  xcclUniqueId id;
  ASSERT_EQ(xcclGetUniqueId(&id), xcclSuccess);
  std::vector<xcclComm_t> comms(2), made(2);
  const auto await = [](xcclComm_t comm) {
    xcclResult_t error = xcclInProgress;
    while (error == xcclInProgress) {
      EXPECT_EQ(xcclCommGetAsyncError(comm, &error), xcclSuccess);
      std::this_thread::yield();
    }
    return error;
  };
  for (int r = 0; r < 2; ++r) ASSERT_EQ(xcclCommInitRankConfig(&comms[r], 2, id, r, &config), xcclSuccess);
  EXPECT_EQ(xcclCommLoadPlanBook(comms[0], book.c_str()), xcclInProgress);
  xcclResult_t error = xcclSuccess;
  EXPECT_EQ(xcclCommGetAsyncError(comms[0], &error), xcclSuccess);
  EXPECT_EQ(error, xcclInProgress);
  EXPECT_EQ(xcclCommLoadPlanBook(comms[0], book.c_str()), xcclInvalidUsage);
  EXPECT_STREQ(
      xcclGetLastError(comms[0]),
      "a call is in progress; expected this one when xcclCommGetAsyncError says no longer xcclInProgress");
  EXPECT_EQ(xcclCommLoadPlanBook(comms[1], "/nowhere"), xcclInProgress);
  const std::string missing = "/nowhere/index.json: cannot read: No such file or directory";
  EXPECT_EQ(await(comms[0]), xcclInvalidUsage);
  EXPECT_EQ(xcclGetLastError(comms[0]), "rank 1: " + missing);
  EXPECT_EQ(await(comms[1]), xcclInvalidUsage);
  EXPECT_EQ(xcclGetLastError(comms[1]), missing);
  for (const xcclComm_t comm : comms) EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclInProgress);
  for (const xcclComm_t comm : comms)
    EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess) << xcclGetLastError(comm);
  // Children do not block either.
  for (int r = 0; r < 2; ++r) EXPECT_EQ(xcclCommSplit(comms[r], 0, -r, &made[r], nullptr), xcclInProgress);
  for (const xcclComm_t comm : comms) EXPECT_EQ(await(comm), xcclSuccess);
  for (const xcclComm_t comm : made) EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclInProgress);
  for (const xcclComm_t comm : made) EXPECT_EQ(await(comm), xcclSuccess) << xcclGetLastError(comm);
  std::vector<int32_t> data = {1, 2};
  for (int r = 0; r < 2; ++r)
    EXPECT_EQ(xcclAllReduce(&data[r], &data[r], 1, xcclInt32, xcclSum, made[r], nullptr), xcclSuccess);
  for (const xcclComm_t comm : made) EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess);
  EXPECT_EQ(data, (std::vector<int32_t>{3, 3}));
  for (const xcclComm_t comm : made) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  // An abort ends what goes on.
  EXPECT_EQ(xcclCommConnect(comms[0]), xcclInProgress);
  EXPECT_EQ(xcclCommAbort(comms[0]), xcclSuccess);
  EXPECT_EQ(xcclCommDestroy(comms[1]), xcclSuccess);
}

TEST(Config, ARefusedOneEndsItsGroup) {
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  config.blocking = 7;
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(Make(config).result, xcclInvalidArgument);
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidArgument);
}

}  // namespace
}  // namespace xccl
