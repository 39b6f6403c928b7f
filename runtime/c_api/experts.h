// Plans of expert dispatch that a communicator has loaded, and the handles of their calls.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "dispatch/plan.h"
#include "dispatch/received.h"
#include "runtime/c_api/handles.h"
#include "runtime/experts/rank.h"
#include "runtime/experts/wires.h"
#include "runtime/xccl.h"

namespace xccl::c_api {

// It stays where it is, since the wires and the rank point to the plan.
struct LoadedExperts {
  explicit LoadedExperts(dispatch::ExpertPlan read) : plan(std::move(read)) {}
  dispatch::ExpertPlan plan;
  std::string file = {};  // the plan's, without its folder
  std::optional<dispatch::ExpertWires> wires;
  // The communicator's thread alone calls it. Its endpoint is the communicator's, which outlives its calls.
  std::unique_ptr<dispatch::ExpertRank> rank;
};

// A handle that xcclExpertsCreate gave.
struct Experts {
  static constexpr const char* kMissing = "no such handle of experts: it was destroyed, or never made";
  Status CheckUsable() const { return OkStatus(); }

  xcclComm_t comm = nullptr;
  std::shared_ptr<const LoadedExperts> loaded;
  std::mutex mutex;               // guards what follows
  std::optional<int32_t> tokens;  // of its last dispatch with choices, once one was queued
  dispatch::Received ways;        // used by the communicator's thread alone
};

// Reads a proved plan for as many ranks as the communicator has.
StatusOr<std::shared_ptr<LoadedExperts>> ReadExperts(const std::string& path, int32_t ranks);

xcclExperts_t AddExperts(std::shared_ptr<Experts> experts);
// Errors: kUsage for a handle that is destroyed.
StatusOr<std::shared_ptr<Experts>> FindExperts(xcclExperts_t handle);
StatusOr<std::shared_ptr<Experts>> DropExperts(xcclExperts_t handle);

}  // namespace xccl::c_api
