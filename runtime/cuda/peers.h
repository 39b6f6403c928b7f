// The buffers of callers that all devices of a program in one process reach, so that messages may skip the
// slots. Memory of cuMemAlloc is reached once the contexts are peers. Mappings and memory of pools are
// reached by the devices that their maker chose; the driver is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gpu.h"

namespace xccl::cuda {

// Safe from any thread.
class PeerReach {
 public:
  // Requires: different devices.
  explicit PeerReach(std::vector<std::shared_ptr<const Gpu>> gpus) : gpus_(std::move(gpus)) {}

  // Makes every context a peer of every other. Errors: the driver's for the first pair that it refuses.
  Status Enable() const;
  // Whether every device may read and write all these bytes. Asked once for an allocation and a place in it;
  // memory whose makers change the access later must not be used by then. False where the driver does not
  // know the memory.
  bool Covers(DevicePointer address, size_t bytes);

 private:
  bool Ask(DevicePointer address, size_t bytes) const;

  const std::vector<std::shared_ptr<const Gpu>> gpus_;
  std::mutex mutex_;                                                   // guards known_
  std::map<std::tuple<uint64_t, DevicePointer, size_t>, bool> known_;  // by id of the allocation, and place
};

}  // namespace xccl::cuda
