// One Program, connected: the ranks of this process, their arenas on the devices, the peers' arenas mapped,
// the kernels loaded. Launching queues one kernel on the caller's stream and returns. It waits only where a
// size or a pair of type and operator comes for the first time. Counters live on the device, so a captured
// launch may be replayed.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "device/abi.h"
#include "ir/collective.h"
#include "ir/kernel/kernel_form.h"
#include "ir/numbers.h"
#include "ir/program.h"
#include "ir/sizes.h"
#include "runtime/cuda/arena.h"
#include "runtime/cuda/constants.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/kernel.h"
#include "runtime/cuda/launch_orders.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/peers.h"
#include "runtime/cuda/proxy.h"
#include "runtime/cuda/switches.h"
#include "runtime/host/exchange.h"

namespace xccl::cuda {

struct LocalRank {
  Rank rank;
  std::shared_ptr<const Gpu> gpu;
};

class BufferRegistry;

// The image of the program's kernel for a type, an operator and an architecture.
using KernelImages = std::function<StatusOr<std::string>(DataType type, ReduceOp op, int32_t arch)>;

struct DeviceProgramOptions {
  ArenaOptions arena;
  // The largest call, by nccl-tests' size: slots hold its messages. Larger calls take more passes. Absent:
  // not known. It is equal on all ranks.
  std::optional<int64_t> most_bytes = {};
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);  // limit of a wait without progress
  // Blocks of one rank: as many instances as fit. Absent: kDefaultBlocks, or one instance where that is more.
  std::optional<int32_t> max_ctas;
  std::string ctas_hint = "--max-ctas";  // the caller's name of max_ctas, for errors
  bool one_launch = false;               // all ranks of this process on a device in one cooperative launch
  bool direct = true;                    // peers' buffers are used where they are mapped
  bool multicast = true;                 // groups go through the switch where there is one
  uint64_t jitter = 0;                   // not 0: seed of random delays
  // Connections begin as if so many messages had passed, to see counters and flags wrap. Programs with groups
  // begin at 0.
  uint64_t first_message = 0;
  // The interpreter kernel, for a program that has no kernel of its own (`no_kernel` says why, for notice())
  // or whose kernel cannot be compiled. Empty: such programs are refused.
  KernelImages interpreter = {};
  std::string no_kernel = "it has no kernel of its own";
  // Buffers that the other processes' ranks may reach. Requires: one rank in this process.
  std::shared_ptr<BufferRegistry> buffers = {};
  // Where ranks are on several hosts. Requires: one rank in this process, and protocol simple where the
  // program has connections between hosts.
  std::shared_ptr<Proxy> proxy = {};
  std::vector<Rails> rails = {};  // between hosts, by the program's connections; empty: the first everywhere
};

// The configuration that is executed: the same on all ranks.
struct DeviceCall {
  DataType type = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
};
struct DeviceBuffers {
  DevicePointer input = 0, output = 0;
};

// The resources that one rank takes.
struct DeviceUsage {
  int32_t ctas = 0, threads = 0, instances = 0;
  int32_t ctas_per_multiprocessor = 0, registers = 0;
  int64_t arena_bytes = 0, scratch_bytes = 0;
  int64_t table_bytes = 0;  // the interpreter kernel's table; 0: the kernel is generated code
  int64_t slot_bytes = 0;
  // The path of messages of groups with a switch: "" where there are none, "through the switch", "through the
  // switch, in registered buffers", or "member by member: " and why.
  std::array<char, 200> groups = {};
};

// Safe from any thread. A launch waits for no kernel and no other rank's thread, but for two cases. The
// driver makes it wait where some 1,000 launches of the rank have not ended. The first launch of a type and
// operator loads their kernel on all devices of the process, and may wait for what runs there: a thread that
// drives several ranks makes this call for each of them before it makes the next for any.
class DeviceProgram {
 public:
  // All processes call it for the same program, in the same order. `exchange`: of the processes of this host.
  // `images`: empty where there is no
  // generated kernel. `first`: the pair that is compiled at once. Where one process needs the interpreter
  // kernel, all run it. `share` is the communicator's. Requires:
  // the program verifies; `ranks` ascending, those of a device consecutive where one_launch. Errors: those of
  // the kernel, of memory (with what is needed), of the exchange; kInvalidInput where the blocks do not fit.
  static StatusOr<std::unique_ptr<DeviceProgram>> Connect(std::string name, const Program& program,
                                                          const Collective& collective, KernelImages images,
                                                          std::vector<LocalRank> ranks,
                                                          const Exchange& exchange, const DeviceCall& first,
                                                          const DeviceProgramOptions& options,
                                                          std::shared_ptr<CommunicatorShare> share);
  // Waits for what was launched, and on several hosts for all ranks to end it.
  ~DeviceProgram();

  // Queues one rank's share. Requires: not one_launch. All ranks launch the same calls in the same order.
  // Errors: an earlier failure; kInvalidInput where a new size cannot be set up while the stream is captured
  // into a graph.
  Status Launch(Rank rank, const DeviceBuffers& buffers, const CollectiveSizes& sizes, const DeviceCall& call,
                Stream stream);
  // Queues all of this process's ranks, one launch a device. Requires: one_launch; one entry of buffers a
  // rank; one stream a device, in order of their numbers.
  Status LaunchAll(std::span<const DeviceBuffers> buffers, const CollectiveSizes& sizes,
                   const DeviceCall& call, std::span<const Stream> streams);

