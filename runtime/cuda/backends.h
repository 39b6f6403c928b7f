// CUDA's back ends for communicators. Buffers are device memory, a call's stream is a CUDA stream (null: the
// default one), and a call is one kernel on it. Plans bring generated source, or `emit` makes it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/program.h"
#include "runtime/backend.h"
#include "runtime/cuda/device_program.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/proxy.h"
#include "runtime/host/exchange.h"

namespace xccl::cuda {

// The images of a plan's kernel.
using PlanImages = std::function<StatusOr<KernelImages>(const std::string& name, const ServedPlan& plan)>;
// Made from the source that the plan book has; none where it has none.
PlanImages ImagesOfBook(std::shared_ptr<KernelCache> cache);

struct BackendOptions {
  DeviceProgramOptions program;
  PlanImages images;
  // The interpreter kernel of a program, for plans without a kernel. Empty: such plans are refused.
  std::function<KernelImages(const Program& program)> interpreter = {};
  std::shared_ptr<Residency> residency;  // for communicators to reserve from; empty: the process's
  // The communicator's, where it launches more than plans; empty: one is made.
  std::shared_ptr<CommunicatorShare> share = {};
  // Where the ranks of ProcessBackend are on several hosts.
  std::optional<OtherHosts> hosts = {};
};

// The programs of a communicator share it.
std::shared_ptr<CommunicatorShare> ShareOf(const BackendOptions& options);

// All ranks of a communicator in this process, rank r on devices[r]; several may share one. They connect when
// the first of them loads. The driver outlives the back ends.
StatusOr<std::vector<Backend>> ThreadBackends(const Driver& driver, const std::vector<int32_t>& devices,
                                              const BackendOptions& options);

// One rank, the others being processes. Those of a host meet under `name` (SocketExchange) when they load
// their first plans; BackendOptions::hosts connects with those of other hosts.
// Errors of load: kInvalidInput for protocols LL and LL128 between hosts.
StatusOr<Backend> ProcessBackend(const Driver& driver, const std::string& name, Rank rank, int32_t ranks,
                                 int32_t device, std::chrono::nanoseconds time_limit,
                                 const BackendOptions& options);

}  // namespace xccl::cuda
