// Runs an expert plan on drawn routings and checks every byte against one process that knows all choices.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/report.h"
#include "dispatch/routing.h"
#include "ir/numbers.h"
#include "runtime/launched/launched_group.h"

namespace xccl::dispatch {

struct MeasureOptions {
  RoutingSource routing;
  int32_t tokens = 0;  // on every rank; at most the plan's. A file has its own
  DataType type = DataType::kBfloat16;
  int32_t calls = 20;
  uint64_t seed = 0;
  std::chrono::nanoseconds patience = std::chrono::seconds(30);
  bool processes = false;          // a process for each rank instead of a thread
  LaunchedGroup* group = nullptr;  // where a launcher started a process for each rank; else null
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

// Runs options.calls calls and returns all, with the time of the slowest rank of each. Ranks that a launcher
// started all call it and get the same. Inputs are such that every sum is exact in every order, so all
// comparisons are bitwise. combine has row_bytes of elements too. Requires: for processes, that the caller
// has no other threads; of a group, that it has as many ranks as the plan. Errors: those of WireExperts and
// of the calls.
StatusOr<std::vector<MeasuredCall>> Measure(const ExpertPlan& plan, const MeasureOptions& options);

// A line for each dispatch and combine of a run.
std::vector<Facts> FactsOf(const std::vector<MeasuredCall>& calls, int32_t ranks);

// The most tokens of a rank with which a run of the plan holds about half a GiB of rows.
int32_t TokensThatFit(const Sizes& sizes);

}  // namespace xccl::dispatch
