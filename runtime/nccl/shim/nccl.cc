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

void* library = nullptr;

void* InLibrary(const char* name) { return dlsym(library, name); }
void* AfterTheShim(const char* name) { return dlsym(RTLD_NEXT, name); }

StatusOr<Nccl> Load() {
  if (const char* const path = std::getenv("XCCL_NCCL_LIBRARY"); path != nullptr && *path != '\0') {
    // Its calls to itself stay within it.
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == nullptr) return SystemError(fmt::format("XCCL_NCCL_LIBRARY: {}", dlerror()));
    return FindNccl(InLibrary);
  }
  // Programs that a loader brings in with their own NCCL, as Python does, have it outside of the names that
  // all libraries see.
  library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr && dlsym(library, "pncclAllReduce") != nullptr) return FindNccl(InLibrary);
  return FindNccl(AfterTheShim);
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

const StatusOr<Nccl>& TheNccl() {
  if (Replaced()) return *Replaced();
  static const StatusOr<Nccl> nccl = Load();
  return nccl;
}

void SetNccl(const Nccl& nccl) { Replaced().emplace(nccl); }

}  // namespace xccl::nccl_shim
