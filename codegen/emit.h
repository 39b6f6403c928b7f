// Program → source text: one kernel for all ranks, for nvcc and NVRTC (kCuda) or for the host compiler
// (kHost). Requires a Program that verifies, and its Collective. CUDA text includes device/kernel.h and
// nothing else, host text device/host.h. Each block of a rank is straight-line code. Blocks that differ
// only in numbers share one function, with those numbers in a table. Equal inputs give equal bytes.
//
// Macros, with defaults from the options, choose at compile time: XCCL_TYPE (int8_t uint8_t int32_t
// uint32_t int64_t uint64_t Half float double Bfloat16 E4m3 E5m2), XCCL_OPERATOR (kSum kProd kMin kMax
// kAvg), XCCL_PROTOCOL (kSimple kLl kLl128), XCCL_THREADS (a multiple of 32). Host code takes type,
// operator and protocol at run time.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"

namespace xccl {

enum class EmitTarget : uint8_t { kCuda, kHost };

struct EmitOptions {
  EmitTarget target = EmitTarget::kCuda;
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int32_t threads = 0;                 // per block, kCuda; 0: the default for the protocol (device/kernel.h)
  std::string symbol = "xccl_kernel";  // kHost: the HostKernel's name
  std::string title;                   // first comment line, such as "allreduce-nvswitch-ring.plan.json"
};

// Limits on what is distinct in a program, and so on the text. Larger programs run on the interpreter kernel.
inline constexpr int64_t kMaxEmittedInstructions = 10'000;
inline constexpr int64_t kMaxTableNumbers = 1 << 20;

// Errors: those of MakeKernelForm; kInvalidInput above these limits.
StatusOr<std::string> Emit(const Program& program, const Collective& collective, const EmitOptions& options);

}  // namespace xccl
