// The handles of the C API. A handle is a number that is never used twice, so that a call with one that was
// destroyed or aborted is an error and nothing worse. A communicator is freed when its handle has been
// dropped and the last call that uses it has returned.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/numbers.h"
#include "runtime/backend.h"
#include "runtime/c_api/assembly.h"
#include "runtime/c_api/background.h"
#include "runtime/c_api/meeting.h"
#include "runtime/communicator.h"
#include "runtime/cuda/backends.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/launch_orders.h"
#include "runtime/experts/cuda/gpu_experts.h"
#include "runtime/host/exchange.h"
#include "runtime/xccl.h"

namespace xccl::c_api {

struct ExpertsOfGpus;

// The state that the communicators of one xcclCommInitAll share: GPUs' back ends can be made when all devices
// are known.
struct OneProcess {
  std::mutex mutex;
  std::vector<int32_t> devices;                    // by rank
  std::vector<Backend> ready;                      // by rank; moved out one by one
  Status aborted;                                  // by the first rank that did
  std::shared_ptr<cuda::CommunicatorShare> share;  // on GPUs, once their back ends are made
  Assembly assembly;                               // guards itself
  SharedInTurn<std::shared_ptr<ExpertsOfGpus>> experts{"plans of experts"};  // guards itself
};

// A communicator's settings, which are made before its first book is loaded.
struct Settings {
  std::optional<int32_t> device;  // a GPU
  bool blocking = true;
  cuda::DeviceProgramOptions cuda;
};

// An operator that xcclRedOpCreatePreMulSum made.
struct UserOp {
  DataType type = DataType::kFloat;
  std::array<std::byte, 8> scalar = {};
};

struct LoadedExperts;

struct Comm {
  static constexpr const char* kMissing = "no such communicator: it was destroyed or aborted, or never made";
  using Make = StatusOr<Backend> (*)(Comm& comm);
  Comm(Rank rank, int32_t ranks, Make make)
      : communicator(rank, ranks, [this, make] { return make(*this); }, {}) {}
  Status CheckUsable() const;  // a failure in a fork of its process
  bool IsBlocking() {
    const std::lock_guard lock(mutex);
    return settings.blocking;
  }
  const pid_t process = getpid();
  std::shared_ptr<Meeting> meeting;    // processes
  std::shared_ptr<void> id;            // a use of its unique id, where this process serves it
  std::optional<Backend> threads;      // threads of the CPU: made together
  std::shared_ptr<OneProcess> shared;  // threads
  // By rank: the job's rank, for the log of calls; empty: unknown; absent: not looked for yet.
  std::optional<std::vector<Rank>> members;
  std::mutex mutex;  // guards what follows
  Settings settings;
  std::map<int, UserOp> ops;                     // by xcclRedOp_t
  int next_op = xcclNumOps;                      // numbers are not used again
  std::shared_ptr<const LoadedExperts> experts;  // the plan loaded last
  size_t gpu_experts = 0;                        // plans of experts that ranks of one process loaded on GPUs
  std::shared_ptr<cuda::CommunicatorShare> share;  // of a process on a GPU, once the back end is made
  // The processes of this host meet here to load plans of experts. Used while a plan is loaded.
  std::optional<Exchange> met;
  std::map<std::string, int> shrinks;  // number of shrinks by the text of the ranks left out
  std::atomic<bool> aborted = false;
  Background background;      // guards itself
  Communicator communicator;  // it goes first, since its back end uses what is above
};

// Where GPUs' back ends come from. Tests put a driver and kernels in host memory in their place while there
// is no communicator.
struct Gpus {
  std::function<StatusOr<const cuda::Driver*>()> driver = cuda::LoadDriver;
  std::function<void(cuda::BackendOptions& options)> adapt;  // may be empty
  dispatch::ExpertImages expert_images;                      // empty: those that NVRTC makes
};
Gpus& TheGpus();

// Some communicator of this process is on a GPU.
bool AnyOnGpu();

// Gives handles.
std::vector<xcclComm_t> Add(std::vector<std::shared_ptr<Comm>> comms);
// Errors: kUsage for a handle that is dropped; kInvalidInput in a process that was forked from the one that
// made it, where its threads and its connections are missing.
StatusOr<std::shared_ptr<Comm>> Find(xcclComm_t handle);
// Find, and the handle is used up.
StatusOr<std::shared_ptr<Comm>> Drop(xcclComm_t handle);

// The texts of the calling thread's failed calls, as errno is a thread's: of the last one, and of the last
// one on each of the communicators that failed last.
void Remember(const void* handle, std::string_view text) noexcept;
const std::string& LastText();
std::string LastTextOn(const void* handle);
// Keeps a text for the caller of the C API; the thread's last eight stay.
const char* Show(std::string text);

}  // namespace xccl::c_api
