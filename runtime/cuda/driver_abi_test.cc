// Compares driver.h and nvrtc.h with the toolkit's headers, where there are any.
#include <gtest/gtest.h>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"

#ifdef XCCL_HAS_CUDA_HEADERS
#include <cuda.h>
// After cuda.h: it may declare the functions under these names.
#include <nvrtc.h>

#include <type_traits>

namespace xccl::cuda {
namespace {

// Whether two types are passed alike: both pointers, both integers or enums of one size, or structs of one
// size.
template <typename A, typename B>
constexpr bool SameValue() {
  constexpr bool integers =
      (std::is_integral_v<A> || std::is_enum_v<A>)&&(std::is_integral_v<B> || std::is_enum_v<B>);
  return sizeof(A) == sizeof(B) && (integers || (std::is_pointer_v<A> && std::is_pointer_v<B>) ||
                                    (std::is_class_v<A> && std::is_class_v<B>));
}
// Pointees must have one size; void and opaque objects have none to compare.
template <typename A, typename B>
constexpr bool SamePointee() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using P = std::remove_pointer_t<A>;
    using Q = std::remove_pointer_t<B>;
    if constexpr (std::is_void_v<P> || std::is_void_v<Q>) {
      return std::is_void_v<P> && std::is_void_v<Q>;
    } else if constexpr (requires { sizeof(P) == sizeof(Q); }) {
      return sizeof(P) == sizeof(Q) && std::is_const_v<P> == std::is_const_v<Q>;
    }
  }
  return true;
}
template <typename A, typename B>
struct Same : std::false_type {};
template <typename R, typename... As, typename S, typename... Bs>
struct Same<R (*)(As...), S (*)(Bs...)> {
  static constexpr bool Compare() {
    if constexpr (sizeof...(As) != sizeof...(Bs)) {
      return false;
    } else {
      return SameValue<R, S>() && (... && (SameValue<As, Bs>() && SamePointee<As, Bs>()));
    }
  }
  static constexpr bool value = Compare();
};
template <auto Member, typename Theirs>
constexpr bool Matches() {
  return Same<std::remove_reference_t<decltype(std::declval<Driver&>().*Member)>, Theirs>::value;
}

