// Expert dispatch and combine by kernels (abi.h): memory, connections and launches. A call is one kernel on
// the caller's stream. It computes all counts and offsets itself, so the host waits for nothing, and a
// captured launch may be replayed with other choices, other tokens and other rows in the same buffers. Rows
// go through peers' memory that is mapped here, so all ranks are of one host.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "dispatch/plan.h"
#include "ir/numbers.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/kernel.h"
#include "runtime/cuda/launch_orders.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/residency.h"
#include "runtime/experts/cuda/abi.h"
#include "runtime/experts/cuda/layout.h"
#include "runtime/host/exchange.h"

namespace xccl::dispatch {

// The image of the kernel for combine's rows of a type (images.h).
using ExpertImages = std::function<StatusOr<std::string>(DataType type, int32_t arch)>;

struct GpuExpertOptions {
  std::vector<DataType> types = {DataType::kBfloat16};  // of combine's rows; each has a kernel
  int64_t back_bytes = 0;  // of combine's longest row; 0: twice the plan's, as fp8 rows come back as bfloat16
  // Threadblocks of a rank's call, equal on all ranks. Absent: kDefaultBlocks, or one of each role where that
  // is more.
  std::optional<int32_t> max_ctas = {};
  int32_t workers = 0;  // threadblocks of each role, equal on all ranks; 0: ChooseWorkers, within max_ctas
  int64_t memory_limit = int64_t{1} << 30;    // of a rank's arena
  std::string memory_hint = "--slot-memory";  // the caller's name of memory_limit, for errors
  std::string ctas_hint = "--max-ctas";       // likewise of max_ctas
  std::chrono::nanoseconds time_limit = {};   // of a wait in a kernel; 0: none
  std::vector<int32_t> host_of = {};          // by rank; empty: all are of this host
  // The communicator's, whose other kernels these launches follow. Null: the caller orders them, each rank's
  // behind its last.
  std::shared_ptr<cuda::CommunicatorShare> share = nullptr;
};

struct LocalExpertRank {
  int32_t rank = 0;
  std::shared_ptr<const cuda::Gpu> gpu;
};

// The device's memory of one dispatch: its counts, offsets and lists, and what its combine needs. Several may
// be in use. It must outlive the kernels that use it.
class GpuHandle {
 public:
  const device::ExpertHandle& tables() const { return tables_; }  // addresses of the device
  // Where they were asked for: the words of ExpertHandle::host_counts, as the host reads them.
  const uint32_t* host_counts() const { return reinterpret_cast<const uint32_t*>(host_.host()); }

 private:
  friend class GpuExperts;
  cuda::DeviceMemory memory_;
  cuda::PinnedMemory host_;
  device::ExpertHandle tables_;
};

// Buffers of the device, as ExpertArgs has them. Rows and scales are aligned to 16 bytes; `received` and
// `received_scales` have one for every place.
struct GpuDispatch {
  const int32_t* tokens = nullptr;
  int32_t own_tokens = 0;  // where `tokens` is null
  bool same_choices = false;
  const void* experts = nullptr;
  bool wide_experts = false;
  const float* weights = nullptr;
  int64_t row_bytes = 0, scale_bytes = 0;
  const char* rows = nullptr;
  const char* scales = nullptr;
  char* received = nullptr;
  char* received_scales = nullptr;
  device::PlaceTables told = {};
  // The handle's tables where another place is given for them.
  int32_t* num_rows = nullptr;
  int32_t* rows_of_home = nullptr;
  int32_t* rows_of_expert = nullptr;
  int32_t* first_of_expert = nullptr;
  int32_t* row_of_entry = nullptr;
  float* weight_of_entry = nullptr;
  std::optional<int64_t> most_entries = {};  // room in the last two; absent: for all that may come
};
struct GpuCombine {
  device::ExpertOutputs outputs_are = device::ExpertOutputs::kWeighted;
  const char* outputs = nullptr;
  char* result = nullptr;  // a row for each token of this rank
  DataType type = DataType::kBfloat16;
  int64_t elements = 0;  // of a row
};

class GpuExperts {
 public:
  ~GpuExperts();  // makes kernels that were launched through a share leave, and waits for all of them
  GpuExperts(const GpuExperts&) = delete;
  GpuExperts& operator=(const GpuExperts&) = delete;

