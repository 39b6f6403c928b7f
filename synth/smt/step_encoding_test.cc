// What a failure of Z3 means, by encodings that fail.
#include "synth/smt/step_encoding.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace xccl::smt {
namespace {

const Machine kNothing;

// Does something while it is made, and something when it is asked.
class Tries final : public StepEncoding {
 public:
  using Deed = std::function<void(Tries&)>;
  Tries(const Deed& when_made, Deed when_asked)
      : StepEncoding(kNothing, 1, {}), when_asked_(std::move(when_asked)) {
    if (when_made) when_made(*this);
  }
  // As Z3's C++ interface fails: an expression is destroyed between the failure and who catches it.
  void Fail(Z3_error_code code) {
    const z3::expr destroyed = NewBool();
    Z3_set_error(destroyed.ctx(), code);
    destroyed.check_error();
  }
  // A hundred megabytes of constraints.
  void Grow() {
    for (int i = 0; i < 100'000; ++i) {
      z3::expr_vector some = None();
      for (int j = 0; j < 20; ++j) some.push_back(NewBool());
      Add(z3::atmost(some, 5));
    }
  }

 private:
  std::vector<Send> Decode() const override {
    if (when_asked_) when_asked_(const_cast<Tries&>(*this));
    return {{.chunk = 3, .edge = 0, .step = 0}};
  }
  void AddSent(int32_t, int32_t, z3::expr_vector&) override {}

  Deed when_asked_;
};

StatusOr<Answer> AnswerWhere(const Tries::Deed& when_made, const Tries::Deed& when_asked) {
  return SolverQuestion([&] { return std::make_unique<Tries>(when_made, when_asked); }).Ask({.work = 7});
}

void ExpectUndecided(const StatusOr<Answer>& answer) {
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->verdict, Verdict::kStopped);
  EXPECT_EQ(answer->work, 7);
}

TEST(SolverQuestion, WithoutMemoryIsUndecidedAndHasUsedUpItsWork) {
  const auto memout = [](Tries& tries) { tries.Fail(Z3_MEMOUT_FAIL); };
  ExpectUndecided(AnswerWhere(memout, {}));
  ExpectUndecided(AnswerWhere({}, memout));
}

TEST(SolverQuestion, AnyOtherFailureIsABug) {
  const auto sorts = [](Tries& tries) { tries.Fail(Z3_SORT_ERROR); };
  EXPECT_EQ(AnswerWhere(sorts, {}).status(), BugError("smt: the solver failed: type error"));
  EXPECT_EQ(AnswerWhere({}, sorts).status(), BugError("smt: the solver failed: type error"));
}

TEST(SolverQuestion, WhatDoesNotFailAnswers) {
  const StatusOr<Answer> answer = AnswerWhere({}, {});
  EXPECT_EQ(answer->verdict, Verdict::kFeasible);
  EXPECT_EQ(answer->sends.size(), 1u);
}

TEST(SolverQuestion, MemoryThatIsUsedUpIsToldFromItsCodeAndNotFromATextThatSaysMemory) {
  Z3_global_param_set("memory_max_size", "40");
  ExpectUndecided(AnswerWhere([](Tries& tries) { tries.Grow(); }, {}));
  Z3_global_param_set("memory_max_size", "0");
  EXPECT_EQ(AnswerWhere([](Tries&) { throw z3::exception("no memory of that name"); }, {}).status(),
            BugError("smt: the solver failed: no memory of that name"));
}

TEST(SolverQuestion, AnExceptionOfTheLibraryIsNoBugWhereTheMachineHasNoMoreMemoryOrThreads) {
  ExpectUndecided(AnswerWhere([](Tries&) { throw std::bad_alloc(); }, {}));
}

}  // namespace
}  // namespace xccl::smt