static_assert(Matches<&Driver::Init, decltype(&cuInit)>());
static_assert(Matches<&Driver::DriverGetVersion, decltype(&cuDriverGetVersion)>());
static_assert(Matches<&Driver::GetErrorName, decltype(&cuGetErrorName)>());
static_assert(Matches<&Driver::GetErrorString, decltype(&cuGetErrorString)>());
static_assert(Matches<&Driver::DeviceGetCount, decltype(&cuDeviceGetCount)>());
static_assert(Matches<&Driver::DeviceGet, decltype(&cuDeviceGet)>());
static_assert(Matches<&Driver::DeviceGetName, decltype(&cuDeviceGetName)>());
static_assert(Matches<&Driver::DeviceGetAttribute, decltype(&cuDeviceGetAttribute)>());
static_assert(Matches<&Driver::DeviceGetUuid, decltype(&cuDeviceGetUuid_v2)>());
static_assert(Matches<&Driver::DeviceGetP2PAttribute, decltype(&cuDeviceGetP2PAttribute)>());
static_assert(Matches<&Driver::DevicePrimaryCtxRetain, decltype(&cuDevicePrimaryCtxRetain)>());
static_assert(Matches<&Driver::DevicePrimaryCtxRelease, decltype(&cuDevicePrimaryCtxRelease_v2)>());
static_assert(Matches<&Driver::CtxPushCurrent, decltype(&cuCtxPushCurrent_v2)>());
static_assert(Matches<&Driver::CtxPopCurrent, decltype(&cuCtxPopCurrent_v2)>());
static_assert(Matches<&Driver::CtxEnablePeerAccess, decltype(&cuCtxEnablePeerAccess)>());
static_assert(Matches<&Driver::MemGetInfo, decltype(&cuMemGetInfo_v2)>());
static_assert(Matches<&Driver::MemAlloc, decltype(&cuMemAlloc_v2)>());
static_assert(Matches<&Driver::MemFree, decltype(&cuMemFree_v2)>());
static_assert(Matches<&Driver::MemHostAlloc, decltype(&cuMemHostAlloc)>());
static_assert(Matches<&Driver::MemHostGetDevicePointer, decltype(&cuMemHostGetDevicePointer_v2)>());
static_assert(Matches<&Driver::MemFreeHost, decltype(&cuMemFreeHost)>());
static_assert(Matches<&Driver::MemcpyHtoDAsync, decltype(&cuMemcpyHtoDAsync_v2)>());
static_assert(Matches<&Driver::MemcpyDtoHAsync, decltype(&cuMemcpyDtoHAsync_v2)>());
static_assert(Matches<&Driver::MemcpyDtoDAsync, decltype(&cuMemcpyDtoDAsync_v2)>());
static_assert(Matches<&Driver::MemsetD8Async, decltype(&cuMemsetD8Async)>());
static_assert(Matches<&Driver::MemGetAllocationGranularity, decltype(&cuMemGetAllocationGranularity)>());
static_assert(Matches<&Driver::MemCreate, decltype(&cuMemCreate)>());
static_assert(Matches<&Driver::MemRelease, decltype(&cuMemRelease)>());
static_assert(Matches<&Driver::MemAddressReserve, decltype(&cuMemAddressReserve)>());
static_assert(Matches<&Driver::MemAddressFree, decltype(&cuMemAddressFree)>());
static_assert(Matches<&Driver::MemMap, decltype(&cuMemMap)>());
static_assert(Matches<&Driver::MemUnmap, decltype(&cuMemUnmap)>());
static_assert(Matches<&Driver::MemSetAccess, decltype(&cuMemSetAccess)>());
static_assert(Matches<&Driver::MemExportToShareableHandle, decltype(&cuMemExportToShareableHandle)>());
static_assert(Matches<&Driver::MemImportFromShareableHandle, decltype(&cuMemImportFromShareableHandle)>());
static_assert(Matches<&Driver::MemRetainAllocationHandle, decltype(&cuMemRetainAllocationHandle)>());
static_assert(Matches<&Driver::MemGetAddressRange, decltype(&cuMemGetAddressRange_v2)>());
static_assert(Matches<&Driver::PointerGetAttribute, decltype(&cuPointerGetAttribute)>());
static_assert(Matches<&Driver::MemGetHandleForAddressRange, decltype(&cuMemGetHandleForAddressRange)>());
static_assert(Matches<&Driver::FlushGPUDirectRDMAWrites, decltype(&cuFlushGPUDirectRDMAWrites)>());
static_assert(Matches<&Driver::IpcGetMemHandle, decltype(&cuIpcGetMemHandle)>());
static_assert(Matches<&Driver::IpcOpenMemHandle, decltype(&cuIpcOpenMemHandle_v2)>());
static_assert(Matches<&Driver::IpcCloseMemHandle, decltype(&cuIpcCloseMemHandle)>());
static_assert(Matches<&Driver::MulticastCreate, decltype(&cuMulticastCreate)>());
static_assert(Matches<&Driver::MulticastAddDevice, decltype(&cuMulticastAddDevice)>());
static_assert(Matches<&Driver::MulticastBindMem, decltype(&cuMulticastBindMem)>());
static_assert(Matches<&Driver::MulticastUnbind, decltype(&cuMulticastUnbind)>());
static_assert(Matches<&Driver::MulticastGetGranularity, decltype(&cuMulticastGetGranularity)>());
static_assert(Matches<&Driver::ModuleLoadData, decltype(&cuModuleLoadData)>());
static_assert(Matches<&Driver::ModuleUnload, decltype(&cuModuleUnload)>());
static_assert(Matches<&Driver::ModuleGetFunction, decltype(&cuModuleGetFunction)>());
static_assert(Matches<&Driver::ModuleGetGlobal, decltype(&cuModuleGetGlobal_v2)>());
static_assert(Matches<&Driver::FuncGetAttribute, decltype(&cuFuncGetAttribute)>());
static_assert(Matches<&Driver::OccupancyMaxActiveBlocksPerMultiprocessor,
                      decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor)>());
