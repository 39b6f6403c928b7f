// Carries a rank's messages to and from ranks of other hosts. Kernels push what they put and took into a FIFO
// in mapped memory of the host (device/abi.h); one thread of the rank, the proxy, reads it, has a transport
// write the slots into the peers', and copies nothing. The slots are where the network's device and the GPU
// both reach them (network_slots.h); the counters that kernels poll lie in pinned memory of the host. Peers
// write those, or, where the GPU may see a counter before the message, others: the proxy then copies them
// when the message has arrived.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/program.h"
#include "runtime/cuda/arena.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/network_slots.h"
#include "runtime/cuda/other_hosts.h"
#include "runtime/host/host_memory.h"
#include "runtime/transport/network.h"
#include "runtime/transport/transport.h"

namespace xccl::cuda {

class Proxy {
 public:
  // One program's connections with other hosts.
  class Line {
   public:
    RemoteMemory memory() const { return {slots_.device(), cells_.device()}; }
    device::Fifo fifo() const;

   private:
    friend class Proxy;
    using Abort = std::function<void(const Status& reason)>;
    // Moves what can be moved. True: something was.
    StatusOr<bool> Serve();
    Status ShowWhatArrived();
    bool Drained() const;
    const device::FifoEntry& Next() const;

    NetworkLayout layout_;
    NetworkSlots slots_;
    PinnedMemory cells_, entries_;
    HostMemory arrived_;          // cells that peers write; none where they write cells_
    std::vector<uint64_t> seen_;  // by cell: the head to be copied
    uint64_t mask_ = 0, popped_ = 0;
    std::vector<int32_t> connection_of_;  // by the rank's end, in the wiring
    std::unique_ptr<Transport> transport_;
    Abort abort_;
    bool failed_ = false;
  };

  explicit Proxy(OtherHosts hosts);
  ~Proxy();  // no line is left
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const OtherHosts& hosts() const { return hosts_; }
  // Connects with the other hosts, with all their ranks. rails: by the program's connections; may be empty.
  // `abort` is called, by the proxy's thread, when the
  // network or the group fails. Errors: those of memory and of the network.
  StatusOr<Line*> Connect(const std::shared_ptr<const Gpu>& gpu, const Program& program,
                          std::span<const Rails> rails, const ArenaShape& shape, const ArenaLayout& layout,
                          Rank rank, std::function<void(const Status& reason)> abort);
  // Ends a line of which no kernel runs: what it has to tell has gone out, and its transport ends as its
  // OtherHosts have it. After a failure it returns at once.
  void Disconnect(Line* line, std::chrono::nanoseconds limit);

 private:
  void Run();
  bool ServeAll();

  const OtherHosts hosts_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Line>> lines_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace xccl::cuda
