// Threads that cannot be had, and what exceptions mean.
#include "base/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/exceptions.h"
#include "base/testing/no_threads.h"

namespace xccl {
namespace {

TEST(StartThread, RunsTheWork) {
  bool ran = false;
  StatusOr<std::thread> thread = StartThread([&] { ran = true; });
  ASSERT_TRUE(thread.ok()) << thread.status().message();
  thread->join();
  EXPECT_TRUE(ran);
}

TEST(StartThread, AThreadThatCannotBeHadIsAStatusAndNoException) {
  const NoThreads none;
  EXPECT_EQ(StartThread([] {}).status(),
            SystemError("cannot start a thread: Resource temporarily unavailable"));
}

// A process of its own: the limit holds for all of it.
TEST(StartThread, TheLimitThatLeavesNoRoomForAStackIsNamed) {
  const std::string hint = "; hint: a larger limit or fewer ranks\n";
  const auto start_within = [](__rlimit_resource resource) {
    pthread_attr_t attributes;  // stacks of 1 GiB
    const rlimit limit = {rlim_t{1} << 29, rlim_t{1} << 29};
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, size_t{1} << 30) != 0 ||
        pthread_setattr_default_np(&attributes) != 0 || setrlimit(resource, &limit) != 0)
      _exit(2);
    std::fputs((StartThread([] {}).status().message() + "\n").c_str(), stderr);
    _exit(1);
  };
  EXPECT_EXIT(
      start_within(RLIMIT_AS), testing::ExitedWithCode(1),
      "^cannot start a thread: Resource temporarily unavailable; address space .ulimit -v. is limited "
      "to 512MiB" +
          hint);
  EXPECT_EXIT(
      start_within(RLIMIT_DATA), testing::ExitedWithCode(1),
      "^cannot start a thread: Resource temporarily unavailable; data .ulimit -d. is limited to 512MiB" +
          hint);
}

TEST(Exceptions, WhatTheyMean) {
  EXPECT_EQ(StatusOf(std::bad_alloc()), SystemError("out of memory"));
  EXPECT_EQ(StatusOf(std::system_error(EAGAIN, std::system_category())),
            SystemError("Resource temporarily unavailable"));
  EXPECT_EQ(StatusOf(std::out_of_range("map::at")), BugError("unexpected exception: map::at"));
}

}  // namespace
}  // namespace xccl
