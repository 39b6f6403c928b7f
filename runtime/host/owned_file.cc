#include "runtime/host/owned_file.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xccl {

OwnedFile::~OwnedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

OwnedFile WatchProcess(int32_t process) {
  return OwnedFile(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

bool HasEnded(const OwnedFile& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return process.open() && poll(&ended, 1, 0) == 1 && (ended.revents & POLLIN) != 0;
}

}  // namespace xccl
