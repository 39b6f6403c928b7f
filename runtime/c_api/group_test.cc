// Groups: one thread drives several ranks.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/testing/no_threads.h"
#include "runtime/c_api/testing/books.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

constexpr int kRanks = 3;

// Ranks that meet as processes do, all on this thread.
class Group : public testing::Test {
 protected:
  Group() : comms_(kRanks) {
    book_ = MakeBook("group", kRanks, {CollectiveKind::kAllreduce, CollectiveKind::kBroadcast});
    xcclUniqueId id;
    EXPECT_EQ(xcclGetUniqueId(&id), xcclSuccess);
    EXPECT_EQ(xcclGroupStart(), xcclSuccess);
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(xcclCommInitRank(&comms_[r], kRanks, id, r), xcclSuccess);
    EXPECT_EQ(xcclGroupEnd(), xcclSuccess);
  }
  ~Group() override {
    for (const xcclComm_t comm : comms_) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
  }

  xcclResult_t LoadAll() {
    EXPECT_EQ(xcclGroupStart(), xcclSuccess);
    for (const xcclComm_t comm : comms_) EXPECT_EQ(xcclCommLoadPlanBook(comm, book_.c_str()), xcclSuccess);
    return xcclGroupEnd();
  }

  std::string book_;
  std::vector<xcclComm_t> comms_;
};

TEST_F(Group, OneThreadDrivesAllRanks) {
  ASSERT_EQ(LoadAll(), xcclSuccess) << xcclGetLastError(nullptr);
  std::vector<std::vector<int32_t>> data(kRanks), copy(kRanks, std::vector<int32_t>(4, 7));
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    data[r].assign(4, r + 1);
    // A group within the group ends with it.
    ASSERT_EQ(xcclGroupStart(), xcclSuccess);
    EXPECT_EQ(xcclAllReduce(data[r].data(), data[r].data(), 4, xcclInt32, xcclSum, comms_[r], nullptr),
              xcclSuccess);
    if (r == 1) copy[r].assign(4, 5);
    EXPECT_EQ(xcclBcast(copy[r].data(), 4, xcclInt32, 1, comms_[r], nullptr), xcclSuccess);
    ASSERT_EQ(xcclGroupEnd(), xcclSuccess);
  }
  EXPECT_EQ(data[0], std::vector<int32_t>(4, 1));  // nothing runs before the end
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  for (int r = 0; r < kRanks; ++r) {
    ASSERT_EQ(xcclCommSynchronize(comms_[r]), xcclSuccess) << xcclGetLastError(comms_[r]);
    EXPECT_EQ(data[r], std::vector<int32_t>(4, 6));
    EXPECT_EQ(copy[r], std::vector<int32_t>(4, 5));
  }
  int device = 0;
  EXPECT_EQ(xcclCommCuDevice(comms_[0], &device), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(nullptr), "the communicator is on the CPU; it has no GPU");
}

TEST_F(Group, ARefusedCallEndsTheGroupBeforeAnythingRuns) {
  ASSERT_EQ(LoadAll(), xcclSuccess) << xcclGetLastError(nullptr);
  std::vector<int32_t> data(4, 1);
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (const xcclComm_t comm : comms_)
    EXPECT_EQ(xcclAllReduce(data.data(), data.data(), 4, xcclInt32, xcclSum, comm, nullptr), xcclSuccess);
  EXPECT_EQ(xcclCommLoadPlanBook(comms_[0], nullptr), xcclInvalidArgument);
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr),
               "the directory is null, and XCCL_BOOK is not set; hint: xccl-synth exec");
  for (const xcclComm_t comm : comms_) EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess);
  EXPECT_EQ(data, std::vector<int32_t>(4, 1));
  // The next group is a new one.
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclSuccess);
}

