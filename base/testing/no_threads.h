// For tests of what happens when the machine has no thread left.
#pragma once

#include <pthread.h>

#include "base/check.h"

namespace xccl {

// While one lives the process cannot start threads: their stacks would not fit into the address space.
class NoThreads {
 public:
  NoThreads() {
    XCCL_CHECK(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge;
    XCCL_CHECK(pthread_attr_init(&huge) == 0 && pthread_attr_setstacksize(&huge, size_t{1} << 60) == 0);
    XCCL_CHECK(pthread_setattr_default_np(&huge) == 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace xccl
