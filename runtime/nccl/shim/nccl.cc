#include "runtime/nccl/shim/nccl.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <optional>

namespace xccl::nccl_shim {
namespace {

struct Loader {
  void* (*find)(const char* name);
  std::string missing = {};

  template <typename Function>
  void May(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(find(name));
  }
  template <typename Function>
  void Need(Function& function, const char* name) {
    May(function, name);
    if (function == nullptr && missing.empty()) missing = name;
  }
};

// Null: among the names that all libraries see, after the shim's.
struct Library {
  void* handle = nullptr;
  Status status;
};

// A handle that does not lead to the shim itself, which may have NCCL's name.
void* NotTheShim(void* handle) {
  Dl_info shim = {}, found = {};
  void* const function = handle == nullptr ? nullptr : dlsym(handle, "pncclAllReduce");
  if (function == nullptr || dladdr(function, &found) == 0) return nullptr;
  const bool known = dladdr(reinterpret_cast<void*>(&NotTheShim), &shim) != 0;
  return known && shim.dli_fbase == found.dli_fbase ? nullptr : handle;
}

Library Open() {
  if (const char* const path = std::getenv("XCCL_NCCL_LIBRARY"); path != nullptr && *path != '\0') {
    // Its calls to itself stay within it.
    void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (opened == nullptr) return {nullptr, SystemError(fmt::format("XCCL_NCCL_LIBRARY: {}", dlerror()))};
    if (void* const other = NotTheShim(opened); other != nullptr) return {other, OkStatus()};
    return {nullptr, SystemError(fmt::format("XCCL_NCCL_LIBRARY: {}: it is not NCCL's library", path))};
  }
  void* handle = NotTheShim(dlopen(kRealLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
  // Programs that a loader brings in with their own NCCL, as Python does, have it outside of the names that
  // all libraries see.
  if (handle == nullptr) handle = NotTheShim(dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD));
  return {handle, OkStatus()};
}

const Library& TheLibrary() {
  static const Library library = Open();
  return library;
}

StatusOr<Nccl> Load() {
  XCCL_RETURN_IF_ERROR(TheLibrary().status);
  return FindNccl(FindInNccl);
}

std::optional<StatusOr<Nccl>>& Replaced() {
  static std::optional<StatusOr<Nccl>> replaced;
  return replaced;
}

}  // namespace

thread_local int InsideNccl::depth_ = 0;

StatusOr<Nccl> FindNccl(void* (*find)(const char* name)) {
  Nccl nccl;
  Loader load = {find};
  load.Need(nccl.AllReduce, "pncclAllReduce");
  load.Need(nccl.Broadcast, "pncclBroadcast");
  load.Need(nccl.Bcast, "pncclBcast");
  load.Need(nccl.Reduce, "pncclReduce");
  load.Need(nccl.AllGather, "pncclAllGather");
  load.Need(nccl.ReduceScatter, "pncclReduceScatter");
  load.Need(nccl.GroupStart, "pncclGroupStart");
  load.Need(nccl.GroupEnd, "pncclGroupEnd");
  load.Need(nccl.CommCount, "pncclCommCount");
  load.Need(nccl.CommUserRank, "pncclCommUserRank");
  load.Need(nccl.CommCuDevice, "pncclCommCuDevice");
  load.Need(nccl.CommGetAsyncError, "pncclCommGetAsyncError");
  load.Need(nccl.CommDestroy, "pncclCommDestroy");
  load.Need(nccl.CommAbort, "pncclCommAbort");
  load.Need(nccl.CommFinalize, "pncclCommFinalize");
  load.May(nccl.GroupSimulateEnd, "pncclGroupSimulateEnd");
  load.May(nccl.CommShrink, "pncclCommShrink");
  load.May(nccl.AlltoAll, "pncclAlltoAll");
  load.May(nccl.Gather, "pncclGather");
  load.May(nccl.Scatter, "pncclScatter");
  load.May(nccl.CommRevoke, "pncclCommRevoke");
  if (load.missing.empty()) return nccl;
  return SystemError(
      fmt::format("NCCL's {} was not found; expected libnccl.so.2 in the program; hint: "
                  "XCCL_NCCL_LIBRARY=/path/libnccl.so.2",
                  load.missing));
}

void* FindInNccl(const char* name) {
  const Library& library = TheLibrary();
  if (!library.status.ok()) return nullptr;
  return dlsym(library.handle == nullptr ? RTLD_NEXT : library.handle, name);
}

const StatusOr<Nccl>& TheNccl() {
  if (Replaced()) return *Replaced();
  static const StatusOr<Nccl> nccl = Load();
  return nccl;
}

void SetNccl(const Nccl& nccl) { Replaced().emplace(nccl); }

}  // namespace xccl::nccl_shim
