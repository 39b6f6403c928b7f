#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace xccl::cuda {
namespace {

struct Loader {
  void* library;
  const char* missing = nullptr;

  template <typename F>
  void Need(F*& function, const char* symbol) {
    Want(function, symbol);
    if (function == nullptr && missing == nullptr) missing = symbol;
  }
  template <typename F>
  void Want(F*& function, const char* symbol) {
    function = reinterpret_cast<F*>(dlsym(library, symbol));
  }
};

void FillBasics(Driver& driver, Loader& load) {
  load.Need(driver.Init, "cuInit");
  load.Need(driver.DriverGetVersion, "cuDriverGetVersion");
  load.Need(driver.GetErrorName, "cuGetErrorName");
  load.Need(driver.GetErrorString, "cuGetErrorString");
  load.Need(driver.DeviceGetCount, "cuDeviceGetCount");
  load.Need(driver.DeviceGet, "cuDeviceGet");
  load.Need(driver.DeviceGetName, "cuDeviceGetName");
  load.Need(driver.DeviceGetAttribute, "cuDeviceGetAttribute");
  load.Need(driver.DeviceGetUuid, "cuDeviceGetUuid_v2");
  load.Need(driver.DeviceGetP2PAttribute, "cuDeviceGetP2PAttribute");
  load.Need(driver.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  load.Need(driver.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  load.Need(driver.CtxPushCurrent, "cuCtxPushCurrent_v2");
  load.Need(driver.CtxPopCurrent, "cuCtxPopCurrent_v2");
  load.Need(driver.CtxEnablePeerAccess, "cuCtxEnablePeerAccess");
}

void FillMemory(Driver& driver, Loader& load) {
  load.Need(driver.MemGetInfo, "cuMemGetInfo_v2");
  load.Need(driver.MemAlloc, "cuMemAlloc_v2");
  load.Need(driver.MemFree, "cuMemFree_v2");
  load.Need(driver.MemHostAlloc, "cuMemHostAlloc");
  load.Need(driver.MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2");
  load.Need(driver.MemFreeHost, "cuMemFreeHost");
  load.Need(driver.MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  load.Need(driver.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  load.Need(driver.MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  load.Need(driver.MemsetD8Async, "cuMemsetD8Async");
  load.Need(driver.MemGetAllocationGranularity, "cuMemGetAllocationGranularity");
  load.Need(driver.MemCreate, "cuMemCreate");
  load.Need(driver.MemRelease, "cuMemRelease");
  load.Need(driver.MemAddressReserve, "cuMemAddressReserve");
  load.Need(driver.MemAddressFree, "cuMemAddressFree");
  load.Need(driver.MemMap, "cuMemMap");
  load.Need(driver.MemUnmap, "cuMemUnmap");
  load.Need(driver.MemSetAccess, "cuMemSetAccess");
  load.Need(driver.MemExportToShareableHandle, "cuMemExportToShareableHandle");
  load.Need(driver.MemImportFromShareableHandle, "cuMemImportFromShareableHandle");
  load.Need(driver.MemRetainAllocationHandle, "cuMemRetainAllocationHandle");
  load.Need(driver.MemGetAddressRange, "cuMemGetAddressRange_v2");
  load.Need(driver.PointerGetAttribute, "cuPointerGetAttribute");
  load.Need(driver.IpcGetMemHandle, "cuIpcGetMemHandle");
  load.Need(driver.IpcOpenMemHandle, "cuIpcOpenMemHandle_v2");
  load.Need(driver.IpcCloseMemHandle, "cuIpcCloseMemHandle");
  load.Want(driver.MemGetHandleForAddressRange, "cuMemGetHandleForAddressRange");
  load.Want(driver.FlushGPUDirectRDMAWrites, "cuFlushGPUDirectRDMAWrites");
  load.Want(driver.MulticastCreate, "cuMulticastCreate");
  load.Want(driver.MulticastAddDevice, "cuMulticastAddDevice");
  load.Want(driver.MulticastBindMem, "cuMulticastBindMem");
  load.Want(driver.MulticastUnbind, "cuMulticastUnbind");
  load.Want(driver.MulticastGetGranularity, "cuMulticastGetGranularity");
}

void FillLaunch(Driver& driver, Loader& load) {
  load.Need(driver.ModuleLoadData, "cuModuleLoadData");
  load.Need(driver.ModuleUnload, "cuModuleUnload");
  load.Need(driver.ModuleGetFunction, "cuModuleGetFunction");
  load.Need(driver.ModuleGetGlobal, "cuModuleGetGlobal_v2");
  load.Need(driver.FuncGetAttribute, "cuFuncGetAttribute");
  load.Need(driver.OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  load.Need(driver.LaunchKernel, "cuLaunchKernel");
  load.Need(driver.LaunchCooperativeKernel, "cuLaunchCooperativeKernel");
  load.Need(driver.StreamCreate, "cuStreamCreate");
  load.Need(driver.StreamDestroy, "cuStreamDestroy_v2");
  load.Need(driver.StreamSynchronize, "cuStreamSynchronize");
  load.Need(driver.StreamWaitEvent, "cuStreamWaitEvent");
  load.Need(driver.StreamIsCapturing, "cuStreamIsCapturing");
  load.Need(driver.StreamBeginCapture, "cuStreamBeginCapture_v2");
  load.Need(driver.StreamEndCapture, "cuStreamEndCapture");
  load.Need(driver.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  load.Need(driver.GraphInstantiate, "cuGraphInstantiateWithFlags");
  load.Need(driver.GraphLaunch, "cuGraphLaunch");
  load.Need(driver.GraphExecDestroy, "cuGraphExecDestroy");
  load.Need(driver.GraphDestroy, "cuGraphDestroy");
  load.Need(driver.EventCreate, "cuEventCreate");
  load.Need(driver.EventDestroy, "cuEventDestroy_v2");
  load.Need(driver.EventRecord, "cuEventRecord");
  load.Need(driver.EventQuery, "cuEventQuery");
  load.Need(driver.EventElapsedTime, "cuEventElapsedTime");
}

StatusOr<Driver> Open() {
  Driver driver;
  // Never closed: the driver starts threads of its own.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return InvalidInput(fmt::format("cuda: no driver: {}", dlerror()));
  Loader load{library};
  FillBasics(driver, load);
  FillMemory(driver, load);
  FillLaunch(driver, load);
  if (load.missing != nullptr) {
    int version = 0;
    if (driver.DriverGetVersion != nullptr) driver.DriverGetVersion(&version);
    return InvalidInput(
        fmt::format("cuda: the driver (for CUDA {}.{}) has no {}; expected CUDA 12.0 or later",
                    version / 1000, version % 1000 / 10, load.missing));
  }
  if (const Result result = driver.Init(0); result != Result::kSuccess && result != Result::kNoDevice)
    return Check(driver, result, "cuInit");
  int devices = 0;
  if (driver.DeviceGetCount(&devices) != Result::kSuccess || devices == 0)
    return InvalidInput("cuda: the driver sees no device");
  return driver;
}

}  // namespace

StatusOr<const Driver*> LoadDriver() {
  static const StatusOr<Driver> opened = Open();
  if (!opened.ok()) return opened.status();
  return &*opened;
}

Status Check(const Driver& driver, Result result, const std::string& call) {
  if (result == Result::kSuccess) return OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.GetErrorName(result, &name) != Result::kSuccess || name == nullptr) name = "of no name";
  if (driver.GetErrorString(result, &text) != Result::kSuccess || text == nullptr) text = "error";
  return InvalidInput(fmt::format("cuda: {}: {} ({}, {})", call, text, static_cast<int32_t>(result), name));
}

}  // namespace xccl::cuda
