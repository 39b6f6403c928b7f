#include "runtime/host/exchange.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/testing/namespaces.h"

namespace xccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Name(const std::string& what) { return "xccl-exchange-" + std::to_string(getpid()) + "-" + what; }

// A file that holds one number.
OwnedFile FileOf(int32_t number) {
  OwnedFile file(memfd_create("exchange-test", 0));
  EXPECT_EQ(write(file.get(), &number, sizeof number), static_cast<ssize_t>(sizeof number));
  return file;
}
int32_t NumberIn(const OwnedFile& file) {
  int32_t number = -1;
  EXPECT_EQ(pread(file.get(), &number, sizeof number, 0), static_cast<ssize_t>(sizeof number));
  return number;
}

TEST(Exchange, AloneGetsItsOwn) {
  const Exchange exchange = AloneExchange();
  const auto all = exchange.all({"text", {}});
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ((*all)[0].bytes, "text");
  EXPECT_EQ(exchange.check(), OkStatus());
}

TEST(Exchange, BytesAndFilesReachAll) {
  constexpr int32_t kParties = 4;
  constexpr size_t kBytes = 300000, kFiles = 230;  // more than a socket buffer and than one message hold
  std::vector<std::thread> threads;
  for (int32_t party = 0; party < kParties; ++party) {
    threads.emplace_back([party] {
      const auto exchange = SocketExchange(Name("all"), party, kParties, seconds(20));
      ASSERT_TRUE(exchange.ok()) << exchange.status().message();
      for (int32_t round = 0; round < 3; ++round) {
        Parcel mine;
        mine.bytes.assign(party == 1 ? kBytes : static_cast<size_t>(party), static_cast<char>('a' + party));
        for (size_t f = 0; f < (party == 2 ? kFiles : 1); ++f)
          mine.files.push_back(FileOf(party * 1000 + round));
        const auto all = exchange->all(std::move(mine));
        ASSERT_TRUE(all.ok()) << all.status().message();
        for (int32_t p = 0; p < kParties; ++p) {
          const Parcel& parcel = (*all)[static_cast<size_t>(p)];
          EXPECT_EQ(parcel.bytes,
                    std::string(p == 1 ? kBytes : static_cast<size_t>(p), static_cast<char>('a' + p)));
          ASSERT_EQ(parcel.files.size(), p == 2 ? kFiles : 1);
          for (const OwnedFile& file : parcel.files) ASSERT_EQ(NumberIn(file), p * 1000 + round);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Exchange, SaysWhoDidNotCome) {
  EXPECT_EQ(SocketExchange(Name("alone"), 0, 3, milliseconds(50)).status(),
            LimitReached(Name("alone") + ": 1 of 3 processes came within 0.05 s"));
  EXPECT_EQ(SocketExchange(Name("alone"), 2, 3, milliseconds(50)).status(),
            LimitReached(Name("alone") + ": party 0 did not come within 0.05 s"));
}

TEST(Exchange, TheSamePartyTwiceIsRefused) {
  const auto come = [](int32_t party) {
    return SocketExchange(Name("twice"), party, 3, milliseconds(500)).status();
  };
  std::thread one([&] { EXPECT_FALSE(come(1).ok()); }), other([&] { EXPECT_FALSE(come(1).ok()); });
  EXPECT_EQ(come(0), InvalidInput(Name("twice") + ": party 1 of 3 came; expected each of 1 to 2 once"));
  one.join();
  other.join();
}

TEST(Exchange, AProcessThatEndsIsNoticedUnlessItLeft) {
  for (const bool leaves : {false, true}) {
    const std::string name = Name(leaves ? "leaves" : "ends");
    const pid_t child = fork();
    if (child == 0) {
      auto exchange = SocketExchange(name, 1, 2, seconds(20));
      if (!exchange.ok()) _exit(1);
      const bool good = exchange->all({}).ok();
      if (leaves) exchange = InvalidInput("gone");
      _exit(good ? 0 : 2);
    }
    const auto exchange = SocketExchange(name, 0, 2, seconds(20));
    ASSERT_TRUE(exchange.ok()) << exchange.status().message();
    EXPECT_EQ(exchange->check(), OkStatus());
    ASSERT_TRUE(exchange->all({}).ok());
    int ending = 0;
    waitpid(child, &ending, 0);
    EXPECT_EQ(WEXITSTATUS(ending), 0);
    const Status ended = PeerEnded(name + ": party 1: its process ended");
    EXPECT_EQ(exchange->check(), leaves ? OkStatus() : ended);
    EXPECT_EQ(exchange->all({}).status(), ended);
  }
}

// Its number would name another process here.
TEST(Exchange, AProcessOfAnotherNamespaceThatEndsIsNoticed) {
  if (!testing::CanMakeNamespaces()) GTEST_SKIP() << "this user may not make name spaces";
  const std::string name = Name("namespace");
  const pid_t child = testing::ForkIntoNamespace([&] {
    auto exchange = SocketExchange(name, 1, 2, seconds(20));
    const bool good = exchange.ok() && exchange->all({}).ok();
    _exit(good ? 0 : 1);  // without a word
    return 0;
  });
  const auto exchange = SocketExchange(name, 0, 2, seconds(20));
  ASSERT_TRUE(exchange.ok()) << exchange.status().message();
  ASSERT_TRUE(exchange->all({}).ok());
  int ending = 0;
  waitpid(child, &ending, 0);
  EXPECT_EQ(WEXITSTATUS(ending), 0);
  EXPECT_EQ(exchange->check(), PeerEnded(name + ": party 1: its process ended"));
}

// Whoever waits for a process that will not come learns from `over`, long before the limit.
TEST(Exchange, IsOverWhenItsOwnerSaysSo) {
  const Status over = PeerEnded(Name("over") + ": another process has given up");
  EXPECT_EQ(SocketExchange(Name("over"), 0, 2, seconds(1000), [] { return true; }).status(), over);
  EXPECT_EQ(SocketExchange(Name("over"), 1, 2, seconds(1000), [] { return true; }).status(), over);
}

}  // namespace
}  // namespace xccl
