#include "runtime/rdma/ofi/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace xccl::ofi {
namespace {

template <typename Function>
void Find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) missing = name;
}

// Over TCP, libfabric completes a small write although a full socket did not take its bytes: it stages them
// until it is called again, and a rank whose call has ended does not call it. Without staging, a completion
// says that the kernel has the bytes. Providers read variables when the library is first called
// (docs/running.md).
void CompleteWhatTheKernelHas() {
  setenv("FI_NET_STAGING_SBUF_SIZE", "0", 1);
  setenv("FI_TCP_STAGING_SBUF_SIZE", "0", 1);
}

StatusOr<Library> Load() {
  // It stays open: threads of providers may run until the process ends.
  void* const opened = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return SystemError(fmt::format("{}; hint: install libfabric1, or use --network verbs", dlerror()));
  Library library;
  std::string missing;
  Find(opened, "fi_getinfo", library.GetInfo, missing);
  Find(opened, "fi_freeinfo", library.FreeInfo, missing);
  Find(opened, "fi_dupinfo", library.DuplicateInfo, missing);
  Find(opened, "fi_fabric", library.Fabric, missing);
  Find(opened, "fi_strerror", library.ErrorText, missing);
  if (!missing.empty()) return SystemError("libfabric.so.1: no function " + missing);
  CompleteWhatTheKernelHas();
  return library;
}

}  // namespace

StatusOr<const Library*> LoadLibrary() {
  static const StatusOr<Library> loaded = Load();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace xccl::ofi