static_assert(Matches<&Driver::LaunchKernel, decltype(&cuLaunchKernel)>());
static_assert(Matches<&Driver::LaunchCooperativeKernel, decltype(&cuLaunchCooperativeKernel)>());
static_assert(Matches<&Driver::StreamCreate, decltype(&cuStreamCreate)>());
static_assert(Matches<&Driver::StreamDestroy, decltype(&cuStreamDestroy_v2)>());
static_assert(Matches<&Driver::StreamSynchronize, decltype(&cuStreamSynchronize)>());
static_assert(Matches<&Driver::StreamWaitEvent, decltype(&cuStreamWaitEvent)>());
static_assert(Matches<&Driver::StreamIsCapturing, decltype(&cuStreamIsCapturing)>());
static_assert(Matches<&Driver::StreamBeginCapture, decltype(&cuStreamBeginCapture_v2)>());
static_assert(Matches<&Driver::StreamEndCapture, decltype(&cuStreamEndCapture)>());
static_assert(
    Matches<&Driver::ThreadExchangeStreamCaptureMode, decltype(&cuThreadExchangeStreamCaptureMode)>());
static_assert(Matches<&Driver::GraphInstantiate, decltype(&cuGraphInstantiateWithFlags)>());
static_assert(Matches<&Driver::GraphLaunch, decltype(&cuGraphLaunch)>());
static_assert(Matches<&Driver::GraphExecDestroy, decltype(&cuGraphExecDestroy)>());
static_assert(Matches<&Driver::GraphDestroy, decltype(&cuGraphDestroy)>());
static_assert(Matches<&Driver::EventCreate, decltype(&cuEventCreate)>());
static_assert(Matches<&Driver::EventDestroy, decltype(&cuEventDestroy_v2)>());
static_assert(Matches<&Driver::EventRecord, decltype(&cuEventRecord)>());
static_assert(Matches<&Driver::EventQuery, decltype(&cuEventQuery)>());
static_assert(Matches<&Driver::EventElapsedTime, decltype(&cuEventElapsedTime)>());

template <auto Member, typename Theirs>
constexpr bool MatchesNvrtc() {
  return Same<std::remove_reference_t<decltype(std::declval<Nvrtc&>().*Member)>, Theirs>::value;
}
static_assert(MatchesNvrtc<&Nvrtc::Version, decltype(&nvrtcVersion)>());
static_assert(MatchesNvrtc<&Nvrtc::GetErrorString, decltype(&nvrtcGetErrorString)>());
static_assert(MatchesNvrtc<&Nvrtc::CreateProgram, decltype(&nvrtcCreateProgram)>());
static_assert(MatchesNvrtc<&Nvrtc::DestroyProgram, decltype(&nvrtcDestroyProgram)>());
static_assert(MatchesNvrtc<&Nvrtc::CompileProgram, decltype(&nvrtcCompileProgram)>());
static_assert(MatchesNvrtc<&Nvrtc::GetCubinSize, decltype(&nvrtcGetCUBINSize)>());
static_assert(MatchesNvrtc<&Nvrtc::GetCubin, decltype(&nvrtcGetCUBIN)>());
static_assert(MatchesNvrtc<&Nvrtc::GetProgramLogSize, decltype(&nvrtcGetProgramLogSize)>());
static_assert(MatchesNvrtc<&Nvrtc::GetProgramLog, decltype(&nvrtcGetProgramLog)>());

