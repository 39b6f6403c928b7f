#include "cli/progress_line.h"

#include <gtest/gtest.h>

namespace xccl {
namespace {

TEST(ProgressLine, IsDueEachSecondOnATerminalAndEachTenInAPipe) {
  int on_terminal = 0, in_pipe = 0;
  for (int seconds = 0; seconds <= 60; ++seconds) {
    on_terminal += IsLineDue(true, seconds) ? 1 : 0;
    in_pipe += IsLineDue(false, seconds) ? 1 : 0;
  }
  EXPECT_EQ(on_terminal, 60);
  EXPECT_EQ(in_pipe, 6);
}

TEST(ProgressLine, SaysWhatIsDoneAndForHowLong) {
  const ProgressState state{"planning allreduce on dgx1", "tree; best so far 12us by ring"};
  EXPECT_EQ(ProgressLine(state, false, 10),
            "progress: planning allreduce on dgx1, 10 s: tree; best so far 12us by ring\n");
  EXPECT_EQ(ProgressLine(state, true, 3),
            "\rplanning allreduce on dgx1, 3 s: tree; best so far 12us by ring\033[K");
  EXPECT_EQ(ProgressLine({"tuning dgx1", "", 0.25}, false, 20),
            "progress: tuning dgx1, 20 s, about 60 s left\n");
}

}  // namespace
}  // namespace xccl
