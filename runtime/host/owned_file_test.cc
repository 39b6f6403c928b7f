#include "runtime/host/owned_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace xccl {
namespace {

struct Pair {
  OwnedFile here, there;
};

// Only `there` is not kept by forks.
Pair MakePair() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  Pair pair;
  pair.here = OwnedFile(ends[0]);
  pair.there = OwnedFile::NotInForks([&] { return ends[1]; });
  return pair;
}

ssize_t Read(const OwnedFile& file) {
  char byte = 0;
  return recv(file.get(), &byte, 1, MSG_DONTWAIT);
}

TEST(OwnedFile, AConnectionEndsWithItsProcessThoughAForkOfItLives) {
  Pair pair = MakePair();
  OwnedFile moved = std::move(pair.there);
  std::array<int, 2> hold = {-1, -1}, ready = {-1, -1};
  ASSERT_EQ(pipe(hold.data()), 0);
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The number is taken and gives nothing; who still owns it closes it in the end.
    char byte = 0;
    const bool empty = read(moved.get(), &byte, 1) == 0;
    moved = OwnedFile();
    close(hold[1]);
    const bool told = write(ready[1], empty ? "y" : "n", 1) == 1;
    const bool held = read(hold[0], &byte, 1) == 0;
    std::quick_exit(told && held ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(Read(pair.here), -1);  // the connection of this process is as before
  EXPECT_EQ(errno, EAGAIN);
  moved = OwnedFile();
  EXPECT_EQ(Read(pair.here), 0);
  for (const int file : {hold[0], hold[1], ready[0], ready[1]}) close(file);
  int ending = 0;
  ASSERT_EQ(waitpid(child, &ending, 0), child);
  EXPECT_TRUE(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
}

TEST(OwnedFile, AFileThatIsClosedIsNobodysInAFork) {
  int number = -1;
  {
    const Pair pair = MakePair();
    number = pair.there.get();
  }
  const OwnedFile other(dup2(STDERR_FILENO, number));
  const pid_t child = fork();
  if (child == 0)
    std::quick_exit(isatty(number) == isatty(STDERR_FILENO) && write(number, "", 0) == 0 ? 0 : 1);
  int ending = 0;
  ASSERT_EQ(waitpid(child, &ending, 0), child);
  EXPECT_TRUE(WIFEXITED(ending) && WEXITSTATUS(ending) == 0);
}

TEST(OwnedFile, WhatCannotBeOpenedIsNotOpen) {
  const OwnedFile none = OwnedFile::NotInForks([] {
    errno = EMFILE;
    return -1;
  });
  EXPECT_FALSE(none.open());
  EXPECT_EQ(errno, EMFILE);
}

}  // namespace
}  // namespace xccl
