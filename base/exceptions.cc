#include "base/exceptions.h"

#include <new>
#include <system_error>

namespace xccl {

Status StatusOf(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return SystemError("out of memory");
  if (dynamic_cast<const std::system_error*>(&error) != nullptr) return SystemError(error.what());
  return BugError(std::string("unexpected exception: ") + error.what());
}

}  // namespace xccl
