// Counts the multiprocessors that each communicator holds. A kernel waits for others while it runs, so all
// its blocks must run at once, and so must the blocks of every communicator that may run beside it. On each
// device, a process's communicators together, each with its largest kernel, may fill no more multiprocessors
// than the device has. Plans that do not fit are refused when they are loaded. The rule holds within a
// process; between processes of one device the driver takes turns. Launches of one communicator follow each
// other, and several communicators launch in the same order on all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/status.h"

namespace xccl::cuda {

class Reservation;

// Safe from any thread. Shared by the communicators that it counts.
class Residency {
 public:
  // The process's own.
  static const std::shared_ptr<Residency>& OfProcess();
  int32_t held(int32_t device) const;

 private:
  friend class Reservation;
  mutable std::mutex mutex_;
  std::map<int32_t, int32_t> held_;  // multiprocessors by device
};

// The multiprocessors that one communicator holds, on each device as many as the largest of its kernels
// needs: its plans share them. Gives everything back at its end. Safe from any thread.
class Reservation {
 public:
  // ctas_hint: the caller's name of a limit of threadblocks, for errors.
  explicit Reservation(std::shared_ptr<Residency> residency, std::string ctas_hint = "--max-ctas")
      : residency_(std::move(residency)), ctas_hint_(std::move(ctas_hint)) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  // Holds at least `multiprocessors` of a device's `there_are` from here on. `what` is the kernel, `blocks`
  // its grid. Errors: kInvalidInput "WHAT: 80 blocks need 40 multiprocessors at once; device 0 has 132, and
  // other communicators of this process hold 102; hint: --max-ctas".
  Status Raise(int32_t device, int32_t there_are, int32_t multiprocessors, int32_t blocks,
               const std::string& what);

 private:
  std::shared_ptr<Residency> residency_;
  const std::string ctas_hint_;
  std::map<int32_t, int32_t> held_;  // by device; residency_'s mutex guards it
};

}  // namespace xccl::cuda
