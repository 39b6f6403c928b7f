// The state that the programs of one communicator share in a process: the multiprocessors that they hold, and
// each rank's order of launches. A kernel fills its blocks' multiprocessors until all ranks have launched, so
// a rank's kernels, of whichever program and stream, run one after another.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/residency.h"

namespace xccl::cuda {

// Safe from any thread.
class LaunchOrders {
 public:
  // The thread that launches for a rank holds this meanwhile. Other ranks' threads do not need it: a launch
  // may wait for room in the device's queue, which their launches make.
  std::mutex& Turn(Rank rank);

  // With the rank's turn: makes `stream` wait for the rank's launch before. Errors: kInvalidInput where that
  // stream would first have to run another rank's kernel, which waits for this one; those of the driver.
  Status Follow(Rank rank, const Gpu& gpu, Stream stream, const std::string& program);
  // With the rank's turn: it launched on `stream`, and `done` was recorded behind that.
  void Launched(Rank rank, const Gpu& gpu, Stream stream, Event done);
  // With the rank's turn: its launch went into a graph. Its replays are ordered by the graph's user.
  void Captured(Rank rank);
  // An event is at its end, and what it was recorded behind is done.
  void Forget(Event done);

 private:
  struct Order {
    std::mutex turn;
    int64_t launches = 0;  // the rank's number of launches; all ranks launch the same
    DeviceId device = 0;
    Stream stream = nullptr;    // the last launch's
    std::optional<Event> done;  // the last launch's; absent: it is over, or there was none
  };
  std::mutex mutex_;  // guards all but the turns; held for moments
  std::map<Rank, Order> orders_;
};

struct CommunicatorShare {
  // Takes what Reservation takes.
  explicit CommunicatorShare(std::shared_ptr<Residency> residency, std::string ctas_hint = "--max-ctas")
      : reservation(std::move(residency), std::move(ctas_hint)) {}
  Reservation reservation;
  LaunchOrders orders;
};

}  // namespace xccl::cuda
