#include "base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>

namespace xccl {
namespace {

// The result of `work` in a process of its own, whose signals have their defaults.
int InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(StandardStreams, NoFileGetsTheNumberOfAClosedOne) {
  EXPECT_EQ(InChild([] {
              for (const int stream : {0, 1, 2}) close(stream);
              PrepareStandardStreams();
              const int file = open("/dev/null", O_RDWR);
              char byte = 0;
              const bool fail = read(0, &byte, 1) == -1 && errno == EBADF && WriteWhole(1, "x") == EBADF &&
                                WriteWhole(2, "x") == EBADF;
              return fail ? file : 100;
            }),
            3);
}

TEST(StandardStreams, OpenOnesStayAsTheyAre) {
  EXPECT_EQ(InChild([] {
              int ends[2];
              if (pipe(ends) != 0) return 100;
              dup2(ends[1], STDERR_FILENO);
              PrepareStandardStreams();
              PrintError("text");
              char text[8] = {};
              return read(ends[0], text, sizeof text) == 4 && std::string(text) == "text" ? 0 : 1;
            }),
            0);
}

TEST(StandardStreams, APipeThatNobodyReadsIsAReason) {
  const auto write = [](bool prepared) {
    return InChild([=] {
      std::signal(SIGPIPE, SIG_DFL);
      int ends[2];
      if (pipe(ends) != 0) return 100;
      close(ends[0]);
      if (prepared) PrepareStandardStreams();
      return WriteWhole(ends[1], "x");
    });
  };
  EXPECT_EQ(write(true), EPIPE);
  EXPECT_EQ(write(false), 128 + SIGPIPE);
}

// A stream that another process has made non-blocking takes a large text bit by bit.
TEST(StandardStreams, AStreamThatDoesNotBlockGetsAllOfAText) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string sent(1'000'000, 'x');
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    _exit(WriteWhole(ends[1], sent));
  }
  close(ends[1]);
  std::string got;
  char block[5000];
  for (ssize_t size = 0; (size = read(ends[0], block, sizeof block)) > 0;)
    got.append(block, static_cast<size_t>(size));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace xccl
