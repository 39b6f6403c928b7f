// A process that waits tries to take the entry's lock again and again without blocking, so that it can give
// up after wait_s. Only the process that holds the lock makes the entry. It finds HASH.tmp-* of this entry
// only if their processes were killed.
#include "pipeline/exec/cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"

namespace xccl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kManifestHead = "xccl-cache 1\n";
constexpr std::string_view kStaging = ".tmp-";
constexpr double kFreshFailureS = 10;
constexpr std::chrono::milliseconds kPoll(20);

Status CannotWrite(const std::string& path) {
  return InvalidInput(fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
}

// An flock on a file. It ends with this object or with the process.
class FileLock {
 public:
  // Errors: kInvalidInput if the file cannot be opened for writing.
  static StatusOr<FileLock> Open(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return CannotWrite(path);
    return FileLock(file, path);
  }
  FileLock(FileLock&& other) noexcept
      : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock() {
    if (file_ >= 0) close(file_);
  }

  // Tries to take the lock, without waiting. Returns false if another process holds it.
  StatusOr<bool> Take() {
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    return InvalidInput(fmt::format("{}: cannot lock: {}", path_, std::strerror(errno)));
  }

 private:
  FileLock(int file, std::string path) : file_(file), path_(std::move(path)) {}

  int file_;
  std::string path_;
};

// Returns the names of the entry's files except the manifest, sorted.
StatusOr<std::vector<std::string>> FilesOf(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator file(directory, error), end; !error && file != end; file.increment(error))
    if (file->path().filename() != "manifest") names.push_back(file->path().filename().string());
  if (error) return InvalidInput(directory + ": cannot read: " + error.message());
  std::ranges::sort(names);
  return names;
}

// Returns a head, and one line for each file: the hash of its contents, and its name.
StatusOr<std::string> ManifestOf(const std::string& directory) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesOf(directory));
  std::string text(kManifestHead);
  for (const std::string& name : names) {
    XCCL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(fmt::format("{}/{}", directory, name)));
    text += fmt::format("{:016x} {}\n", HashOf(contents), name);
  }
  return text;
}

Status Seal(const std::string& directory, const std::string& key) {
  XCCL_RETURN_IF_ERROR(WriteFileAtomically(directory + "/key", key));
  XCCL_ASSIGN_OR_RETURN(const std::string manifest, ManifestOf(directory));
  return WriteFileAtomically(directory + "/manifest", manifest);
}

bool IsWhole(const std::string& directory, const std::string& key) {
  const StatusOr<std::string> made_from = ReadFile(directory + "/key");
  const StatusOr<std::string> written = ReadFile(directory + "/manifest");
  if (!made_from.ok() || *made_from != key || !written.ok()) return false;
  const StatusOr<std::string> is = ManifestOf(directory);
  return is.ok() && *is == *written;
}

void Remove(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Removes the staging directories (HASH.tmp-*) that no process fills any more, of all entries. `own`: the
// entry whose lock this process holds.
void RemoveLeftovers(const std::string& folder, const std::string& own) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (file->path().filename().string().find(kStaging) != std::string::npos) found.push_back(file->path());
  for (const fs::path& path : found) {
    const std::string name = path.filename().string();
    const std::string entry = folder + "/" + name.substr(0, name.find(kStaging));
    if (entry == own) {
      Remove(path);
      continue;
    }
    StatusOr<FileLock> lock = FileLock::Open(entry + ".lock");
    if (!lock.ok()) continue;
    const StatusOr<bool> taken = lock->Take();
    if (taken.ok() && *taken) Remove(path);
  }
}

StatusOr<std::string> MakeStaging(const std::string& entry) {
  std::string directory = entry + std::string(kStaging) + "XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return CannotWrite(directory);
  return directory;
}

// Renames `staging` to `entry`. First moves a damaged entry away and removes it, since no rename replaces a
// directory that is not empty.
Status PutInPlace(const std::string& staging, const std::string& entry) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(entry, error))) {
    XCCL_ASSIGN_OR_RETURN(const std::string old, MakeStaging(entry));
    fs::rename(entry, old + "/old", error);
    Remove(old);
    if (error) return InvalidInput(entry + ": cannot write: " + error.message());
  }
  fs::rename(staging, entry, error);
  if (error) return InvalidInput(entry + ": cannot write: " + error.message());
  return OkStatus();
}

