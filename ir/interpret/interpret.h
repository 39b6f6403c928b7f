// Defines what a Program does: runs it on real numbers, one instruction at a time, in a seeded order of
// threadblocks. Slow and obvious; executors are compared with it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"

namespace xccl {

struct InterpretOptions {
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int64_t size_bytes = 0;
  bool in_place = false;
  uint64_t seed = 0;  // for the order in which runnable threadblocks advance
};

// inputs[r] holds rank r's input bytes (empty if r is not a member); the result is every rank's output
// buffer. Elements that no instruction writes are 0xCB bytes. Errors: kInvalidInput if a threadblock waits
// forever (the program does not verify) or if sizes do not fit.
StatusOr<std::vector<std::vector<std::byte>>> Interpret(const Program& program, const Collective& collective,
                                                        const std::vector<std::vector<std::byte>>& inputs,
                                                        const InterpretOptions& options);

}  // namespace xccl
