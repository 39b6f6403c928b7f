// All ranks of a program in one process, with everything that a kernel expects in memory: connections,
// counters, scratch, tables. Runs a HostKernel and returns every rank's output. Successive launches share
// the counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "device/host.h"
#include "ir/collective.h"
#include "ir/kernel/kernel_form.h"
#include "ir/numbers.h"
#include "ir/program.h"

namespace xccl::testing {

using Buffers = std::vector<std::vector<std::byte>>;

struct HostLaunch {
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int64_t size_bytes = 0;
  bool in_place = false;
  uint64_t apart = 0;       // bit r: rank r is out of place although `in_place`
  bool direct = false;      // peers' buffers are mapped
  bool registered = false;  // with a switch: all ranks' buffers lie in memory that it reaches
  bool scattered = false;   // buffers start one or two elements after a multiple of 16 bytes
  bool whole = false;       // floating inputs are 1 or 2, so that their order in a sum is all one
  uint64_t jitter = 0;
  int64_t spin_limit_ns = 60'000'000'000;
  device::HostShape shape = {};  // shape of every block
};

// Arbitrary bits for integers; for floating types numbers near one, some of them special.
Buffers RandomInputs(const Program& program, const Collective& collective, const HostLaunch& launch);

class HostMachine {
 public:
  // `first_step` is the number of messages that every connection has already had. `with_switch`: groups
  // have a multicast address. Requires: the kernel was made from this program, or is null for the
  // interpreter kernel.
  HostMachine(const Program& program, const Collective& collective, const device::HostKernel* kernel,
              Protocol protocol, int64_t slot_bytes, uint64_t first_step = 0, bool with_switch = false);
  ~HostMachine();

  // `inputs` are as for Interpret. Bytes that nobody writes are 0xCB. Errors: the contents of the error
  // record.
  StatusOr<Buffers> Run(const Buffers& inputs, const HostLaunch& launch);
  // Runs only some ranks, in one launch per call; for time-outs.
  StatusOr<Buffers> RunRanks(const Buffers& inputs, const HostLaunch& launch, int32_t first_rank,
                             int32_t ranks);

  // The number of bytes in slots, all connections together, that are no longer zero.
  int64_t SlotBytesUsed() const;
  // Does a root's own slot hold another neutral element than zeros?
  bool HoldsNeutral() const;
  // The number of loads and stores at multicast addresses so far, over all machines.
  static int64_t SwitchAccesses();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace xccl::testing
