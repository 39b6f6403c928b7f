#include "base/files.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <streambuf>
#include <system_error>
#include <utility>

#include "base/strings.h"

namespace xccl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = size_t{1} << 16;
constexpr mode_t kFileMode = 0664;  // less the umask; never writable by all, since kernels are programs
constexpr mode_t kMostMode = 0775;  // the rights that a replaced file may keep, for the same reason

Status IoError(const std::string& path, const char* verb, int error) {
  return InvalidInput(path + ": cannot " + verb + ": " + std::strerror(error));
}

// A descriptor of this process, or -1.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  // Returns 0 or an error of the system.
  int Close() {
    const int number = std::exchange(number_, -1);
    return number >= 0 && close(number) != 0 ? errno : 0;
  }

 private:
  int number_;
};

// Streams into a descriptor, and keeps the first error.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(int file) : file_(file) { setp(block_.data(), block_.data() + block_.size()); }
  int error() const { return error_; }

 protected:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }
  int sync() override {
    for (const char* at = pbase(); at < pptr() && error_ == 0;) {
      const ssize_t written = write(file_, at, static_cast<size_t>(pptr() - at));
      if (written >= 0)
        at += written;
      else if (errno != EINTR)  // a signal's handler ran, as those of Python do
        error_ = errno;
    }
    setp(block_.data(), block_.data() + block_.size());
    return error_ == 0 ? 0 : -1;
  }

 private:
  int file_;
  int error_ = 0;
  std::array<char, kBlockBytes> block_;
};

// Where an output goes.
struct Target {
  std::string final;           // its name when it is complete
  bool direct = false;         // a device or pipe; a rename cannot replace it
  std::optional<mode_t> mode;  // access rights of the replaced file, if it is this user's
};

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// A link in a folder that other users may write can be a trap: whoever made it chose the file that is
// replaced.
Status CheckLink(const std::string& path, const struct stat& link) {
  struct stat folder = {};
  if (link.st_uid == geteuid() || link.st_uid == 0) return OkStatus();
  if (stat(FolderOf(path).c_str(), &folder) != 0) return IoError(path, "write", errno);
  if (link.st_uid == folder.st_uid) return OkStatus();
  return InvalidInput(path + ": a link that user " + std::to_string(link.st_uid) +
                      " made; expected one of yours or of the folder's owner; hint: write to another name");
}

// Follows symbolic links, so that the file that they name is replaced and they stay. A link is opened itself,
// so that the one whose maker was looked at is the one that is followed.
StatusOr<Target> FindTarget(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  struct stat end = {};
  const bool exists = stat(path.c_str(), &end) == 0;
  if (!exists && errno != ENOENT && errno != ENOTDIR) return IoError(path, "write", errno);
  if (exists && S_ISDIR(end.st_mode)) return IoError(path, "write", EISDIR);
  std::string at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    const Descriptor file(open(at.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat found = {};
    if (file.get() < 0 || fstat(file.get(), &found) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) return IoError(path, "write", errno);
      return Target{path, false, {}};
    }
    if (!S_ISLNK(found.st_mode)) {
      if (S_ISREG(found.st_mode))
        return Target{at, false,
                      found.st_uid == geteuid() ? std::optional(found.st_mode & kMostMode) : std::nullopt};
      return Target{path, true, {}};
    }
    XCCL_RETURN_IF_ERROR(CheckLink(at, found));
    if (exists && !S_ISREG(end.st_mode)) return Target{path, true, {}};
    std::array<char, PATH_MAX> name = {};
    const ssize_t size = readlinkat(file.get(), "", name.data(), name.size());
    if (size < 0) return IoError(path, "write", errno);
    at = (fs::path(FolderOf(at)) / std::string(name.data(), static_cast<size_t>(size))).string();
  }
  return IoError(path, "write", ELOOP);
}

