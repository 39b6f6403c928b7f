#include "runtime/host/owned_file.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>

namespace xccl {
namespace {

// The files that forked processes do not keep.
struct NotKept {
  std::mutex mutex;  // guards what follows, and is held while one is opened or closed
  std::set<int> files;
};

NotKept& TheNotKept();

// The child's memory may own the files still, so their numbers stay taken.
void LetGo() {
  std::set<int>& files = TheNotKept().files;
  const int nothing = files.empty() ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int file : files)
    if (nothing < 0 || dup3(nothing, file, O_CLOEXEC) < 0) close(file);
  if (nothing >= 0) close(nothing);
  files.clear();
  TheNotKept().mutex.unlock();
}

// It is never freed: files are closed until the process ends. The mutex is held around a fork, so that a
// child finds it free and the set whole.
NotKept& TheNotKept() {
  static NotKept& not_kept = *[] {
    pthread_atfork([] { TheNotKept().mutex.lock(); }, [] { TheNotKept().mutex.unlock(); }, LetGo);
    return new NotKept;
  }();
  return not_kept;
}

}  // namespace

OwnedFile OwnedFile::NotInForks(const std::function<int()>& open) {
  NotKept& all = TheNotKept();
  const std::lock_guard lock(all.mutex);
  OwnedFile file(open());
  if (!file.open()) return file;
  all.files.insert(file.descriptor_);
  file.not_in_forks_ = true;
  return file;
}

OwnedFile::~OwnedFile() {
  if (descriptor_ < 0) return;
  if (!not_in_forks_) {
    close(descriptor_);
    return;
  }
  NotKept& all = TheNotKept();
  const std::lock_guard lock(all.mutex);
  all.files.erase(descriptor_);
  close(descriptor_);
}

OwnedFile WatchProcess(int32_t process) {
  return OwnedFile(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

bool HasEnded(const OwnedFile& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return process.open() && poll(&ended, 1, 0) == 1 && (ended.revents & POLLIN) != 0;
}

}  // namespace xccl
