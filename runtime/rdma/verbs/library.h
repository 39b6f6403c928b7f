// libibverbs, opened when it is first asked for, as a table that a test can fill with its own functions.
// Posting, polling and arming are inline functions over the device's table, which OpenDevice returns.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace xccl::verbs {

// Functions of the library by its names, in its order of arguments.
struct Library {
  ibv_device** (*GetDeviceList)(int* count) = nullptr;
  void (*FreeDeviceList)(ibv_device** list) = nullptr;
  ibv_context* (*OpenDevice)(ibv_device* device) = nullptr;
  int (*CloseDevice)(ibv_context* context) = nullptr;
  int (*QueryDevice)(ibv_context* context, ibv_device_attr* attributes) = nullptr;
  // Fills the fields up to `flags`, in every version of the library.
  int (*QueryPort)(ibv_context* context, uint8_t port, ibv_port_attr* attributes) = nullptr;
  int (*QueryGid)(ibv_context* context, uint8_t port, int index, ibv_gid* gid) = nullptr;
  ibv_pd* (*AllocPd)(ibv_context* context) = nullptr;
  int (*DeallocPd)(ibv_pd* domain) = nullptr;
  ibv_mr* (*RegMr)(ibv_pd* domain, void* at, size_t bytes, int access) = nullptr;
  // Null where the library is older than 1.12 (rdma-core 34).
  ibv_mr* (*RegDmabufMr)(ibv_pd* domain, uint64_t offset, size_t bytes, uint64_t address, int file,
                         int access) = nullptr;
  int (*DeregMr)(ibv_mr* memory) = nullptr;
  ibv_comp_channel* (*CreateCompChannel)(ibv_context* context) = nullptr;
  int (*DestroyCompChannel)(ibv_comp_channel* channel) = nullptr;
  ibv_cq* (*CreateCq)(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                      int vector) = nullptr;
  int (*DestroyCq)(ibv_cq* queue) = nullptr;
  int (*GetCqEvent)(ibv_comp_channel* channel, ibv_cq** queue, void** user) = nullptr;
  void (*AckCqEvents)(ibv_cq* queue, unsigned count) = nullptr;
  ibv_qp* (*CreateQp)(ibv_pd* domain, ibv_qp_init_attr* attributes) = nullptr;
  int (*ModifyQp)(ibv_qp* pair, ibv_qp_attr* attributes, int mask) = nullptr;
  int (*DestroyQp)(ibv_qp* pair) = nullptr;
  const char* (*StatusText)(ibv_wc_status status) = nullptr;
};

// Opens the library once per process; every caller gets the one Library. Errors: kSystem with the loader's
// reason.
StatusOr<const Library*> LoadLibrary();

// Owns an object of the library: `call` is the library's function that destroys it.
template <typename Object>
struct Destroy {
  int (*call)(Object*) = nullptr;
  void operator()(Object* made) const { call(made); }
};
template <typename Object>
using Owned = std::unique_ptr<Object, Destroy<Object>>;

}  // namespace xccl::verbs
