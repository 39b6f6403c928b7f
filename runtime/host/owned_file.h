// An owned file descriptor, and other processes, watched through one.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace xccl {

// Owns a file descriptor.
class OwnedFile {
 public:
  OwnedFile() = default;
  explicit OwnedFile(int descriptor) : descriptor_(descriptor) {}
  // A socket of this process alone: a process that is forked from it does not keep the connection, which
  // would then outlive this process. There the number stands for a file without bytes. `open` gives the
  // descriptor, or -1 and errno, and does not wait.
  static OwnedFile NotInForks(const std::function<int()>& open);
  OwnedFile(OwnedFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        not_in_forks_(std::exchange(other.not_in_forks_, false)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(not_in_forks_, other.not_in_forks_);
    return *this;
  }
  ~OwnedFile();
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
  bool not_in_forks_ = false;
};

// A handle on a process; not open where there is none, or the kernel gives none.
OwnedFile WatchProcess(int32_t process);
// True once the watched process has ended, even before any wait for it. Does not wait.
bool HasEnded(const OwnedFile& process);

}  // namespace xccl
