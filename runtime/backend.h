// What a communicator needs of a back end: a device, and a way to connect its rank with the others.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "runtime/device.h"
#include "runtime/transport.h"
#include "runtime/wiring.h"

namespace xccl {

struct Backend {
  std::unique_ptr<Device> device;
  bool one_address_space = false;  // ranks may read each other's buffers
  // This rank's end of new connections. All ranks call it with the same wirings in the same order. The
  // transport must not outlive the back end.
  std::function<StatusOr<std::unique_ptr<Transport>>(const Wiring&)> connect;
};

}  // namespace xccl
