// Ranks of an expert plan that are threads of this process, driven by one caller who has all tokens: for
// tests and examples. Programs whose ranks have their own use ExpertRank, or xccl.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/received.h"
#include "dispatch/routing.h"
#include "ir/numbers.h"
#include "runtime/experts/wires.h"

namespace xccl::dispatch {

class ExpertTeam {
 public:
  // Threads wait for work until the team ends. `patience`: a call in which no rank makes progress for so long
  // fails, and with it the team. Requires: the plan is proved and outlives the team. Errors: those of
  // WireExperts; kSystem.
  static StatusOr<std::unique_ptr<ExpertTeam>> Create(const ExpertPlan& plan,
                                                      std::chrono::nanoseconds patience,
                                                      const WireOptions& options = {});
  virtual ~ExpertTeam() = default;

  // rows: by rank, row_bytes for each of its tokens. Errors: kInvalidInput where the routing or the rows do
  // not fit; those of ExpertRank::Dispatch.
  virtual StatusOr<std::vector<Received>> Dispatch(const Routing& routing, std::span<const Rows> rows) = 0;

  // outputs: by rank, a row of the type for each of its entries, in their order; all rows have `elements`
  // elements. Returns, by rank, a row for each of its tokens, as ExpertRank::Combine says.
  virtual StatusOr<std::vector<Rows>> Combine(std::span<const Received> received, DataType type,
                                              int64_t elements, std::span<const Rows> outputs) = 0;

 protected:
  ExpertTeam() = default;
};

}  // namespace xccl::dispatch