  // Tells the kernels what is registered. Called on all ranks before the next launch, whenever that changes.
  Status BuffersChanged();

  // The first failure, without waiting: a threadblock that gave up ("rank 3: threadblock 2, instruction 5
  // (recv): expected ..."), an abort, a peer's process that ended, an error of the driver.
  Status Error();
  // Waits until everything launched on any stream is done. Requires: nobody launches meanwhile, since a
  // rank's next launch may need another rank that waits here.
  Status Synchronize();
  // Waits until everything launched of one rank is done, whatever the others launch. Requires: not
  // one_launch.
  Status Synchronize(Rank rank);
  // Makes all running kernels leave; later launches fail with `reason`.
  void Abort(const Status& reason);

  DeviceUsage usage();
  // One line if the interpreter kernel runs the program: "ring.json: runs on the interpreter kernel: ...".
  const std::string& notice() const { return notice_; }
  const std::vector<LocalRank>& ranks() const { return ranks_; }

 private:
  struct RankState;
  struct DeviceState;
  struct Prepared;
  // The address at which each device sees each rank's arena; 0: it does not.
  using SeenArenas = std::map<int32_t, std::vector<DevicePointer>>;

  DeviceProgram(std::string name, const Program& program, const Collective& collective, KernelImages images,
                std::vector<LocalRank> ranks, Exchange exchange, const DeviceProgramOptions& options);
  Status ChooseKernel(const DeviceCall& first);
  Status Interpret();
  Status AgreeOnInstances(const Kernel& kernel);
  // Gives `mine` to all processes of all hosts, and returns theirs by process, or by rank between hosts.
  StatusOr<std::vector<std::string>> TellAll(std::string mine) const;
  RemoteMemory Remote() const { return line_ == nullptr ? RemoteMemory() : line_->memory(); }
  Status ConnectRanks(const DeviceCall& first);
  std::vector<std::shared_ptr<const Gpu>> Gpus() const;  // by id
  void AllowDirect();
  Status MakeArenas();
  Status ConnectHosts();
  Status MapPeers();
  Status WriteAt(size_t local, int64_t offset, std::span<const std::byte> bytes);
  Status WriteArena(size_t local, std::span<const DevicePointer> arenas);
  Status WriteFirstMessage(size_t local);
  Status WriteWindows(size_t local);
  Status ConnectGroups();
  Status WriteGroups(size_t local, std::span<const DevicePointer> arenas);
  Status WriteRankArgs(size_t local);
  Status LoadKernels(const DeviceCall& call);
  StatusOr<Kernel> LoadKernel(const DeviceState& device, const DeviceCall& call) const;
  StatusOr<const Kernel*> KernelFor(DeviceState& device, const DeviceCall& call);
  StatusOr<const Prepared*> Prepare(size_t local, const CollectiveSizes& sizes, const DeviceCall& call);
  Status GrowScratch(size_t local, const CollectiveSizes& sizes);
  int32_t WindowOf(DevicePointer buffer, size_t bytes);
  StatusOr<device::RankBuffers> BuffersOf(size_t local, const DeviceBuffers& buffers,
                                          const CollectiveSizes& sizes, const DeviceCall& call);
  Status LaunchRanks(size_t first, std::span<const DeviceBuffers> buffers, const CollectiveSizes& sizes,
                     const DeviceCall& call, Stream stream);
  Status Queue(const device::LaunchArgs& args, const Kernel& kernel, size_t first, Stream stream);
  Status Ready();
  Status Wait(RankState& state) const;
  void Await(size_t local);
  size_t LocalOf(Rank rank) const;  // index in ranks_
  Status ReadRecord();
  std::string Describe(const device::ErrorRecord& record) const;
  int32_t RankBlocks() const { return form_.blocks_per_rank * shape_.instances; }

  const std::string name_;
  const Program program_;
  const Collective collective_;
  const KernelImages images_;
  const std::vector<LocalRank> ranks_;
  const Exchange exchange_;
  const DeviceProgramOptions options_;
  std::shared_ptr<CommunicatorShare> share_;

  // Connect sets what follows.
  KernelForm form_;
  ArenaShape shape_;
  IdVector<Rank, ArenaLayout> layouts_;
  int32_t threads_ = 0;
  bool interpreted_ = false;
  std::string notice_;
  bool one_process_ = true;               // all ranks are this process's
  bool direct_ = false;                   // messages may skip the slots
  bool switch_direct_ = false;            // messages of switches' groups may
  std::atomic<bool> in_buffers_ = false;  // some launch has let the switch use buffers
  std::optional<PeerReach> reach_;        // access between this process's devices, if `direct_` needs it
  std::map<int32_t, std::unique_ptr<DeviceState>> devices_;
  std::vector<std::unique_ptr<RankState>> states_;  // by local rank
  std::vector<DeviceMemory> mapped_;                // peers' arenas
  Switches switches_;                               // over the arenas
  Proxy::Line* line_ = nullptr;                     // the proxy's: connections with other hosts
  PinnedMemory record_;                             // ErrorRecord, and the abort word on the next line

  // Held while kernels are loaded. Loading may wait for running kernels, which need launches of kernels that
  // all devices have.
  std::mutex load_mutex_;
  std::mutex failure_mutex_;  // guards failure_
  Status failure_;
};

}  // namespace xccl::cuda