template <typename A, typename B>
constexpr bool Equal(A ours, B theirs) {
  return static_cast<int64_t>(ours) == static_cast<int64_t>(theirs);
}
static_assert(Equal(Result::kInvalidValue, CUDA_ERROR_INVALID_VALUE));
static_assert(Equal(Result::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(Equal(Result::kNoDevice, CUDA_ERROR_NO_DEVICE));
static_assert(Equal(Result::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE));
static_assert(Equal(Result::kInvalidImage, CUDA_ERROR_INVALID_IMAGE));
static_assert(Equal(Result::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT));
static_assert(Equal(Result::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE));
static_assert(Equal(Result::kNotFound, CUDA_ERROR_NOT_FOUND));
static_assert(Equal(Result::kNotReady, CUDA_ERROR_NOT_READY));
static_assert(Equal(Result::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS));
static_assert(Equal(Result::kPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
static_assert(Equal(Result::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT));
static_assert(Equal(Result::kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED));
static_assert(Equal(Result::kTooManyPeers, CUDA_ERROR_TOO_MANY_PEERS));
static_assert(Equal(Result::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
static_assert(Equal(Result::kCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE));
static_assert(Equal(Result::kNotSupported, CUDA_ERROR_NOT_SUPPORTED));
static_assert(Equal(Result::kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
static_assert(Equal(DeviceAttribute::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(Equal(DeviceAttribute::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(Equal(DeviceAttribute::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(Equal(PeerAttribute::kNativeAtomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED));
static_assert(Equal(DeviceAttribute::kVirtualMemoryManagement,
                    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
static_assert(Equal(DeviceAttribute::kPosixFileDescriptors,
                    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
static_assert(Equal(DeviceAttribute::kHostPageTables,
                    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES));
static_assert(Equal(DeviceAttribute::kGpuDirectRdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED));
static_assert(Equal(DeviceAttribute::kRdmaFlushes, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS));
static_assert(Equal(DeviceAttribute::kRdmaOrdering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING));
static_assert(Equal(DeviceAttribute::kDmaBuf, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED));
static_assert(Equal(DeviceAttribute::kMulticast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED));
static_assert(Equal(kEventDisableTiming, CU_EVENT_DISABLE_TIMING));
static_assert(Equal(FunctionAttribute::kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS));
static_assert(Equal(PointerAttribute::kBufferId, CU_POINTER_ATTRIBUTE_BUFFER_ID));
static_assert(Equal(PointerAttribute::kAccessFlags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS));
static_assert(Equal(kReadWrite, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
static_assert(Equal(HandleType::kPosixFileDescriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
static_assert(Equal(CaptureMode::kThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(Equal(CaptureMode::kRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(Equal(CaptureStatus::kActive, CU_STREAM_CAPTURE_STATUS_ACTIVE));
static_assert(Equal(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE));
static_assert(Equal(kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED));
static_assert(Equal(kReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
static_assert(Equal(kMinimumGranularity, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
static_assert(Equal(kMinimumGranularity, CU_MULTICAST_GRANULARITY_MINIMUM));
static_assert(Equal(kRecommendedGranularity, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
static_assert(Equal(kRecommendedGranularity, CU_MULTICAST_GRANULARITY_RECOMMENDED));
static_assert(Equal(kHostPortable, CU_MEMHOSTALLOC_PORTABLE));
static_assert(Equal(kHostMapped, CU_MEMHOSTALLOC_DEVICEMAP));
static_assert(Equal(kDmaBufFile, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD));
static_assert(Equal(kFlushOfHost, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST));
static_assert(Equal(kToCurrent, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX));
static_assert(Equal(kToOwner, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
static_assert(Equal(kToOwner, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER));
static_assert(Equal(kNonBlockingStream, CU_STREAM_NON_BLOCKING));
static_assert(Equal(kLazyPeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));

static_assert(sizeof(Uuid) == sizeof(CUuuid));
static_assert(sizeof(MemoryLocation) == sizeof(CUmemLocation));
static_assert(offsetof(MemoryLocation, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(AllocationProperties, handle_types) ==
              offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(AllocationProperties, compression) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(MulticastProperties) == sizeof(CUmulticastObjectProp));
static_assert(offsetof(MulticastProperties, size) == offsetof(CUmulticastObjectProp, size));
static_assert(offsetof(MulticastProperties, handle_types) == offsetof(CUmulticastObjectProp, handleTypes));
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(offsetof(AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle));

TEST(DriverAbi, IsThatOfTheToolkit) { SUCCEED() << "the comparisons are static_asserts"; }

}  // namespace
}  // namespace xccl::cuda
#else
TEST(DriverAbi, IsThatOfTheToolkit) { GTEST_SKIP() << "no CUDA headers: set CUDA_HOME"; }
#endif
