// Kernels of plans, stored where a plan book finds them: the generated source of a plan, and cubins that nvcc
// makes from it ahead of time, named in the book's index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/emit.h"
#include "ir/numbers.h"
#include "runtime/plan_book.h"

namespace xccl {

// The combinations that are compiled ahead of time.
struct AheadOfTime {
  std::vector<int32_t> archs;   // empty: nothing
  std::vector<DataType> types;  // empty: float, and int32 where a plan is for integers
  std::vector<ReduceOp> ops;    // for plans that reduce; empty: sum
  std::string nvcc;             // the program; empty only where archs is
};

// Writes the source to `path` and cubins beside it (x.cu: x.sm_90.float.sum.cubin), and returns the cubins.
// `types`: what the plan is for; `reduces`: whether its collective reduces. Errors: those of nvcc and of
// writing.
StatusOr<std::vector<PlanCubin>> WriteKernel(const std::string& source, const std::string& path,
                                             TypeClass types, bool reduces, const AheadOfTime& ahead);

// Writes a kernel for every plan of the book that can be emitted: x.plan.json gets x.cu and its cubins, and
// the book's index lists them. Returns one line for each other plan; the interpreter kernel runs those plans.
StatusOr<std::vector<std::string>> WriteBookKernels(PlanBook book, const EmitOptions& emit,
                                                    const AheadOfTime& ahead);

}  // namespace xccl