// Calls of the group that ran before the bad one used to wait for it without end.
TEST_F(Group, ACallThatCannotBeIsRefusedWhenItIsMade) {
  ASSERT_EQ(LoadAll(), xcclSuccess) << xcclGetLastError(nullptr);
  std::vector<int32_t> data(4, 1);
  struct Bad {
    size_t count;
    xcclDataType_t type;
    xcclRedOp_t op;
    int root;
    std::string text;
  };
  const std::vector<Bad> cases = {
      {4, xcclNumTypes, xcclSum, 1, "data type 12; expected 0 to 11"},
      {4, xcclInt32, static_cast<xcclRedOp_t>(7), 1,
       "reduction 7; expected 0 to 4, or one made by xcclRedOpCreatePreMulSum"},
      {SIZE_MAX, xcclInt32, xcclSum, 1, "count 18446744073709551615 is too large"},
      {4, xcclInt32, xcclSum, 9, "reduce: root 9; expected 0 to 2"}};
  for (const Bad& bad : cases) {
    ASSERT_EQ(xcclGroupStart(), xcclSuccess);
    const auto reduce = [&](int r, size_t count, xcclDataType_t type, xcclRedOp_t op, int root) {
      return xcclReduce(data.data(), data.data(), count, type, op, root, comms_[r], nullptr);
    };
    for (const int r : {0, 1})
      EXPECT_EQ(xcclBcast(data.data(), 4, xcclInt32, 1, comms_[r], nullptr), xcclSuccess);
    EXPECT_EQ(reduce(2, bad.count, bad.type, bad.op, bad.root), xcclInvalidArgument);
    EXPECT_STREQ(xcclGetLastError(comms_[2]), bad.text.c_str());
    EXPECT_EQ(xcclGroupEnd(), xcclInvalidArgument);
    for (const xcclComm_t comm : comms_) EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess);
  }
}

TEST_F(Group, RunsNothingWhereNoPlanServesOneOfItsCalls) {
  ASSERT_EQ(LoadAll(), xcclSuccess) << xcclGetLastError(nullptr);
  std::vector<std::vector<int32_t>> data(kRanks, std::vector<int32_t>(4, 1));
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    // The book's broadcast is from rank 1.
    EXPECT_EQ(xcclBcast(data[r].data(), 4, xcclInt32, r == 2 ? 0 : 1, comms_[r], nullptr), xcclSuccess);
  }
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidUsage);
  const std::string text = book_ + ": no plan for broadcast of 16 bytes of int32 on 3 ranks from root 0; " +
                           "the book has 3 ranks root 1 0 bytes and more";
  EXPECT_EQ(xcclGetLastError(comms_[2]), text);
  EXPECT_EQ(xcclGetLastError(nullptr), text);
  for (const xcclComm_t comm : comms_) EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess);
  // The communicators go on.
  data[1].assign(4, 5);
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (int r = 0; r < kRanks; ++r)
    EXPECT_EQ(xcclBcast(data[r].data(), 4, xcclInt32, 1, comms_[r], nullptr), xcclSuccess);
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  for (int r = 0; r < kRanks; ++r) {
    EXPECT_EQ(xcclCommSynchronize(comms_[r]), xcclSuccess) << xcclGetLastError(comms_[r]);
    EXPECT_EQ(data[r], std::vector<int32_t>(4, 5));
  }
}

// The group's own loads come before its calls are checked.
TEST_F(Group, LoadsTheBooksThatItsCallsNeed) {
  std::vector<std::vector<int32_t>> data(kRanks, std::vector<int32_t>(4, 1));
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (int r = 0; r < kRanks; ++r) {
    EXPECT_EQ(xcclAllReduce(data[r].data(), data[r].data(), 4, xcclInt32, xcclSum, comms_[r], nullptr),
              xcclSuccess);
    EXPECT_EQ(xcclCommLoadPlanBook(comms_[r], book_.c_str()), xcclSuccess);
  }
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  for (int r = 0; r < kRanks; ++r) {
    EXPECT_EQ(xcclCommSynchronize(comms_[r]), xcclSuccess) << xcclGetLastError(comms_[r]);
    EXPECT_EQ(data[r], std::vector<int32_t>(4, 3));
  }
}

TEST_F(Group, EndsWithTheFirstFailureOfWhatItRan) {
  book_ = "/no/such/book";
  EXPECT_EQ(LoadAll(), xcclInvalidUsage);
  const std::string text = xcclGetLastError(nullptr);
  EXPECT_NE(text.find("/no/such/book"), std::string::npos) << text;
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  std::vector<int32_t> data(4, 1);
  EXPECT_EQ(xcclAllReduce(data.data(), data.data(), 4, xcclInt32, xcclSum, comms_[0], nullptr), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidUsage);  // no book
}

TEST_F(Group, WithoutThreadsNobodyBeginsToWait) {
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (const xcclComm_t comm : comms_) EXPECT_EQ(xcclCommLoadPlanBook(comm, book_.c_str()), xcclSuccess);
  {
    const NoThreads none;
    EXPECT_EQ(xcclGroupEnd(), xcclSystemError);
  }
  EXPECT_EQ(LoadAll(), xcclSuccess) << xcclGetLastError(nullptr);
}

TEST(GroupEnd, WithoutAStartIsAnError) {
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(nullptr), "xcclGroupEnd without xcclGroupStart");
}

}  // namespace
}  // namespace xccl
