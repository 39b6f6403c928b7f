// Communicators made from communicators of threads: one thread drives them all.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "runtime/c_api/testing/books.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

std::vector<xcclComm_t> Ranks(int ranks) {
  std::vector<xcclComm_t> comms(ranks);
  EXPECT_EQ(xcclCommInitAll(comms.data(), ranks, nullptr), xcclSuccess);
  return comms;
}

void DestroyAll(const std::vector<xcclComm_t>& comms) {
  for (const xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

// By rank of the parent; null: none.
std::vector<xcclComm_t> Split(const std::vector<xcclComm_t>& comms, const std::vector<int>& colors,
                              const std::vector<int>& keys) {
  std::vector<xcclComm_t> made(comms.size(), comms[0]);
  EXPECT_EQ(xcclGroupStart(), xcclSuccess);
  for (size_t r = 0; r < comms.size(); ++r)
    EXPECT_EQ(xcclCommSplit(comms[r], colors[r], keys[r], &made[r], nullptr), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  return made;
}

int RankOf(xcclComm_t comm) {
  int rank = -1;
  EXPECT_EQ(xcclCommUserRank(comm, &rank), xcclSuccess);
  return rank;
}

// Every rank gives 1 + its rank in the parent.
void ExpectSums(const std::vector<xcclComm_t>& comms, const std::string& book,
                const std::vector<int32_t>& sums) {
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (const xcclComm_t comm : comms)
    if (comm != nullptr) xcclCommLoadPlanBook(comm, book.c_str());
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  std::vector<int32_t> data;
  for (size_t r = 0; r < comms.size(); ++r) data.push_back(static_cast<int32_t>(r) + 1);
  for (size_t r = 0; r < comms.size(); ++r) {
    if (comms[r] == nullptr) continue;
    EXPECT_EQ(xcclAllReduce(&data[r], &data[r], 1, xcclInt32, xcclSum, comms[r], nullptr), xcclSuccess)
        << xcclGetLastError(comms[r]);
  }
  for (size_t r = 0; r < comms.size(); ++r) {
    if (comms[r] == nullptr) continue;
    EXPECT_EQ(xcclCommSynchronize(comms[r]), xcclSuccess) << xcclGetLastError(comms[r]);
    EXPECT_EQ(data[r], sums[r]) << r;
  }
}

TEST(Split, ColorsKeysAndNone) {
  const std::vector<xcclComm_t> comms = Ranks(5);
  const std::vector<xcclComm_t> made = Split(comms, {7, 3, XCCL_SPLIT_NOCOLOR, 7, 3}, {5, 0, 0, -2, 0});
  ASSERT_EQ(made[2], nullptr);
  const std::vector<int> ranks = {1, 0, -1, 0, 1};
  for (const int r : {0, 1, 3, 4}) {
    EXPECT_EQ(RankOf(made[r]), ranks[r]);
    int count = 0;
    EXPECT_EQ(xcclCommCount(made[r], &count), xcclSuccess);
    EXPECT_EQ(count, 2);
  }
  const std::string book = MakeBook("split", 2, {CollectiveKind::kAllreduce});
  ExpectSums(made, book, {5, 7, 0, 5, 7});
  // The children outlive their parent, and split again.
  DestroyAll(comms);
  ExpectSums(made, book, {5, 7, 0, 5, 7});
  const std::vector<xcclComm_t> again = Split({made[1], made[4]}, {0, 0}, {1, 0});
  EXPECT_EQ(RankOf(again[0]), 1);
  EXPECT_EQ(RankOf(again[1]), 0);
  DestroyAll(again);
  DestroyAll(made);
}

TEST(Split, ChildrenHaveTheirParentsSettings) {
  std::vector<xcclComm_t> comms = Ranks(2);
  EXPECT_EQ(xcclCommUseCuda(comms[0], 3), xcclSuccess);
  EXPECT_EQ(xcclCommUseCuda(comms[1], 5), xcclSuccess);
  std::vector<xcclComm_t> made(2);
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  config.device = 1;
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(xcclCommSplit(comms[0], 0, 0, &made[0], nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommSplit(comms[1], 0, 0, &made[1], &config), xcclSuccess);
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess);
  int device = 0;
  EXPECT_EQ(xcclCommCuDevice(made[0], &device), xcclSuccess);
  EXPECT_EQ(device, 3);
  EXPECT_EQ(xcclCommCuDevice(made[1], &device), xcclSuccess);
  EXPECT_EQ(device, 1);
  DestroyAll(made);
  DestroyAll(comms);
}

TEST(Split, WrongCallsAreRefusedAtOnce) {
  const std::vector<xcclComm_t> comms = Ranks(3);
  xcclComm_t made = comms[0];
  const auto refused = [&](xcclResult_t result, const std::string& text) {
    EXPECT_EQ(result, xcclInvalidArgument) << text;
    EXPECT_EQ(xcclGetLastError(comms[1]), text);
    EXPECT_EQ(made, nullptr);
    made = comms[0];
  };
  refused(xcclCommSplit(comms[1], -2, 0, &made, nullptr),
          "split: color -2; expected 0 or more, or XCCL_SPLIT_NOCOLOR");
  EXPECT_EQ(xcclCommSplit(comms[1], 0, 0, nullptr, nullptr), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(comms[1]), "the new communicator is null");
  xcclConfig_t config = XCCL_CONFIG_INITIALIZER;
  config.blocking = 2;
  refused(xcclCommSplit(comms[1], 0, 0, &made, &config), "config: blocking 2; expected 0 or 1");
  const auto shrink = [&](const std::vector<int>& list, int flags) {
    return xcclCommShrink(comms[1], list.data(), static_cast<int>(list.size()), &made, nullptr, flags);
  };
  refused(shrink({}, 0), "shrink: 0 excluded ranks; expected 1 to 2");
  refused(shrink({0, 1, 2}, 0), "shrink: 3 excluded ranks; expected 1 to 2");
  refused(shrink({3}, 0), "shrink: excluded rank 3; expected 0 to 2");
  refused(shrink({1}, 0), "shrink: rank 1 excludes itself; expected the other ranks to call");
  refused(shrink({2, 2}, 0), "shrink: rank 2 is excluded twice");
  refused(shrink({2}, 8), "shrink: flags 8; expected XCCL_SHRINK_DEFAULT or XCCL_SHRINK_ABORT");
  refused(xcclCommShrink(comms[1], nullptr, 1, &made, nullptr, 0),
          "shrink: the list of excluded ranks is null");
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(xcclCommSplit(comms[0], 0, 0, &made, nullptr), xcclSuccess);
  EXPECT_EQ(shrink({1}, 0), xcclInvalidArgument);
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidArgument);
  DestroyAll(comms);
}

TEST(Split, WaitsNoLongerThanItsLimitOrAnAbort) {
  const std::vector<xcclComm_t> comms = Ranks(3);
  xcclComm_t made = comms[0];
  EXPECT_EQ(xcclCommSetTimeLimit(comms[0], 0.01), xcclSuccess);
  EXPECT_EQ(xcclCommSplit(comms[0], 0, 0, &made, nullptr), xcclRemoteError);
  EXPECT_STREQ(xcclGetLastError(comms[0]), "rank 0: split: expected 3 ranks, saw 1; nothing moved for 10 ms");
  EXPECT_EQ(made, nullptr);
  std::thread waiter([&] {
    xcclComm_t none = nullptr;
    EXPECT_EQ(xcclCommSplit(comms[1], 0, 0, &none, nullptr), xcclRemoteError);
    EXPECT_STREQ(xcclGetLastError(nullptr), "rank 2: aborted");
  });
  EXPECT_EQ(xcclCommAbort(comms[2]), xcclSuccess);
  waiter.join();
  DestroyAll({comms[0], comms[1]});
}

TEST(Shrink, TheOthersGoOnWithoutARankAndAfterAnAbort) {
  const std::vector<xcclComm_t> comms = Ranks(4);
  const std::string pairs = MakeBook("shrink2", 2, {CollectiveKind::kAllreduce});
  const auto shrink = [&](const std::vector<int>& stay, const std::vector<int>& excluded, int flags) {
    std::vector<xcclComm_t> made(comms.size());
    EXPECT_EQ(xcclGroupStart(), xcclSuccess);
    for (const int r : stay)
      EXPECT_EQ(xcclCommShrink(comms[r], excluded.data(), static_cast<int>(excluded.size()), &made[r],
                               nullptr, flags),
                xcclSuccess);
    EXPECT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
    return made;
  };
  for (int time = 0; time < 2; ++time) {
    const std::vector<xcclComm_t> made = shrink({1, 3}, {2, 0}, XCCL_SHRINK_DEFAULT);
    EXPECT_EQ(RankOf(made[1]), 0);
    EXPECT_EQ(RankOf(made[3]), 1);
    ExpectSums(made, pairs, {0, 6, 0, 6});
    DestroyAll({made[1], made[3]});
  }
  const std::string all = MakeBook("shrink4", 4, {CollectiveKind::kAllreduce});
  for (const xcclComm_t comm : comms) ASSERT_EQ(xcclCommLoadPlanBook(comm, all.c_str()), xcclSuccess);
  int32_t x = 0;
  EXPECT_EQ(xcclAllReduce(&x, &x, 1, xcclInt32, xcclSum, comms[0], nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommAbort(comms[2]), xcclSuccess);
  EXPECT_EQ(xcclCommSynchronize(comms[0]), xcclRemoteError);
  xcclComm_t none = comms[0];
  const int gone[] = {2, 3};
  EXPECT_EQ(xcclCommShrink(comms[0], gone, 2, &none, nullptr, XCCL_SHRINK_DEFAULT), xcclRemoteError);
  EXPECT_EQ(none, nullptr);
  const std::vector<xcclComm_t> made = shrink({0, 1}, {2, 3}, XCCL_SHRINK_ABORT);
  ExpectSums(made, pairs, {3, 3, 0, 0});
  DestroyAll({made[0], made[1]});
  DestroyAll({comms[0], comms[1], comms[3]});
}

}  // namespace
}  // namespace xccl
