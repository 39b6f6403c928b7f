#include "base/threads.h"

#include <exception>
#include <utility>

#include "base/exceptions.h"

namespace xccl {

StatusOr<std::thread> StartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::exception& error) {
    return Annotate(StatusOf(error), "cannot start a thread");
  }
}

}  // namespace xccl
