#include "base/child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace xccl {
namespace {

StatusOr<ChildProcess> Shell(const std::string& script) {
  return ChildProcess::Start("a test", "/bin/sh", {"-c", script});
}

TEST(ChildProcess, OutputAndEnd) {
  StatusOr<ChildProcess> child = Shell("echo out; echo err >&2; exit 37");
  ASSERT_TRUE(child.ok());
  const ChildOutput output = child->Finish();
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
  EXPECT_EQ(WEXITSTATUS(output.status), 37);
}

TEST(ChildProcess, ALimitKillsIt) {
  StatusOr<ChildProcess> child = Shell("sleep 1000");
  ASSERT_TRUE(child.ok());
  EXPECT_FALSE(child->FinishWithin(0.05));
  child = Shell("kill -TERM $$");
  ASSERT_TRUE(child.ok());
  const std::optional<ChildOutput> output = child->FinishWithin(1000);
  ASSERT_TRUE(output);
  EXPECT_EQ(WTERMSIG(output->status), SIGTERM);
}

TEST(ChildProcess, AProgramThatIsMissing) {
  StatusOr<ChildProcess> child = ChildProcess::Start("a test", "/nowhere", {});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(WEXITSTATUS(child->Finish().status), 127);
}

TEST(ChildProcess, EndsWithItsParent) {
  int ends[2];  // the child has the writing end until it ends
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const StatusOr<ChildProcess> child = Shell("echo x >&" + std::to_string(ends[1]) + "; exec sleep 1000");
    pause();
  }
  close(ends[1]);
  char line[2];
  ASSERT_EQ(read(ends[0], line, sizeof line), 2);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  pollfd end = {ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 20'000), 1);
  close(ends[0]);
}

TEST(FailureOf, TheSignalOrTheLastLineOfTheProgramOrTheExitCode) {
  const int code_37 = 37 << 8;
  EXPECT_EQ(FailureOf("book", {code_37, "", "note: a\nxccl-synth: first\nxccl-synth: last\nother\n"}),
            "last");
  EXPECT_EQ(FailureOf("book", {code_37, "", "other\n"}), "book: exit code 37 without a reason");
  EXPECT_EQ(FailureOf("book", {SIGKILL, "", "xccl-synth: last\n"}), "book: killed by signal 9 (Killed)");
}

}  // namespace
}  // namespace xccl
