// The library that the shim stands before: NCCL's own functions, under the names that begin with p, which no
// preloaded library hides. Enumerations are written as int, which is how they are passed.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "runtime/nccl/shim/real_library.h"

struct ncclComm;  // NCCL's

namespace xccl::nccl_shim {

using NcclComm = ncclComm*;

inline constexpr int kSuccess = 0, kSystemError = 2, kInvalidUsage = 5, kInProgress = 7;
inline constexpr int kUint8 = 1;             // ncclUint8
inline constexpr int kNumTypes = 12;         // up to ncclFloat8e5m2
inline constexpr int kNumOperators = 5;      // ncclSum to ncclAvg; further ones are made by the program
inline constexpr unsigned kShrinkAbort = 1;  // NCCL_SHRINK_ABORT

// Members are named as nccl.h's functions without nccl. A member is null where the library is too old to have
// it; those up to CommFinalize never are.
struct Nccl {
  int (*AllReduce)(const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                   void* stream) = nullptr;
  int (*Broadcast)(const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                   void* stream) = nullptr;
  int (*Bcast)(void* buffer, size_t count, int type, int root, NcclComm comm, void* stream) = nullptr;
  int (*Reduce)(const void* send, void* receive, size_t count, int type, int op, int root, NcclComm comm,
                void* stream) = nullptr;
  int (*AllGather)(const void* send, void* receive, size_t count, int type, NcclComm comm,
                   void* stream) = nullptr;
  int (*ReduceScatter)(const void* send, void* receive, size_t count, int type, int op, NcclComm comm,
                       void* stream) = nullptr;
  int (*GroupStart)() = nullptr;
  int (*GroupEnd)() = nullptr;
  int (*CommCount)(NcclComm comm, int* count) = nullptr;
  int (*CommUserRank)(NcclComm comm, int* rank) = nullptr;
  int (*CommCuDevice)(NcclComm comm, int* device) = nullptr;
  int (*CommGetAsyncError)(NcclComm comm, int* error) = nullptr;
  int (*CommDestroy)(NcclComm comm) = nullptr;
  int (*CommAbort)(NcclComm comm) = nullptr;
  int (*CommFinalize)(NcclComm comm) = nullptr;   // NCCL 2.14
  int (*GroupSimulateEnd)(void* info) = nullptr;  // 2.22
  int (*CommShrink)(NcclComm comm, int* exclude, int count, NcclComm* made, void* config,
                    int flags) = nullptr;  // 2.27
  int (*AlltoAll)(const void* send, void* receive, size_t count, int type, NcclComm comm,
                  void* stream) = nullptr;  // 2.28
  int (*Gather)(const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                void* stream) = nullptr;  // 2.28
  int (*Scatter)(const void* send, void* receive, size_t count, int type, int root, NcclComm comm,
                 void* stream) = nullptr;                 // 2.28
  int (*CommRevoke)(NcclComm comm, int flags) = nullptr;  // 2.29
};

// Looks for the functions where `find` finds them (null: it has none). Errors: kSystem with the first that is
// missing.
StatusOr<Nccl> FindNccl(void* (*find)(const char* name));

// The process's, found when it is first asked for: the library that XCCL_NCCL_LIBRARY names, else
// kRealLibrary, else the libnccl.so.2 that is loaded, else what comes after the shim among the program's own
// libraries. Errors: kSystem where there is none.
const StatusOr<Nccl>& TheNccl();
// One of its functions, by its full name. Null where it has none.
void* FindInNccl(const char* name);
// Another one from here on, for tests.
void SetNccl(const Nccl& nccl);

// Calls that a thread makes to NCCL, within which NCCL may call itself through names that the shim has.
class InsideNccl {
 public:
  InsideNccl() { ++depth_; }
  ~InsideNccl() { --depth_; }
  InsideNccl(const InsideNccl&) = delete;
  InsideNccl& operator=(const InsideNccl&) = delete;
  static bool Here() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

}  // namespace xccl::nccl_shim
