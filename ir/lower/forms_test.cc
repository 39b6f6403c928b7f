#include "ir/lower/forms.h"

#include <gtest/gtest.h>

#include "ir/lower/testing/line.h"

namespace xccl::lowering {
namespace {

std::vector<Form> Forms(int64_t num_moves, int64_t size_bytes = 64 << 20) {
  return FormsFor(LineSchedule(), LineCollective(), size_bytes, num_moves);
}

TEST(Forms, PlainestFirst) {
  EXPECT_EQ(Forms(kManyMoves), std::vector<Form>({{2, true, false},
                                                  {8, true, false},
                                                  {8, true, true},
                                                  {8, false, true},
                                                  {{}, true, true},
                                                  {{}, false, true}}));
  EXPECT_EQ(Forms(kManyMoves + 1), std::vector<Form>({{8, true, true}, {{}, true, true}, {{}, false, true}}));
}

// A chunk of 2 KiB is one segment; one of 32 MiB is many.
TEST(Forms, ALargeProgramHasOne) {
  EXPECT_EQ(Forms(kLargeMoves + 1, 4096), std::vector<Form>({{{}, false, true, Segments::kWhole}}));
  EXPECT_EQ(Forms(kLargeMoves + 1), std::vector<Form>({{8, true, true, Segments::kMiddle}}));
}

}  // namespace
}  // namespace xccl::lowering
