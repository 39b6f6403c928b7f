#include "runtime/rdma/verbs/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <string>

namespace xccl::verbs {
namespace {

template <typename Function>
void Find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

StatusOr<Library> Load() {
  // It stays open: drivers that it has loaded may have threads and handlers.
  void* const opened = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return SystemError(fmt::format("{}; hint: install libibverbs1, or use --network ofi", dlerror()));
  Library library;
  std::string missing, optional;
  Find(opened, "ibv_get_device_list", library.GetDeviceList, missing);
  Find(opened, "ibv_free_device_list", library.FreeDeviceList, missing);
  Find(opened, "ibv_open_device", library.OpenDevice, missing);
  Find(opened, "ibv_close_device", library.CloseDevice, missing);
  Find(opened, "ibv_query_device", library.QueryDevice, missing);
  Find(opened, "ibv_query_port", library.QueryPort, missing);
  Find(opened, "ibv_query_gid", library.QueryGid, missing);
  Find(opened, "ibv_alloc_pd", library.AllocPd, missing);
  Find(opened, "ibv_dealloc_pd", library.DeallocPd, missing);
  Find(opened, "ibv_reg_mr", library.RegMr, missing);
  Find(opened, "ibv_reg_dmabuf_mr", library.RegDmabufMr, optional);
  Find(opened, "ibv_dereg_mr", library.DeregMr, missing);
  Find(opened, "ibv_create_comp_channel", library.CreateCompChannel, missing);
  Find(opened, "ibv_destroy_comp_channel", library.DestroyCompChannel, missing);
  Find(opened, "ibv_create_cq", library.CreateCq, missing);
  Find(opened, "ibv_destroy_cq", library.DestroyCq, missing);
  Find(opened, "ibv_get_cq_event", library.GetCqEvent, missing);
  Find(opened, "ibv_ack_cq_events", library.AckCqEvents, missing);
  Find(opened, "ibv_create_qp", library.CreateQp, missing);
  Find(opened, "ibv_modify_qp", library.ModifyQp, missing);
  Find(opened, "ibv_destroy_qp", library.DestroyQp, missing);
  Find(opened, "ibv_wc_status_str", library.StatusText, missing);
  if (!missing.empty()) return SystemError("libibverbs.so.1: no function " + missing);
  return library;
}

}  // namespace

StatusOr<const Library*> LoadLibrary() {
  static const StatusOr<Library> loaded = Load();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace xccl::verbs
