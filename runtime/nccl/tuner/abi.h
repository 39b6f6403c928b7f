// The interface between NCCL and a tuner plugin: the plugin's structs of all versions, and the numbers in
// them. NCCL looks in the plugin for a constant named ncclTunerPlugin_vN, the highest N that it knows first:
//
//   NCCL      2.19-2.20  2.21  2.22-2.23  2.24-2.27  2.28-2.29  2.30
//   versions  1          2     3, 2       4-2        5-2        6-2
//
// Enumerations are written as int, which is how they are passed. NCCL's table of costs is declared as float**
// and is float[num_algorithms][num_protocols] without a pointer in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xccl::nccl_tuner {

inline constexpr int kSuccess = 0;  // ncclSuccess

// ncclDebugLogLevel, and two of the subsystems that NCCL_DEBUG_SUBSYS chooses.
inline constexpr int kLogWarn = 2, kLogInfo = 3;
inline constexpr unsigned long kLogInit = 1, kLogTuning = 0x40;

inline constexpr int kNumCollectives = 5;  // the collectives that a tuner is asked about
inline constexpr int kNumAlgorithms = 7;   // 6 up to NCCL 2.22, which has no PAT
inline constexpr int kNumProtocols = 3;
inline constexpr float kNotOffered = -1.0F;  // the cost of a combination that NCCL cannot run
inline constexpr int kUndefined = -1;        // an algorithm or protocol that a v1 or v2 tuner leaves to NCCL

enum class Collective : int { kBroadcast, kReduce, kAllgather, kReduceScatter, kAllreduce };
enum class Algorithm : int { kTree, kRing, kCollnetDirect, kCollnetChain, kNvls, kNvlsTree, kPat };
enum class Protocol : int { kLl, kLl128, kSimple };

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

struct NvlDomains {
  int domains, min_ranks, max_ranks;
};

// NCCL's own tuning constants, which a plugin may change in init.
struct Constants {
  double base_latencies[7][3];
  double hardware_latencies[3][7][3];
  double ll_max_bandwidths[4][3];
  double channel_max_ring_ll128_bandwidths[4][3];
  double channel_max_tree_ll128_bandwidths[4][3];
  double channel_max_tree_bandwidths[4][3];
  double channel_max_nvls_tree_bandwidths[4][3];
  bool operator==(const Constants&) const = default;
};
static_assert(sizeof(Constants) == 1152);

struct TunerV1 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger log);
  int (*get_coll_info)(int collective, size_t bytes, int collnet, int nvls, int pipe_ops, int* algorithm,
                       int* protocol, int* channels);
  int (*destroy)();
};

struct TunerV2 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger log, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                       int* algorithm, int* protocol, int* channels);
  int (*destroy)(void* context);
};

struct TunerV3 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger log, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** costs,
                       int num_algorithms, int num_protocols, int* channels);
  int (*destroy)(void* context);
};

struct TunerV4 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger log, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** costs,
                       int num_algorithms, int num_protocols, int registered, int* channels);
  int (*destroy)(void* context);
};

struct TunerV5 {
  const char* name;
  int (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger log,
              NvlDomains* domains, Constants* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** costs,
                       int num_algorithms, int num_protocols, int registered, int* channels);
  int (*finalize)(void* context);
};

struct TunerV6 {
  const char* name;
  int (*init)(void** context, uint64_t communicator, size_t ranks, size_t nodes, Logger log,
              NvlDomains* domains, Constants* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** costs,
                       int num_algorithms, int num_protocols, int registered, int* channels);
  int (*finalize)(void* context);
  // NCCL lowers the answer to what its buffers hold.
  int (*get_chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol,
                        int channels, size_t* chunk_bytes);
};

static_assert(sizeof(TunerV1) == 32 && sizeof(TunerV5) == 32 && sizeof(TunerV6) == 40);

}  // namespace xccl::nccl_tuner
