// What a failure of Z3 means, by encodings that fail.
#include "synth/smt/z3_check.h"

#include <gtest/gtest.h>
#include <z3++.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/status.h"
#include "synth/smt/encoding.h"

namespace xccl::smt {
namespace {

// Fails as Z3's C++ interface does: an expression is destroyed between the failure and who catches it.
class Fails {
 public:
  explicit Fails(Z3_error_code when_made) { Fail(when_made); }
  void Fail(Z3_error_code code) {
    const z3::expr destroyed = context_.bool_const("x");
    Z3_set_error(context_, code);
    context_.check_error();
  }

 private:
  Context context_;
};

StatusOr<Answer> AnswerWhere(Z3_error_code when_made, Z3_error_code when_asked) {
  Status failure;
  const std::unique_ptr<Fails> encoding = MakeEncoding<Fails>(failure, when_made);
  const SolveLimits limits = {.work = 7, .time_limit_s = {}, .stopped = {}};
  return AskEncoding<Answer>(encoding.get(), failure, limits, [&](Fails& fails) -> StatusOr<Answer> {
    fails.Fail(when_asked);
    Answer answer;
    answer.verdict = Verdict::kInfeasible;
    return answer;
  });
}

TEST(Z3Check, WithoutMemoryAQuestionIsUndecidedAndHasUsedUpItsWork) {
  for (const auto& [made, asked] : {std::pair{Z3_MEMOUT_FAIL, Z3_OK}, {Z3_OK, Z3_MEMOUT_FAIL}}) {
    const StatusOr<Answer> answer = AnswerWhere(made, asked);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->verdict, Verdict::kStopped);
    EXPECT_EQ(answer->work, 7);
  }
}

TEST(Z3Check, AnyOtherFailureIsABug) {
  for (const auto& [made, asked] : {std::pair{Z3_SORT_ERROR, Z3_OK}, {Z3_OK, Z3_SORT_ERROR}})
    EXPECT_EQ(AnswerWhere(made, asked).status(), BugError("smt: the solver failed: type error"));
}

TEST(Z3Check, WhatDoesNotFailAnswers) { EXPECT_EQ(AnswerWhere(Z3_OK, Z3_OK)->verdict, Verdict::kInfeasible); }

// A hundred megabytes of constraints where Z3 may have forty.
struct Huge {
  Huge() : solver(context, "QF_FD") {
    for (int i = 0; i < 100'000; ++i) {
      z3::expr_vector some(context);
      for (int j = 0; j < 20; ++j) some.push_back(context.bool_const(std::to_string(i + j).c_str()));
      solver.add(z3::atmost(some, 5));
    }
  }
  Context context;
  z3::solver solver;
};

TEST(Z3Check, MemoryThatIsUsedUpIsToldFromItsCodeAndNotFromATextThatSaysMemory) {
  Status failure;
  Z3_global_param_set("memory_max_size", "40");
  EXPECT_EQ(MakeEncoding<Huge>(failure), nullptr);
  Z3_global_param_set("memory_max_size", "0");
  EXPECT_EQ(failure, SystemError("smt: the solver is out of memory"));
  struct SaysMemory {
    SaysMemory() { throw z3::exception("no memory of that name"); }
  };
  EXPECT_EQ(MakeEncoding<SaysMemory>(failure), nullptr);
  EXPECT_EQ(failure, BugError("smt: the solver failed: no memory of that name"));
}

TEST(Z3Check, AnExceptionOfTheLibraryIsNoBugWhereTheMachineHasNoMoreMemoryOrThreads) {
  struct NoMemory {
    NoMemory() { throw std::bad_alloc(); }
  };
  Status failure;
  EXPECT_EQ(MakeEncoding<NoMemory>(failure), nullptr);
  EXPECT_EQ(failure, SystemError("out of memory"));
}

}  // namespace
}  // namespace xccl::smt
