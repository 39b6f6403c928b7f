// Calls a tuner plugin as NCCL does, through each version of its interface: for tests and the driver.
#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "runtime/nccl/tuner/abi.h"

namespace xccl::nccl_tuner {

// What a call comes to: the pair with the least cost, as NCCL's core takes it, or the pair that was named.
struct Answer {
  int result = kSuccess;
  int algorithm = kUndefined, protocol = kUndefined, channels = 0;
  std::vector<float> costs;
  bool operator==(const Answer&) const = default;
};

struct Asked {
  int collective = 4;
  size_t bytes = 1024;
  int pipe_ops = 1, registered = 0, collnet = 0, nvls = 0;
  // In core's order; 0 where the pair is offered at 10 + its index, else -1.
  std::vector<bool> ignored = std::vector<bool>(kNumAlgorithms * kNumProtocols);
};

// A call with everything drawn by chance, collectives that NCCL has no tuner for included.
Asked RandomCall(Random& random);

class Caller {
 public:
  // `library`: of dlopen; it outlives the Caller. `version`: 1 to 6.
  Caller(void* library, int version) : library_(library), version_(version) {}

  // These return what the plugin returns.
  int Init(size_t nodes, size_t ranks, Logger log, void*& context) const;
  int End(void* context) const;
  Answer Ask(void* context, const Asked& asked) const;
  // Version 6.
  int ChunkSize(void* context, int collective, size_t bytes, int algorithm, int protocol, int channels,
                size_t& chunk_bytes) const;

 private:
  template <typename T>
  const T& Symbol() const;

  void* library_;
  int version_;
};

}  // namespace xccl::nccl_tuner
