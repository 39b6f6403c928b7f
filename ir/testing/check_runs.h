// Programs on numbers, for tests.
#pragma once

#include <gtest/gtest.h>

#include "ir/collective.h"
#include "ir/interpret/interpret.h"
#include "ir/program.h"
#include "ir/testing/programs.h"

namespace xccl {

// Runs out of place and, where the program says so, in place, to the outputs that `required` asks for: the
// program's collective, in whatever chunks.
inline void CheckRuns(const Program& program, const Collective& collective, InterpretOptions options,
                      const Collective& required) {
  const auto inputs = ExactInputs(program, collective, options);
  const auto expected = ExpectedOutputs(program, required, inputs, options);
  for (const bool in_place : {false, true}) {
    if (in_place && !program.in_place) continue;
    options.in_place = in_place;
    const auto outputs = Interpret(program, collective, inputs, options);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    for (const Rank r : required.ranks())
      ASSERT_EQ((*outputs)[r.index()], expected[r.index()])
          << "rank " << r.value << (in_place ? " in place" : "");
  }
}
inline void CheckRuns(const Program& program, const Collective& collective, const InterpretOptions& options) {
  CheckRuns(program, collective, options, collective);
}
inline void CheckRuns(const LoweredProgram& lowered) {
  CheckRuns(lowered.program, lowered.collective, {.size_bytes = 9216});
}

}  // namespace xccl
