// A caller's request, and the plan that serves it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "runtime/plan_book.h"
#include "runtime/transport/wiring.h"

namespace xccl {

// One call, as NCCL counts: `count` elements are the whole buffer of allreduce, broadcast and reduce, else
// one rank's share.
struct Call {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  int64_t count = 0;
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  std::optional<Rank> root;
  void* stream = nullptr;  // for back ends that have streams
  // An element that this rank's input is multiplied by before it is reduced; not on back ends that run whole
  // programs.
  std::optional<std::array<std::byte, 8>> scalar = {};
};

// A plan ready to serve calls.
struct ServedPlan {
  PlanBookEntry entry;
  Collective collective;
  Program program;
  std::vector<Rails> rails = {};       // by the program's connections; empty: the first everywhere
  std::string kernel = {};             // generated source, where the book has it
  std::vector<PlanCubin> cubins = {};  // made from it; their files are paths
};

}  // namespace xccl
