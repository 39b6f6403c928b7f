// The ranks of NCCL's communicators that this process has, each with the state that the shim keeps for it.
// NCCL's handle stays the program's handle: the table stands beside it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/status.h"
#include "runtime/cuda/gpu.h"
#include "runtime/nccl/shim/coverage.h"
#include "runtime/nccl/shim/nccl.h"
#include "runtime/xccl.h"

namespace xccl::nccl_shim {

struct Member {
  NcclComm nccl = nullptr;
  int rank = 0, ranks = 0;
  std::shared_ptr<const cuda::Gpu> gpu;

  // kUndecided until the ranks have agreed; equal on all of them after that.
  enum class State : uint8_t { kUndecided, kNccls, kOurs };
  std::atomic<State> state = State::kUndecided;
  std::mutex mutex;           // guards what follows
  xcclComm_t ours = nullptr;  // from when it is made
  uint64_t family = 0;        // equal for the ranks of one communicator in this process
  bool aborted = false;
  std::set<std::string> told;  // why calls went to NCCL, each once

  // Records of all ranks, with which they agree. It stays as long as the member: to give memory back waits
  // for what runs on the device, which may wait for this thread.
  cuda::Owned<cuda::DevicePointer, &cuda::Driver::MemFree> records;

  // Leaves all calls to NCCL; ends what runs of ours, on all ranks.
  void GiveUp();
  // As GiveUp; ranks that wait for this rank to agree also give up.
  void Abort();
  // The communicator that runs the plans; null where there is none.
  xcclComm_t Ours();
};

// The entry of a rank, made when it is asked for first. Errors: those of NCCL's functions that say which rank
// it is, as their result code; the driver's.
int FindMember(const Nccl& nccl, const cuda::Driver& driver, NcclComm comm, std::shared_ptr<Member>& member);
// Null where nothing is known of it.
std::shared_ptr<Member> KnownMember(NcclComm comm);
// Returns the entry as KnownMember does, and removes it from the table.
std::shared_ptr<Member> DropMember(NcclComm comm);

// For a process that ends: the communicators of ours that it has not destroyed, so that the other ranks see
// no failure: NCCL's communicators need not be destroyed either. A communicator that is stuck is left behind
// after a second.
void DestroyAll() noexcept;

}  // namespace xccl::nccl_shim
