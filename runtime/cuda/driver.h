// The part of NVIDIA's driver API that the runtime uses. Types, numbers and signatures are as in cuda.h (CUDA
// 13.0), declared here so that nothing is needed to build. LoadDriver fills a table of functions from
// libcuda.so.1. Symbols are looked up under their versioned names (cuMemAlloc_v2), whose meaning never
// changes. driver_abi_test compares all of it with cuda.h where there is one; FakeDriver is the other table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace xccl::cuda {

enum class Result : int32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kPeerAccessUnsupported = 217,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kTooManyPeers = 711,
  kCooperativeLaunchTooLarge = 720,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
};

using DeviceId = int32_t;
using DevicePointer = unsigned long long;  // NOLINT: cuda.h's type
using MemoryHandle = unsigned long long;   // NOLINT: likewise
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;

enum class DeviceAttribute : int32_t {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kHostPageTables = 100,  // it uses the host's: they are joined by C2C
  kVirtualMemoryManagement = 102,
  kPosixFileDescriptors = 103,
  kGpuDirectRdma = 116,
  kRdmaFlushes = 117,   // a bit set
  kRdmaOrdering = 118,  // as far as writes need no flush
  kDmaBuf = 124,
  kMulticast = 132,
};
enum class PeerAttribute : int32_t { kNativeAtomics = 3 };
enum class FunctionAttribute : int32_t { kRegisters = 4 };
// kBufferId: of an allocation, and never given again. kAccessFlags: what the current context's device may do.
enum class PointerAttribute : int32_t { kBufferId = 7, kAccessFlags = 16 };
enum class HandleType : int32_t { kNone = 0, kPosixFileDescriptor = 1 };
enum class CaptureMode : int32_t { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
enum class CaptureStatus : int32_t { kNone = 0, kActive = 1, kInvalidated = 2 };

inline constexpr int32_t kLocationDevice = 1;
inline constexpr int32_t kAllocationPinned = 1;
inline constexpr int32_t kReadWrite = 3;
inline constexpr int32_t kMinimumGranularity = 0;
inline constexpr int32_t kRecommendedGranularity = 1;
inline constexpr uint32_t kHostPortable = 1, kHostMapped = 2;  // MemHostAlloc
inline constexpr uint32_t kNonBlockingStream = 1;
inline constexpr int32_t kDmaBufFile = 1;  // MemGetHandleForAddressRange
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int32_t kFlushOfHost = 1;                // kRdmaFlushes: FlushGPUDirectRDMAWrites
inline constexpr int32_t kToCurrent = 0, kToOwner = 100;  // FlushGPUDirectRDMAWrites; kRdmaOrdering
inline constexpr uint32_t kLazyPeerAccess = 1;            // IpcOpenMemHandle

struct Uuid {
  unsigned char bytes[16] = {};
};
struct MemoryLocation {
  int32_t type = kLocationDevice;
  int32_t id = 0;
};
struct AllocationProperties {
  int32_t type = kAllocationPinned;
  HandleType handle_types = HandleType::kNone;  // a bit set
  MemoryLocation location;
  void* unused = nullptr;
  unsigned char compression = 0;
  unsigned char gpu_direct = 0;
  uint16_t usage = 0;
  unsigned char reserved[4] = {};
};
struct MulticastProperties {
  uint32_t devices = 0;
  size_t size = 0;
  unsigned long long handle_types = 0;  // NOLINT: cuda.h's type
  unsigned long long flags = 0;         // NOLINT: likewise
};
struct AccessDescription {
  MemoryLocation location;
  int32_t flags = kReadWrite;
};
struct IpcHandle {
  char data[64] = {};
};
static_assert(sizeof(AllocationProperties) == 32 && offsetof(AllocationProperties, compression) == 24);
static_assert(sizeof(MulticastProperties) == 32 && offsetof(MulticastProperties, size) == 8);
static_assert(sizeof(AccessDescription) == 12);

// Device addresses are numbers to the driver and pointers in what kernels read.
template <typename T>
T* PointerTo(DevicePointer address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Members are named as cuda.h's functions without cu. A member is null where the driver is too old to have
// it; required ones are never null.
struct Driver {
  using U64 = unsigned long long;  // NOLINT: cuda.h's type
  Result (*Init)(unsigned flags) = nullptr;
  Result (*DriverGetVersion)(int* version) = nullptr;
  Result (*GetErrorName)(Result error, const char** name) = nullptr;
  Result (*GetErrorString)(Result error, const char** text) = nullptr;

  Result (*DeviceGetCount)(int* count) = nullptr;
  Result (*DeviceGet)(DeviceId* device, int ordinal) = nullptr;
  Result (*DeviceGetName)(char* name, int length, DeviceId device) = nullptr;
  Result (*DeviceGetAttribute)(int* value, DeviceAttribute attribute, DeviceId device) = nullptr;
  Result (*DeviceGetUuid)(Uuid* uuid, DeviceId device) = nullptr;
  Result (*DeviceGetP2PAttribute)(int* value, PeerAttribute attribute, DeviceId from, DeviceId to) = nullptr;
  Result (*DevicePrimaryCtxRetain)(Context* context, DeviceId device) = nullptr;
  Result (*DevicePrimaryCtxRelease)(DeviceId device) = nullptr;
  Result (*CtxPushCurrent)(Context context) = nullptr;
  Result (*CtxPopCurrent)(Context* context) = nullptr;
  Result (*CtxEnablePeerAccess)(Context peer, unsigned flags) = nullptr;

  Result (*MemGetInfo)(size_t* free, size_t* total) = nullptr;
  Result (*MemAlloc)(DevicePointer* memory, size_t bytes) = nullptr;
  Result (*MemFree)(DevicePointer memory) = nullptr;
  Result (*MemHostAlloc)(void** memory, size_t bytes, unsigned flags) = nullptr;
  Result (*MemHostGetDevicePointer)(DevicePointer* device, void* host, unsigned flags) = nullptr;
  Result (*MemFreeHost)(void* memory) = nullptr;
  Result (*MemcpyHtoDAsync)(DevicePointer to, const void* from, size_t bytes, Stream stream) = nullptr;
  Result (*MemcpyDtoHAsync)(void* to, DevicePointer from, size_t bytes, Stream stream) = nullptr;
  Result (*MemcpyDtoDAsync)(DevicePointer to, DevicePointer from, size_t bytes, Stream stream) = nullptr;
  Result (*MemsetD8Async)(DevicePointer to, unsigned char value, size_t bytes, Stream stream) = nullptr;

  Result (*MemGetAllocationGranularity)(size_t* bytes, const AllocationProperties* properties,
                                        int32_t option) = nullptr;
  Result (*MemCreate)(MemoryHandle* handle, size_t bytes, const AllocationProperties* properties,
                      U64 flags) = nullptr;
  Result (*MemRelease)(MemoryHandle handle) = nullptr;
  Result (*MemAddressReserve)(DevicePointer* address, size_t bytes, size_t alignment, DevicePointer wanted,
                              U64 flags) = nullptr;
  Result (*MemAddressFree)(DevicePointer address, size_t bytes) = nullptr;
  Result (*MemMap)(DevicePointer address, size_t bytes, size_t offset, MemoryHandle handle,
                   U64 flags) = nullptr;
  Result (*MemUnmap)(DevicePointer address, size_t bytes) = nullptr;
  Result (*MemSetAccess)(DevicePointer address, size_t bytes, const AccessDescription* descriptions,
                         size_t count) = nullptr;
  Result (*MemExportToShareableHandle)(void* out, MemoryHandle handle, HandleType type, U64 flags) = nullptr;
  Result (*MemImportFromShareableHandle)(MemoryHandle* handle, void* from, HandleType type) = nullptr;
  Result (*MemRetainAllocationHandle)(MemoryHandle* handle, void* address) = nullptr;
  Result (*MemGetAddressRange)(DevicePointer* base, size_t* bytes, DevicePointer inside) = nullptr;
  Result (*PointerGetAttribute)(void* value, PointerAttribute attribute, DevicePointer address) = nullptr;
  Result (*MemGetHandleForAddressRange)(void* file, DevicePointer address, size_t bytes, int32_t type,
                                        U64 flags) = nullptr;
  Result (*FlushGPUDirectRDMAWrites)(int32_t target, int32_t scope) = nullptr;
  Result (*IpcGetMemHandle)(IpcHandle* handle, DevicePointer memory) = nullptr;
  Result (*IpcOpenMemHandle)(DevicePointer* memory, IpcHandle handle, unsigned flags) = nullptr;
  Result (*IpcCloseMemHandle)(DevicePointer memory) = nullptr;

  Result (*MulticastCreate)(MemoryHandle* handle, const MulticastProperties* properties) = nullptr;
  Result (*MulticastAddDevice)(MemoryHandle handle, DeviceId device) = nullptr;
  Result (*MulticastBindMem)(MemoryHandle handle, size_t offset, MemoryHandle memory, size_t memory_offset,
                             size_t bytes, U64 flags) = nullptr;
  Result (*MulticastUnbind)(MemoryHandle handle, DeviceId device, size_t offset, size_t bytes) = nullptr;
  Result (*MulticastGetGranularity)(size_t* bytes, const MulticastProperties* properties,
                                    int32_t option) = nullptr;

  Result (*ModuleLoadData)(Module* module, const void* image) = nullptr;
  Result (*ModuleUnload)(Module module) = nullptr;
  Result (*ModuleGetFunction)(Function* function, Module module, const char* name) = nullptr;
  Result (*ModuleGetGlobal)(DevicePointer* address, size_t* bytes, Module module, const char* name) = nullptr;
  Result (*FuncGetAttribute)(int* value, FunctionAttribute attribute, Function function) = nullptr;
  Result (*OccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, Function function, int threads,
                                                      size_t shared_bytes) = nullptr;
  Result (*LaunchKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                         Stream stream, void** parameters, void** extra) = nullptr;
  Result (*LaunchCooperativeKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z,
                                    unsigned shared_bytes, Stream stream, void** parameters) = nullptr;

  Result (*StreamCreate)(Stream* stream, unsigned flags) = nullptr;
  Result (*StreamDestroy)(Stream stream) = nullptr;
  Result (*StreamSynchronize)(Stream stream) = nullptr;
  Result (*StreamWaitEvent)(Stream stream, Event event, unsigned flags) = nullptr;
  Result (*StreamIsCapturing)(Stream stream, CaptureStatus* status) = nullptr;
  Result (*StreamBeginCapture)(Stream stream, CaptureMode mode) = nullptr;
  Result (*StreamEndCapture)(Stream stream, Graph* graph) = nullptr;
  Result (*ThreadExchangeStreamCaptureMode)(CaptureMode* mode) = nullptr;
  Result (*GraphInstantiate)(GraphExec* exec, Graph graph, U64 flags) = nullptr;
  Result (*GraphLaunch)(GraphExec exec, Stream stream) = nullptr;
  Result (*GraphExecDestroy)(GraphExec exec) = nullptr;
  Result (*GraphDestroy)(Graph graph) = nullptr;
  Result (*EventCreate)(Event* event, unsigned flags) = nullptr;
  Result (*EventDestroy)(Event event) = nullptr;
  Result (*EventRecord)(Event event, Stream stream) = nullptr;
  Result (*EventQuery)(Event event) = nullptr;
  Result (*EventElapsedTime)(float* milliseconds, Event start, Event end) = nullptr;
};

// The machine's driver, opened and initialised once a process; the table lives as long as the process.
// Errors: kInvalidInput "cuda: no driver: libcuda.so.1: ...", the same for a driver that lacks a required
// function (by name, with its version), and for a machine without devices.
StatusOr<const Driver*> LoadDriver();

// OK, or kInvalidInput "cuda: CALL: TEXT (NUMBER, NAME)". `call` names the request, with its numbers.
Status Check(const Driver& driver, Result result, const std::string& call);

}  // namespace xccl::cuda
