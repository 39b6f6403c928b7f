// An owned file descriptor, and other processes, watched through one.
#pragma once

#include <cstdint>
#include <utility>

namespace xccl {

// Owns a file descriptor.
class OwnedFile {
 public:
  OwnedFile() = default;
  explicit OwnedFile(int descriptor) : descriptor_(descriptor) {}
  OwnedFile(OwnedFile&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OwnedFile();
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// A handle on a process; not open where there is none, or the kernel gives none.
OwnedFile WatchProcess(int32_t process);
// True once the watched process has ended, even before any wait for it. Does not wait.
bool HasEnded(const OwnedFile& process);

}  // namespace xccl
