// A stand-in for NCCL: loads a tuner plugin and calls it as a release of NCCL does, for tests and for the
// driver. It has no communicators and no GPU; who asks says what NCCL would offer for a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/nccl/tuner/abi.h"
#include "runtime/nccl/tuner/lookup.h"

namespace xccl::nccl_tuner {

// The first release that prefers a version of the interface, or that has another number of algorithms.
struct Release {
  const char* name;
  int version;     // the interface's
  int algorithms;  // rows of its table of costs
};
inline constexpr std::array<Release, 7> kReleases = {{{"2.19", 1, 6},
                                                      {"2.21", 2, 6},
                                                      {"2.22", 3, 6},
                                                      {"2.23", 3, 7},
                                                      {"2.24", 4, 7},
                                                      {"2.28", 5, 7},
                                                      {"2.30", 6, 7}}};

// A call, as NCCL's core sees it before it asks the plugin.
struct Asked {
  int collective = 4;
  size_t bytes = 1024;
  int pipe_ops = 1, registered = 0;
  int collnet = 0, nvls = 0;        // v1 and v2
  Choices offered = ~Choices();     // v3 and later; those with an index i cost 10 + i microseconds
  size_t chunk_bytes = 512 * 1024;  // v6
};

// The answer to a call, after NCCL's core has taken the plugin's choice.
struct Answer {
  int result = kSuccess;  // the plugin's first result that is no success, else success
  bool steered = false;   // the plugin named a choice, or changed a cost
  int algorithm = kUndefined, protocol = kUndefined;            // NCCL's choice; v1, v2: the plugin's
  int channels = 0;                                             // 0 leaves them to NCCL
  size_t chunk_bytes = 0;                                       // v6
  std::array<float, kNumAlgorithms* kNumProtocols> costs = {};  // v3 and later
  bool operator==(const Answer&) const = default;
};

class StandIn {
 public:
  // Errors: kInvalidInput where the library cannot be loaded or lacks the release's version.
  static StatusOr<StandIn> Load(const std::string& library, const Release& release);

  // Makes a communicator of so many nodes and ranks; v5 and v6 may change the constants. The result is the
  // plugin's, as is that of End.
  int Init(size_t nodes, size_t ranks, Logger log, void** context, Constants& constants) const;
  int End(void* context) const;
  // Asks for a choice, takes it as NCCL's core does, and asks for the chunk size. `took_ns` receives how long
  // the first of these calls took, with one reading of the clock.
  Answer Ask(void* context, const Asked& asked, int64_t* took_ns = nullptr) const;

 private:
  struct Close {
    void operator()(void* library) const;
  };
  StandIn(void* library, const Release& release, const void* plugin)
      : library_(library), release_(release), plugin_(plugin) {}
  template <typename T>
  const T& As() const {
    return *static_cast<const T*>(plugin_);
  }

  std::unique_ptr<void, Close> library_;
  Release release_;
  const void* plugin_;  // ncclTunerPlugin_vN
};

}  // namespace xccl::nccl_tuner
