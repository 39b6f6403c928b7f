// A communicator's interface to a back end. It connects the communicator's rank with the others, whose
// messages its own thread then moves (CPU), or it runs whole programs (CUDA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/sizes.h"
#include "runtime/endpoint.h"
#include "runtime/served_plan.h"
#include "runtime/transport/wiring.h"

namespace xccl {

// Loaded plans that run on a device in the order of its streams, without a thread of the communicator. All
// functions may be called by any thread.
struct ProgramRunner {
  std::vector<std::string> notices;  // lines about what was loaded that its user should know
  // Queues a call and returns. All ranks launch the same calls in the same order.
  std::function<Status(size_t plan, const Call& call, const CollectiveSizes& sizes, bool in_place)> launch;
  std::function<Status()> synchronize;  // waits for what this rank launched, whatever other ranks launch
  std::function<Status()> error;        // the first failure of any rank, without waiting
  std::function<void(const Status& reason)> abort;
  // Makes a buffer reachable to peers and gives a handle, on all ranks in the same order; the reverse, when
  // all calls that use it have ended. Empty: not needed, since peers reach a rank's buffers or never do.
  std::function<StatusOr<int32_t>(const std::byte* buffer, size_t bytes)> register_buffer = {};
  std::function<Status(int32_t handle)> deregister_buffer = {};
};

// Objects that the ranks of one process share, made in turn: the k-th call of every rank gets the k-th T,
// which the first rank to come makes. Safe from any thread; results stay where they are.
template <typename T>
class SharedInTurn {
 public:
  // `what` the ranks load, for errors.
  explicit SharedInTurn(std::string what = "plan books") : what_(std::move(what)) {}
  // `make` gives a StatusOr<T>; `fits` says whether a T is what this rank asks for too.
  template <typename Make, typename Fits>
  StatusOr<T*> Get(size_t k, const Make& make, const Fits& fits) {
    const std::lock_guard lock(mutex_);
    if (k == made_.size()) {
      XCCL_ASSIGN_OR_RETURN(T one, make());
      made_.push_back(std::move(one));
    }
    if (k > made_.size() || !fits(made_[k]))
      return InvalidInput("ranks load different " + what_ + "; expected the same in the same order");
    return &made_[k];
  }

 private:
  const std::string what_;
  std::mutex mutex_;
  std::deque<T> made_;
};

struct Backend {
  bool one_address_space = false;  // connected ranks may read each other's buffers
  // This rank's end of new connections. All ranks call it with the same wirings in the same order. The
  // endpoint must not outlive the back end.
  std::function<StatusOr<std::unique_ptr<Endpoint>>(const Wiring&)> connect;
  // Set where the back end runs whole programs; then `connect` is not used. All ranks call it with
  // the same plans in the same order. The runner must not outlive the back end.
  std::function<StatusOr<ProgramRunner>(const std::string& name, const std::vector<ServedPlan>& plans)> load;
  // Set where ranks are processes. All ranks call it before they connect or load, each with what became of
  // its reading and a hash of what it read, and get the failure of any. May wait for the slowest.
  std::function<Status(const Status& mine, uint64_t hash)> agree = {};
  // Likewise: a failure of any rank, without waiting.
  std::function<Status()> error = {};
};

}  // namespace xccl