// Makes a file under a name that nobody can guess or has taken, so that no link that others planted is
// followed; `name` begins with that of the file that it is to become. -1 and errno where that fails.
int MakeTemporary(const std::string& folder, const std::string& final, std::string& name) {
  constexpr size_t kMostOfName = 200;  // bytes taken from `final`; a name may have 255
  constexpr int kTries = 100;
  const std::string begin = folder + "/" + fs::path(final).filename().string().substr(0, kMostOfName);
  for (int i = 0; i < kTries; ++i) {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) return -1;
    std::array<char, 17> digits = {};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
    name = begin + ".tmp" + digits.data();
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

// Returns 0 or an error of the system.
int MakeFoldersOf(const fs::path& path, mode_t mode) {
  fs::path made;
  for (const fs::path& part : path) {
    made /= part;
    std::error_code ignored;
    if (fs::is_directory(made, ignored) || mkdir(made.c_str(), mode) == 0) continue;
    const int error = errno;
    if (error != EEXIST) return error;
    if (!fs::is_directory(made, ignored)) return ENOTDIR;  // another process may have made it meanwhile
  }
  return 0;
}

Status WriteInto(int file, const std::string& path, const std::function<Status(std::ostream&)>& write) {
  FileBuffer buffer(file);
  std::ostream out(&buffer);
  Status status = write(out);
  if (!status.ok()) return status;
  out.flush();
  return out ? OkStatus() : IoError(path, "write", buffer.error() != 0 ? buffer.error() : EIO);
}

Status WriteDirectly(const std::string& path, const std::function<Status(std::ostream&)>& write) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0) return IoError(path, "write", errno);
  struct stat found = {};
  if (fstat(file.get(), &found) != 0) return IoError(path, "write", errno);
  if (S_ISREG(found.st_mode)) return InvalidInput(path + ": became a file; expected a device or a pipe");
  XCCL_RETURN_IF_ERROR(WriteInto(file.get(), path, write));
  const int error = file.Close();
  return error == 0 ? OkStatus() : IoError(path, "write", error);
}

// A name of one of this process's own descriptors, which its user gave it.
bool IsDescriptor(const std::string& path) {
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.starts_with(folder))
      return path.find_first_not_of("0123456789", folder.size()) == std::string::npos &&
             path.size() > folder.size();
  return path == "/dev/stdin";
}

const char* KindOf(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

Status TooLarge(const std::string& path, int64_t most_bytes) {
  return InvalidInput(path + ": more than " + std::to_string(most_bytes) +
                      " bytes; expected at most so many");
}

// Opens a source that ends. A pipe would be waited for, and a device may have no end.
StatusOr<Descriptor> OpenSource(const std::string& path, int64_t most_bytes) {
  const bool given = IsDescriptor(path);
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (given ? 0 : O_NONBLOCK)));
  const int error = errno;
  struct stat found = {};
  const bool seen = file.get() >= 0 ? fstat(file.get(), &found) == 0 : stat(path.c_str(), &found) == 0;
  if (seen && S_ISDIR(found.st_mode)) return IoError(path, "read", EISDIR);
  if (seen && !S_ISREG(found.st_mode) && !given)
    return InvalidInput(path + ": " + KindOf(found.st_mode) + "; expected a regular file" +
                        (S_ISFIFO(found.st_mode) ? "; hint: /dev/stdin < " + path : ""));
  if (file.get() < 0) return IoError(path, "read", error);
  if (S_ISREG(found.st_mode) && found.st_size > most_bytes) return TooLarge(path, most_bytes);
  return file;
}

// The group is the owner's own: it has its number, and no other user is listed in it.
bool IsPrivateGroup(gid_t group, uid_t owner) {
  if (group != owner) return false;
  std::array<char, 1 << 14> text = {};
  struct group entry = {}, *found = nullptr;
  if (getgrgid_r(group, &entry, text.data(), text.size(), &found) != 0) return false;
  if (found == nullptr) return true;
  struct passwd user = {}, *known = nullptr;
  std::array<char, 1 << 14> more = {};
  if (getpwuid_r(owner, &user, more.data(), more.size(), &known) != 0 || known == nullptr)
    return *entry.gr_mem == nullptr;
  for (char** member = entry.gr_mem; *member != nullptr; ++member)
    if (std::strcmp(*member, user.pw_name) != 0) return false;
  return true;
}

