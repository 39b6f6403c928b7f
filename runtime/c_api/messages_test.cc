// Messages between pairs of ranks that are threads, all driven by one thread.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/c_api/testing/books.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

using Comms = std::vector<xcclComm_t>;
using Numbers = std::vector<int32_t>;

Comms Connected(int ranks) {
  Comms comms(ranks);
  EXPECT_EQ(xcclCommInitAll(comms.data(), ranks, nullptr), xcclSuccess);
  EXPECT_EQ(xcclGroupStart(), xcclSuccess);
  for (const xcclComm_t comm : comms) EXPECT_EQ(xcclCommConnect(comm), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  return comms;
}

void DestroyAll(const Comms& comms) {
  for (const xcclComm_t comm : comms) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

void SynchronizeAll(const Comms& comms) {
  for (const xcclComm_t comm : comms)
    EXPECT_EQ(xcclCommSynchronize(comm), xcclSuccess) << xcclGetLastError(comm);
}

xcclResult_t Send(const Comms& comms, int from, int to, const Numbers& data) {
  return xcclSend(data.data(), data.size(), xcclInt32, to, comms[from], nullptr);
}
xcclResult_t Receive(const Comms& comms, int from, int to, Numbers& data) {
  return xcclRecv(data.data(), data.size(), xcclInt32, from, comms[to], nullptr);
}

Numbers From(int32_t first, size_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Every rank sends to its successors and itself, twice, before it receives anything.
TEST(Messages, LargeCyclesInOneGroupEnd) {
  constexpr int kRanks = 5;
  const Comms comms = Connected(kRanks);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{300'000}}) {
    std::vector<std::vector<Numbers>> out(kRanks), in(kRanks, std::vector<Numbers>(6, Numbers(count)));
    ASSERT_EQ(xcclGroupStart(), xcclSuccess);
    for (int r = 0; r < kRanks; ++r)
      for (int i = 0; i < 6; ++i) {
        out[r].push_back(From(1000 * r + i, count));
        EXPECT_EQ(Send(comms, r, (r + i % 3) % kRanks, out[r][i]), xcclSuccess);
      }
    for (int r = kRanks - 1; r >= 0; --r)
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(Receive(comms, (r + kRanks - i % 3) % kRanks, r, in[r][i]), xcclSuccess);
    ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
    SynchronizeAll(comms);
    for (int r = 0; r < kRanks; ++r)
      for (int i = 0; i < 6; ++i)
        EXPECT_TRUE(in[r][i] == out[(r + kRanks - i % 3) % kRanks][i]) << count << " " << r << " " << i;
  }
  DestroyAll(comms);
}

TEST(Messages, OneAloneOutsideOfAGroup) {
  const Comms comms = Connected(2);
  const Numbers out = From(5, 1000);
  Numbers in(1000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Send(comms, 0, 1, out), xcclSuccess);
    EXPECT_EQ(Receive(comms, 0, 1, in), xcclSuccess);
  }
  SynchronizeAll(comms);
  EXPECT_EQ(in, out);
  DestroyAll(comms);
}

// In a group the order of messages and collectives does not matter.
TEST(Messages, RunBesideTheCollectivesOfTheirGroup) {
  const std::string book = MakeBook("messages", 2, {CollectiveKind::kAllreduce});
  const Comms comms = Connected(2);
  for (const xcclComm_t comm : comms) ASSERT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess);
  Numbers sums = {1, 2}, out = {7}, in = {0};
  const auto add = [&](int r) {
    EXPECT_EQ(xcclAllReduce(&sums[r], &sums[r], 1, xcclInt32, xcclSum, comms[r], nullptr), xcclSuccess);
  };
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  add(0);
  EXPECT_EQ(Send(comms, 0, 1, out), xcclSuccess);
  EXPECT_EQ(Receive(comms, 0, 1, in), xcclSuccess);
  add(1);
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  SynchronizeAll(comms);
  EXPECT_EQ(sums, (Numbers{3, 3}));
  EXPECT_EQ(in, out);
  DestroyAll(comms);
}

TEST(Messages, AlltoallvWithCountsOfItsOwnForEachPair) {
  constexpr size_t kRanks = 4;
  const Comms comms = Connected(kRanks);
  // Rank s sends 10 s + d elements to rank d, and rank 2 nothing to rank 1; two elements lie between.
  const auto count = [](size_t s, size_t d) { return s == 2 && d == 1 ? 0 : 10 * s + d; };
  std::vector<Numbers> out(kRanks), in(kRanks), expected(kRanks);
  std::vector<std::vector<size_t>> out_counts(kRanks), out_at(kRanks), in_counts(kRanks), in_at(kRanks);
  for (size_t r = 0; r < kRanks; ++r)
    for (size_t peer = 0; peer < kRanks; ++peer) {
      out_counts[r].push_back(count(r, peer));
      out_at[r].push_back(out[r].size());
      const Numbers sent = From(static_cast<int32_t>(1000 * r + 100 * peer), count(r, peer));
      out[r].insert(out[r].end(), sent.begin(), sent.end());
      out[r].resize(out[r].size() + 2, -1);
      in_counts[r].push_back(count(peer, r));
      in_at[r].push_back(expected[r].size());
      const Numbers got = From(static_cast<int32_t>(1000 * peer + 100 * r), count(peer, r));
      expected[r].insert(expected[r].end(), got.begin(), got.end());
      expected[r].resize(expected[r].size() + 2, -3);
    }
  for (size_t r = 0; r < kRanks; ++r) {
    in[r].assign(expected[r].size(), -3);
    EXPECT_EQ(xcclAlltoAllv(out[r].data(), out_counts[r].data(), out_at[r].data(), in[r].data(),
                            in_counts[r].data(), in_at[r].data(), xcclInt32, comms[r], nullptr),
              xcclSuccess)
        << xcclGetLastError(comms[r]);
  }
  SynchronizeAll(comms);
  EXPECT_EQ(in, expected);
  DestroyAll(comms);
}

// Each block must be sent before a received block takes its place: a rank must not send on what it received.
TEST(Messages, AlltoallvInOneBuffer) {
  constexpr size_t kRanks = 4, kCount = 1000;
  const Comms comms = Connected(kRanks);
  const std::vector<size_t> counts(kRanks, kCount), places = {0, kCount, 2 * kCount, 3 * kCount};
  const auto block = [](size_t from, size_t to) {
    return From(static_cast<int32_t>(100'000 * from + 10'000 * to), kCount);
  };
  std::vector<Numbers> data(kRanks), expected(kRanks);
  for (size_t r = 0; r < kRanks; ++r)
    for (size_t peer = 0; peer < kRanks; ++peer) {
      const Numbers out = block(r, peer), in = block(peer, r);
      data[r].insert(data[r].end(), out.begin(), out.end());
      expected[r].insert(expected[r].end(), in.begin(), in.end());
    }
  for (size_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(xcclAlltoAllv(data[r].data(), counts.data(), places.data(), data[r].data(), counts.data(),
                            places.data(), xcclInt32, comms[r], nullptr),
              xcclSuccess);
  SynchronizeAll(comms);
  EXPECT_TRUE(data == expected);
  DestroyAll(comms);
}

TEST(Messages, ReceivesThatShareMemoryAreRefused) {
  const Comms comms = Connected(2);
  Numbers data = From(0, 10), other(10);
  const std::vector<size_t> counts = {3, 4}, places = {0, 2}, apart = {0, 3};
  const auto alltoallv = [&](const std::vector<size_t>& receives_at) {
    return xcclAlltoAllv(data.data(), counts.data(), places.data(), other.data(), counts.data(),
                         receives_at.data(), xcclInt32, comms[0], nullptr);
  };
  EXPECT_EQ(alltoallv(places), xcclInvalidArgument);
  EXPECT_STREQ(
      xcclGetLastError(comms[0]),
      "alltoallv of 3 int32 from rank 0 and alltoallv of 4 int32 from rank 1 are received into memory "
      "that overlaps; expected ranges apart");
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(alltoallv(apart), xcclSuccess);
  EXPECT_EQ(xcclRecv(other.data() + 6, 2, xcclInt32, 1, comms[0], nullptr), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidArgument);
  EXPECT_STREQ(
      xcclGetLastError(comms[0]),
      "alltoallv of 4 int32 from rank 1 and sendrecv of 2 int32 from rank 1 are received into memory "
      "that overlaps; expected ranges apart");
  SynchronizeAll(comms);  // nothing has begun
  EXPECT_EQ(other, Numbers(10));
  DestroyAll(comms);
}

// Threads of two communicators used to race for it.
TEST(Messages, CommunicatorsOfAGroupThatShareMemoryAreRefused) {
  const std::string book = MakeBook("shared_memory", 2, {CollectiveKind::kAllreduce});
  const Comms comms = Connected(2);
  for (const xcclComm_t comm : comms) ASSERT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess);
  Numbers data = From(0, 10), other(10);
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(Send(comms, 0, 1, data), xcclSuccess);
  EXPECT_EQ(xcclRecv(data.data() + 9, 10, xcclInt32, 0, comms[1], nullptr), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(comms[1]),
               "memory that rank 0: a message reads and rank 1: a message writes overlaps; expected ranges "
               "apart: communicators of one group run side by side");
  const auto add = [&](int r, const Numbers& from, Numbers& to) {
    return xcclAllReduce(from.data(), to.data(), 10, xcclInt32, xcclSum, comms[r], nullptr);
  };
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(add(0, data, other), xcclSuccess);
  EXPECT_EQ(add(1, data, other), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclInvalidArgument);
  EXPECT_STREQ(xcclGetLastError(nullptr),
               "memory that rank 0: allreduce writes and rank 1: allreduce writes overlaps; expected ranges "
               "apart: communicators of one group run side by side");
  EXPECT_EQ(data, From(0, 10));
  EXPECT_EQ(other, Numbers(10));
  // Both may read it.
  Numbers third(10);
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(add(0, data, other), xcclSuccess);
  EXPECT_EQ(add(1, data, third), xcclSuccess);
  EXPECT_EQ(xcclGroupEnd(), xcclSuccess);
  SynchronizeAll(comms);
  EXPECT_EQ(other[9], 18);
  EXPECT_EQ(third, other);
  DestroyAll(comms);
}

TEST(Messages, OnesThatDifferAreAnErrorWithBothSides) {
  struct Case {
    std::string text;
    size_t sent, received;
    xcclDataType_t type;
  };
  for (const Case& c :
       {Case{"rank 0: message 2 to rank 1 is sendrecv of 100 int32; rank 1 expected sendrecv of "
             "10 int32",
             100, 10, xcclInt32},
        Case{"rank 0: message 2 to rank 1 is sendrecv of 0 int32; rank 1 expected sendrecv of 1 "
             "int32",
             0, 1, xcclInt32},
        Case{"rank 0: message 2 to rank 1 is sendrecv of 7 int32; rank 1 expected sendrecv of 7 "
             "float",
             7, 7, xcclFloat32}}) {
    const Comms comms = Connected(2);
    Numbers data(100);
    Numbers one(1);
    EXPECT_EQ(Send(comms, 0, 1, one), xcclSuccess);
    EXPECT_EQ(Receive(comms, 0, 1, one), xcclSuccess);
    EXPECT_EQ(xcclSend(data.data(), c.sent, xcclInt32, 1, comms[0], nullptr), xcclSuccess);
    EXPECT_EQ(xcclRecv(data.data(), c.received, c.type, 0, comms[1], nullptr), xcclSuccess);
    for (const xcclComm_t comm : comms) {
      EXPECT_EQ(xcclCommSynchronize(comm), xcclInvalidUsage);
      EXPECT_EQ(xcclGetLastError(comm), c.text);
    }
    DestroyAll(comms);
  }
}

TEST(Messages, WrongCallsAreRefusedAtOnce) {
  const Comms comms = Connected(2);
  Numbers data(4);
  const std::vector<size_t> counts = {1, 1};
  const auto refused = [&](xcclResult_t seen, xcclResult_t result, const std::string& text) {
    EXPECT_EQ(seen, result) << text;
    EXPECT_EQ(xcclGetLastError(comms[0]), text);
  };
  const auto send = [&](const void* from, size_t count, int type, int peer) {
    return xcclSend(from, count, static_cast<xcclDataType_t>(type), peer, comms[0], nullptr);
  };
  refused(send(data.data(), 4, 12, 1), xcclInvalidArgument, "data type 12; expected 0 to 11");
  refused(send(data.data(), 4, xcclInt32, 2), xcclInvalidArgument, "send: peer 2; expected 0 to 1");
  refused(send(data.data(), 4, xcclInt32, -1), xcclInvalidArgument, "send: peer -1; expected 0 to 1");
  refused(send(nullptr, 4, xcclInt32, 1), xcclInvalidArgument, "send: the send buffer is null");
  refused(send(data.data(), SIZE_MAX, xcclInt32, 1), xcclInvalidArgument,
          "count 18446744073709551615 is too large");
  refused(xcclRecv(nullptr, 4, xcclInt32, 1, comms[0], nullptr), xcclInvalidArgument,
          "recv: the receive buffer is null");
  refused(xcclAlltoAllv(data.data(), nullptr, counts.data(), data.data(), counts.data(), counts.data(),
                        xcclInt32, comms[0], nullptr),
          xcclInvalidArgument, "alltoallv: the send counts are null");
  refused(xcclAlltoAllv(data.data(), counts.data(), counts.data(), data.data(), counts.data(), nullptr,
                        xcclInt32, comms[0], nullptr),
          xcclInvalidArgument, "alltoallv: the receive displacements are null");
  const std::vector<size_t> far = {0, size_t{1} << 59};
  refused(xcclAlltoAllv(data.data(), counts.data(), far.data(), data.data(), counts.data(), counts.data(),
                        xcclInt32, comms[0], nullptr),
          xcclInvalidArgument, "alltoallv: send displacement 576460752303423488 is too large");
  refused(Send(comms, 0, 0, data), xcclInvalidUsage,
          "rank 0: message 1 to itself is sendrecv of 4 int32; it expected nothing");
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  Numbers two(2);
  Numbers theirs(4);
  EXPECT_EQ(Send(comms, 0, 1, data), xcclSuccess);
  EXPECT_EQ(Receive(comms, 0, 1, theirs), xcclSuccess);
  EXPECT_EQ(Send(comms, 0, 0, data), xcclSuccess);
  EXPECT_EQ(Receive(comms, 0, 0, two), xcclSuccess);
  refused(xcclGroupEnd(), xcclInvalidUsage,
          "rank 0: message 1 to itself is sendrecv of 4 int32; it expected sendrecv of 2 int32");
  SynchronizeAll(comms);  // nothing has begun
  DestroyAll(comms);
}

TEST(Messages, AreRefusedWhereTheyCannotRun) {
  Comms comms(2);
  ASSERT_EQ(xcclCommInitAll(comms.data(), 2, nullptr), xcclSuccess);
  const Numbers data(4);
  EXPECT_EQ(Send(comms, 0, 1, data), xcclInvalidUsage);
  EXPECT_STREQ(xcclGetLastError(comms[0]),
               "the pairs of ranks are not connected; hint: xcclCommConnect on all ranks");
  EXPECT_EQ(xcclCommUseCuda(comms[0], 3), xcclSuccess);
  const std::string text =
      "rank 0: is on GPU 3; expected the CPU: no kernel sends, receives or runs alltoallv without a plan";
  EXPECT_EQ(Send(comms, 0, 1, data), xcclInvalidUsage);
  EXPECT_EQ(xcclGetLastError(comms[0]), text);
  EXPECT_EQ(xcclCommConnect(comms[0]), xcclInvalidUsage);
  EXPECT_EQ(xcclGetLastError(comms[0]), text);
  DestroyAll(comms);
}

// Two parts of one buffer change places.
TEST(Messages, OneRankRotatesItsBuffer) {
  Comms comms(1);
  ASSERT_EQ(xcclCommInitAll(comms.data(), 1, nullptr), xcclSuccess);
  Numbers data = From(0, 10);
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  for (const auto& [from, count, to] : {std::array<size_t, 3>{0, 7, 3}, {7, 3, 0}}) {
    EXPECT_EQ(xcclSend(data.data() + from, count, xcclInt32, 0, comms[0], nullptr), xcclSuccess);
    EXPECT_EQ(xcclRecv(data.data() + to, count, xcclInt32, 0, comms[0], nullptr), xcclSuccess);
  }
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  EXPECT_EQ(data, (Numbers{7, 8, 9, 0, 1, 2, 3, 4, 5, 6}));
  DestroyAll(comms);
}

TEST(Messages, OneRankCopiesWithoutAConnection) {
  Comms comms(1);
  ASSERT_EQ(xcclCommInitAll(comms.data(), 1, nullptr), xcclSuccess);
  const Numbers out = From(3, 10);
  Numbers in(10);
  ASSERT_EQ(xcclGroupStart(), xcclSuccess);
  EXPECT_EQ(Receive(comms, 0, 0, in), xcclSuccess);
  EXPECT_EQ(Send(comms, 0, 0, out), xcclSuccess);
  ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  EXPECT_EQ(in, out);
  DestroyAll(comms);
}

TEST(Messages, APeerThatLeftOrNeverComesIsNamed) {
  Comms comms = Connected(2);
  Numbers data(4);
  EXPECT_EQ(xcclCommDestroy(comms[1]), xcclSuccess);
  EXPECT_EQ(Receive(comms, 1, 0, data), xcclSuccess);
  EXPECT_EQ(xcclCommSynchronize(comms[0]), xcclRemoteError);
  EXPECT_STREQ(xcclGetLastError(comms[0]),
               "rank 1: has left; rank 0 expected rank 1 to send message 1, sendrecv of 4 int32");
  DestroyAll({comms[0]});
  comms = Connected(2);
  EXPECT_EQ(xcclCommSetTimeLimit(comms[0], 0.02), xcclSuccess);
  EXPECT_EQ(Send(comms, 0, 1, data), xcclSuccess);
  EXPECT_EQ(xcclCommSynchronize(comms[0]), xcclRemoteError);
  EXPECT_STREQ(xcclGetLastError(comms[0]),
               "rank 0 expected rank 1 to receive message 1, sendrecv of 4 int32; nothing moved for 20 ms");
  DestroyAll(comms);
}

TEST(Messages, AnAbortEndsThemOnAllRanks) {
  const Comms comms = Connected(3);
  Numbers data(4);
  EXPECT_EQ(Receive(comms, 1, 0, data), xcclSuccess);
  EXPECT_EQ(xcclCommAbort(comms[2]), xcclSuccess);
  EXPECT_EQ(xcclCommSynchronize(comms[0]), xcclRemoteError);
  EXPECT_STREQ(xcclGetLastError(comms[0]), "rank 2: aborted");
  DestroyAll({comms[0], comms[1]});
}

}  // namespace
}  // namespace xccl