  // The errors of Connect that all ranks find alike: kInvalidInput for ranks of several hosts, for fewer CTAs
  // than roles, and for more tokens than kernels count.
  static Status Check(const std::string& name, const ExpertPlan& plan, const GpuExpertOptions& options);
  // `ranks`: those of this process; the others are of the exchange's other parties, which make the same call.
  // While kernels run, the exchange's check() says whether another party has failed. Requires: the plan is
  // proved and outlives this. Errors: those of Check; kInvalidInput for memory or multiprocessors that do not
  // suffice, for devices that share memory by legacy IPC with another process, for other options there, for
  // what images refuses; those of the driver and the exchange.
  static StatusOr<std::unique_ptr<GpuExperts>> Connect(std::string name, const ExpertPlan& plan,
                                                       const ExpertImages& images,
                                                       std::vector<LocalExpertRank> ranks, Exchange exchange,
                                                       const GpuExpertOptions& options);

  // host_counts: the counts are also written to memory of the host, before the kernel ends.
  StatusOr<GpuHandle> MakeHandle(int32_t rank, bool host_counts) const;

  // Queues a rank's part of a call. All ranks make the same calls in the same order, with rows of the same
  // size; those that share a device on a stream each. Ranks may have a thread each. Errors: kInvalidInput for
  // a row that does not fit; the driver's; a failure of an earlier call.
  Status Dispatch(int32_t rank, const GpuHandle& handle, const GpuDispatch& buffers, cuda::Stream stream);
  Status Combine(int32_t rank, const GpuHandle& handle, const GpuCombine& buffers, cuda::Stream stream);

  // The errors that Dispatch and Combine return for rows of a size and a type.
  Status CheckDispatch(int64_t row_bytes, int64_t scale_bytes) const;
  Status CheckCombine(DataType type, int64_t elements) const;

  // Whether a kernel gave up, without waiting: kInvalidInput for a number of the caller's that it refused,
  // kLimit for a wait that took too long; the reason of Abort; a failure of another process; the driver's for
  // a kernel that crashed and was launched through the communicator's share, outside of graphs.
  Status Failure() const;
  // Waits for the launches of a rank through the communicator's share, outside of graphs, whatever the other
  // ranks launch. Where a kernel gave up or a process failed, those of this process are made to leave.
  // Returns Failure().
  Status Synchronize(int32_t rank);
  // Makes running kernels leave. Later calls fail with the reason, if there is one.
  void Abort(const Status& reason = {});

  const GpuShape& shape() const { return shape_; }
  int32_t dispatch_blocks() const;

 private:
  struct RankState {
    LocalExpertRank local;
    cuda::DeviceMemory arena, tables;
    cuda::OwnedEvent done = {};  // with a share: after the last launch
  };

  GpuExperts(std::string name, const ExpertPlan& plan, Exchange exchange, const GpuExpertOptions& options)
      : name_(std::move(name)), plan_(plan), exchange_(std::move(exchange)), options_(options) {}
  Status LoadKernels(const ExpertImages& images);
  Status MakeArenas();
  Status MapPeers();
  Status WriteTables(const std::map<int32_t, std::vector<uint64_t>>& arenas);
  Status Launch(const RankState& state, device::ExpertArgs& args, DataType type, cuda::Stream stream);
  Status LaunchInOrder(const RankState& state, const cuda::Kernel& kernel, device::ExpertArgs& args,
                       cuda::Stream stream);
  size_t IndexOf(const RankState& state) const { return static_cast<size_t>(&state - ranks_.data()); }
  Status Await(const RankState& state);
  Status Recorded() const;  // Failure, without a call of the driver
  RankState* Find(int32_t rank);
  const RankState* Find(int32_t rank) const;
  std::string Describe(const device::ErrorRecord& record) const;

  const std::string name_;
  const ExpertPlan& plan_;
  const Exchange exchange_;
  const GpuExpertOptions options_;
  GpuShape shape_;
  GpuLayouts layouts_;
  std::map<int32_t, std::shared_ptr<const cuda::Gpu>> gpus_;      // by device
  std::map<std::pair<int32_t, DataType>, cuda::Kernel> kernels_;  // by device and type
  std::unique_ptr<cuda::Reservation> reservation_;                // without a share
  cuda::PinnedMemory record_;  // the word that aborts, then an ErrorRecord for each of ranks_
  std::vector<cuda::DeviceMemory> mapped_;
  std::vector<RankState> ranks_;
  std::vector<std::atomic<bool>> launched_;  // by index of ranks_: once, at least, through the share
  mutable std::mutex mutex_;                 // guards what follows
  Status aborted_;
};

}  // namespace xccl::dispatch
