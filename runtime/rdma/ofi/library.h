// libfabric, opened when it is first asked for. Most of its API is inline functions over tables that the
// functions below return, so no other function of the library is looked up.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "base/status.h"

namespace xccl::ofi {

struct Library {
  int (*GetInfo)(uint32_t version, const char* node, const char* service, uint64_t flags,
                 const fi_info* hints, fi_info** info) = nullptr;
  void (*FreeInfo)(fi_info* info) = nullptr;
  fi_info* (*DuplicateInfo)(const fi_info* info) = nullptr;
  int (*Fabric)(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) = nullptr;
  const char* (*ErrorText)(int error) = nullptr;
};

// Opens the library once per process; every caller gets the one Library. Errors: kSystem with the loader's
// reason.
StatusOr<const Library*> LoadLibrary();

}  // namespace xccl::ofi
