// Writes the kernels of plans next to the plans: the generated CUDA source, and cubins that nvcc compiles
// from the source ahead of time. The index of a plan book lists both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/emit.h"
#include "ir/numbers.h"
#include "runtime/plan_book.h"

namespace xccl {

// The kernels to compile ahead of time: one cubin for each combination of architecture, type and operation.
struct AheadOfTime {
  std::vector<int32_t> archs;   // empty: compile nothing
  std::vector<DataType> types;  // empty: int32 for a plan for integers, otherwise float
  std::vector<ReduceOp> ops;    // for plans that reduce; empty: sum
  std::string nvcc;             // path of the compiler; may be empty if archs is empty
};

// Writes the source to `path`, compiles it, and writes the cubins to the same directory. For x.cu a cubin is
// named x.sm_90.float.sum.cubin. Returns the cubins. `types`: the class of types that the plan is for.
// `reduces`: whether the plan's collective reduces. Errors: those of nvcc and of writing.
StatusOr<std::vector<PlanCubin>> WriteKernel(const std::string& source, const std::string& path,
                                             TypeClass types, bool reduces, const AheadOfTime& ahead);

// Writes a kernel for every plan of the book that can be emitted: x.cu and its cubins for x.plan.json. Lists
// the kernels in the book's index. Returns one line for each plan that cannot be emitted; the interpreter
// kernel runs it. Errors: kInvalidInput for a plan without a program; those of reading and of WriteKernel.
StatusOr<std::vector<std::string>> WriteBookKernels(PlanBook book, const EmitOptions& emit,
                                                    const AheadOfTime& ahead);

}  // namespace xccl