// Returns the reason of an attempt that failed after `since_s`, if there is one.
std::optional<std::string> FailureSince(const std::string& path, double since_s) {
  struct stat about = {};
  if (stat(path.c_str(), &about) != 0) return std::nullopt;
  const double at_s =
      static_cast<double>(about.st_mtim.tv_sec) + static_cast<double>(about.st_mtim.tv_nsec) / 1e9;
  if (at_s < since_s) return std::nullopt;
  const StatusOr<std::string> text = ReadFile(path);
  return text.ok() && !text->empty() ? std::optional(*text) : std::nullopt;
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

StatusOr<FileLock> OpenLock(const std::string& folder, const std::string& entry) {
  XCCL_RETURN_IF_ERROR(MakeFolders(folder, 0700));
  return FileLock::Open(entry + ".lock");
}

std::string FailureFileOf(const std::string& entry) { return entry + ".failed"; }

Status WaitFor(FileLock& lock, const CacheRequest& request) {
  const Clock::time_point began = Clock::now();
  bool said = false;
  while (true) {
    XCCL_ASSIGN_OR_RETURN(const bool taken, lock.Take());
    if (taken) return OkStatus();
    const double waited_s = std::chrono::duration<double>(Clock::now() - began).count();
    if (waited_s > request.wait_s)
      return LimitReached(fmt::format("another process has been making {} for {:.0f} s",
                                      CachePathOf(request.folder, request.key), waited_s));
    if (waited_s > 1 && !said && request.on_wait) request.on_wait();
    said = said || waited_s > 1;
    std::this_thread::sleep_for(kPoll);
  }
}

Status MakeEntry(const CacheRequest& request, const std::string& entry) {
  XCCL_ASSIGN_OR_RETURN(const std::string staging, MakeStaging(entry));
  Status status = request.make(staging);
  if (status.ok()) status = Seal(staging, request.key);
  if (status.ok()) status = PutInPlace(staging, entry);
  if (!status.ok()) Remove(staging);
  return status;
}

}  // namespace

std::string CachePathOf(const std::string& folder, const std::string& key) {
  return fmt::format("{}/{:016x}", folder, HashOf(key));
}

std::optional<std::string> FindInCache(const std::string& folder, const std::string& key) {
  std::string entry = CachePathOf(folder, key);
  if (!IsWhole(entry, key)) return std::nullopt;
  return entry;
}

StatusOr<std::string> FindOrMake(const CacheRequest& request) {
  if (std::optional<std::string> found = FindInCache(request.folder, request.key)) return *std::move(found);
  const double began_s = WallSeconds();
  const std::string entry = CachePathOf(request.folder, request.key);
  XCCL_ASSIGN_OR_RETURN(FileLock lock, OpenLock(request.folder, entry));
  XCCL_RETURN_IF_ERROR(WaitFor(lock, request));
  if (std::optional<std::string> found = FindInCache(request.folder, request.key)) return *std::move(found);
  const std::string failure = FailureFileOf(entry);
  if (const std::optional<std::string> why = FailureSince(failure, began_s - kFreshFailureS))
    return InvalidInput(*why);
  RemoveLeftovers(request.folder, entry);
  const Status made = MakeEntry(request, entry);
  if (made.ok()) {
    Remove(failure);
    return entry;
  }
  static_cast<void>(WriteFileAtomically(failure, made.message()));  // if it fails, other processes try again
  return made;
}

Status CheckCanMake(const std::string& folder, const std::string& key) {
  const std::string entry = CachePathOf(folder, key);
  XCCL_RETURN_IF_ERROR(OpenLock(folder, entry).status());
  const std::optional<std::string> why = FailureSince(FailureFileOf(entry), WallSeconds() - kFreshFailureS);
  return why ? InvalidInput(*why) : OkStatus();
}

}  // namespace xccl
