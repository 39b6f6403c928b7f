// Threads that cannot be had, and what exceptions mean.
#include "base/threads.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
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

TEST(Exceptions, WhatTheyMean) {
  EXPECT_EQ(StatusOf(std::bad_alloc()), SystemError("out of memory"));
  EXPECT_EQ(StatusOf(std::system_error(EAGAIN, std::system_category())),
            SystemError("Resource temporarily unavailable"));
  EXPECT_EQ(StatusOf(std::out_of_range("map::at")), BugError("unexpected exception: map::at"));
}

}  // namespace
}  // namespace xccl
