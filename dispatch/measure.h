// Runs an expert plan on drawn routings and checks every byte against one process that knows all choices.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/routing.h"
#include "ir/numbers.h"

namespace xccl::dispatch {

struct MeasureOptions {
  RoutingSource routing;
  int32_t tokens = 0;  // on every rank; at most the plan's. A file has its own
  DataType type = DataType::kBfloat16;
  int32_t calls = 20;
  uint64_t seed = 0;
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
};

// One dispatch or combine of one drawn routing.
struct Measured {
  double time_us = 0;
  int64_t wrong = 0;  // bytes of rows, counts, and elements of sums
  // Bytes of rows: all that ranks get with their own tokens, as DeepEP counts; those that crossed the fabric
  // between domains; those that moved inside domains.
  int64_t logical_bytes = 0, fabric_bytes = 0, inside_bytes = 0;
};

struct MeasuredCall {
  Measured dispatch, combine;
};

// Inputs are such that every sum is exact in every order, so all comparisons are bitwise. `show` gets each
// call when it is done. combine has row_bytes of elements too. Errors: those of ExpertTeam.
Status Measure(const ExpertPlan& plan, const MeasureOptions& options,
               const std::function<Status(const MeasuredCall&)>& show);

// The most tokens of a rank with which a run of the plan holds about half a GiB of rows.
int32_t TokensThatFit(const Sizes& sizes);

}  // namespace xccl::dispatch
