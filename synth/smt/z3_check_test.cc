// What a failure of Z3 means, by encodings that fail.
#include "synth/smt/z3_check.h"

#include <gtest/gtest.h>
#include <z3++.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "synth/smt/encoding.h"

namespace xccl::smt {
namespace {

struct Fails {
  explicit Fails(const char* when_made) {
    if (*when_made != 0) throw z3::exception(when_made);
  }
};

StatusOr<Answer> AnswerWhere(const char* when_made, const char* when_asked) {
  std::string failure;
  const std::unique_ptr<Fails> encoding = MakeEncoding<Fails>(failure, when_made);
  const SolveLimits limits = {.work = 7, .time_limit_s = {}, .stopped = {}};
  return AskEncoding<Answer>(encoding.get(), failure, limits, [&](Fails&) -> StatusOr<Answer> {
    if (*when_asked != 0) throw z3::exception(when_asked);
    Answer answer;
    answer.verdict = Verdict::kInfeasible;
    return answer;
  });
}

TEST(Z3Check, WithoutMemoryAQuestionIsUndecidedAndHasUsedUpItsWork) {
  for (const auto& [made, asked] : {std::pair{"out of memory", ""}, {"", "out of memory"}}) {
    const StatusOr<Answer> answer = AnswerWhere(made, asked);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->verdict, Verdict::kStopped);
    EXPECT_EQ(answer->work, 7);
  }
}

TEST(Z3Check, AnyOtherFailureIsABug) {
  for (const auto& [made, asked] : {std::pair{"sorts differ", ""}, {"", "sorts differ"}})
    EXPECT_EQ(AnswerWhere(made, asked).status(), BugError("smt: the solver failed: sorts differ"));
}

TEST(Z3Check, WhatDoesNotFailAnswers) { EXPECT_EQ(AnswerWhere("", "")->verdict, Verdict::kInfeasible); }

}  // namespace
}  // namespace xccl::smt