// With a list of access rights, the group's bits are those of all whom the list names.
bool HasAccessList(const std::string& path) {
  return getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

Status CheckTrustedAs(const std::string& path, const struct stat& found) {
  const auto refuse = [&](const std::string& seen, const std::string& hint) {
    return InvalidInput(path + ": " + seen +
                        "; expected that only you and root can change a program; hint: " + hint);
  };
  if (found.st_uid != geteuid() && found.st_uid != 0)
    return refuse("user " + std::to_string(found.st_uid) + " owns it", "use a copy of your own");
  if (S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0) return OkStatus();
  const bool all = (found.st_mode & S_IWOTH) != 0, group = (found.st_mode & S_IWGRP) != 0;
  if (!all && group && HasAccessList(path))
    return refuse("its list of access rights lets others write it", "setfacl -b " + path);
  if (all || (group && !IsPrivateGroup(found.st_gid, found.st_uid)))
    return refuse(all ? "all users may write it" : "group " + std::to_string(found.st_gid) + " may write it",
                  "chmod go-w " + path);
  return OkStatus();
}

Status CheckFolderTrusted(const std::string& path) {
  struct stat found = {};
  const std::string folder = FolderOf(path);
  if (stat(folder.c_str(), &found) != 0) return IoError(folder, "read", errno);
  return CheckTrustedAs(folder, found);
}

}  // namespace

bool PathExists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes) {
  XCCL_ASSIGN_OR_RETURN(const Descriptor file, OpenSource(path, most_bytes));
  std::string contents;
  std::array<char, kBlockBytes> block;
  while (true) {
    const ssize_t got = read(file.get(), block.data(), block.size());
    if (got == 0) return contents;
    if (got < 0 && errno == EINTR) continue;  // a signal's handler ran, as those of Python do
    if (got < 0) return IoError(path, "read", errno);
    if (static_cast<int64_t>(contents.size()) + got > most_bytes) return TooLarge(path, most_bytes);
    contents.append(block.data(), static_cast<size_t>(got));
  }
}

StatusOr<std::string> ReadTextFile(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  if (HasUtf16Mark(text)) return InvalidInput(path + ":1:1: begins with a mark of UTF-16; expected UTF-8");
  text.erase(0, text.size() - WithoutByteOrderMark(text).size());
  return text;
}

Status CheckTrusted(const std::string& path) {
  XCCL_RETURN_IF_ERROR(CheckFolderTrusted(path));
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return errno == ENOENT ? OkStatus() : IoError(path, "read", errno);
  std::error_code error;
  const std::string named = fs::canonical(path, error).string();  // a link's file may lie in another folder
  if (error) return IoError(path, "read", error.value());
  XCCL_RETURN_IF_ERROR(CheckFolderTrusted(named));
  return CheckTrustedAs(path, found);
}

Status WriteFileAtomically(const std::string& path, const std::function<Status(std::ostream&)>& write) {
  XCCL_ASSIGN_OR_RETURN(const Target target, FindTarget(path));
  if (target.direct) return WriteDirectly(path, write);
  std::string name;
  Descriptor file(MakeTemporary(FolderOf(target.final), target.final, name));
  if (file.get() < 0) return IoError(path, "write", errno);
  Status status = target.mode && fchmod(file.get(), *target.mode) != 0 ? IoError(path, "write", errno)
                                                                       : WriteInto(file.get(), path, write);
  // A network file system may say here that the disk is full.
  if (const int error = file.Close(); status.ok() && error != 0) status = IoError(path, "write", error);
  if (status.ok() && std::rename(name.c_str(), target.final.c_str()) != 0)
    status = IoError(path, "write", errno);
  if (!status.ok()) std::remove(name.c_str());
  return status;
}

Status CheckWritable(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(const Target target, FindTarget(path));
  if (target.direct) return access(path.c_str(), W_OK) == 0 ? OkStatus() : IoError(path, "write", errno);
  // A trial file is the only reliable test: a folder can be read-only for reasons other than its permissions.
  std::string trial;
  const Descriptor file(MakeTemporary(FolderOf(target.final), target.final, trial));
  if (file.get() < 0) return IoError(path, "write", errno);
  std::remove(trial.c_str());
  return OkStatus();
}

Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  return WriteFileAtomically(path, [&](std::ostream& out) {
    out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    return OkStatus();
  });
}

Status MakeFolders(const std::string& path, mode_t mode) {
  const int error = MakeFoldersOf(path, mode);
  return error == 0 ? OkStatus()
                    : InvalidInput(path + ": cannot make the directory: " + std::strerror(error));
}

}  // namespace xccl
