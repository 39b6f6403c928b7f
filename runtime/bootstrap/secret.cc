#include "runtime/bootstrap/secret.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/proof.h"
#include "runtime/host/owned_file.h"

namespace xccl::bootstrap {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr std::string_view kFile = "secret";

Status CannotRead(const std::string& path) {
  return InvalidInput(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
}

// Reads what is open, so that nobody puts another file in its place between the look and the reading.
StatusOr<std::string> ReadOpen(const OwnedFile& file, const std::string& path) {
  struct stat found = {};
  struct statfs system = {};
  if (fstat(file.get(), &found) != 0 || fstatfs(file.get(), &system) != 0) return CannotRead(path);
  if (!S_ISREG(found.st_mode) || system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC)
    return InvalidInput(path + ": no regular file on a disk; expected a token's file");
  if (found.st_uid != geteuid() && found.st_uid != 0)
    return InvalidInput(
        fmt::format("{}: user {} owns it; expected a token's file of yours or root's", path, found.st_uid));
  if ((found.st_mode & 077U) != 0)
    return InvalidInput(
        fmt::format("{}: others may use it, by its mode {:04o}; expected a token's file for its owner alone; "
                    "hint: chmod go-rwx {}",
                    path, found.st_mode & 07777U, path));
  std::string token;
  std::array<char, kMostBytes + 1> bytes;
  while (true) {
    const ssize_t got = read(file.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path);
    if (got == 0) break;
    token.append(bytes.data(), static_cast<size_t>(got));
    if (token.size() > kMostBytes)
      return InvalidInput(fmt::format("{}: more than {} bytes; expected at most so many", path, kMostBytes));
  }
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (IsBlank(token)) return InvalidInput(path + ": empty; expected a token");
  return token;
}

// Only this user and root may put anything there. The group of a user's own name is the user.
Status CheckFolder(const OwnedFile& folder, const std::string& path) {
  struct stat found = {};
  if (fstat(folder.get(), &found) != 0) return CannotRead(path);
  if (found.st_uid != geteuid() && found.st_uid != 0)
    return InvalidInput(fmt::format("{}: user {} owns it; expected a folder of yours", path, found.st_uid));
  const bool group = (found.st_mode & S_IWGRP) != 0 && found.st_gid != found.st_uid;
  if (!group && (found.st_mode & S_IWOTH) == 0) return OkStatus();
  return InvalidInput(fmt::format(
      "{}: others may write it, by its mode {:04o}; expected a folder that only you and root write; hint: "
      "chmod go-w {}",
      path, found.st_mode & 07777U, path));
}

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// The folder of the secret, which is made where it is missing; not open where it cannot be made.
StatusOr<OwnedFile> OpenFolders(const std::string& home, std::string& path) {
  OwnedFile folder(open(home.c_str(), kFolderFlags));
  if (!folder.open()) return folder;
  path = home;
  XCCL_RETURN_IF_ERROR(CheckFolder(folder, path));
  for (const char* name : {".local", "state", "xccl"}) {
    path += std::string("/") + name;
    (void)mkdirat(folder.get(), name, 0700);
    OwnedFile next(openat(folder.get(), name, kFolderFlags | O_NOFOLLOW));
    if (!next.open() && (errno == ELOOP || errno == ENOTDIR))
      return InvalidInput(path + ": no folder, or a link to one; expected a folder");
    folder = std::move(next);
    if (!folder.open()) return folder;
    XCCL_RETURN_IF_ERROR(CheckFolder(folder, path));
  }
  return folder;
}

// Makes the file whole or not at all; of several processes that make it, one wins.
bool MakeSecret(const OwnedFile& folder) {
  const std::string beside = fmt::format("{}.{}", kFile, Hex(View(RandomDigest())));
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const OwnedFile file(openat(folder.get(), beside.c_str(), flags, 0600));
  if (!file.open()) return false;
  const std::string text = Hex(View(RandomDigest())) + "\n";
  const bool written = write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(file.get()) == 0;
  const bool made = written && (linkat(folder.get(), beside.c_str(), folder.get(), kFile.data(), 0) == 0 ||
                                errno == EEXIST);
  unlinkat(folder.get(), beside.c_str(), 0);
  return made;
}

StatusOr<std::optional<std::string>> FindSecret(const std::string& home) {
  std::string path;
  XCCL_ASSIGN_OR_RETURN(const OwnedFile folder, OpenFolders(home, path));
  if (!folder.open()) return std::optional<std::string>();
  path += fmt::format("/{}", kFile);
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  OwnedFile file(openat(folder.get(), kFile.data(), kFlags));
  if (!file.open() && errno == ENOENT) {
    if (!MakeSecret(folder)) return std::optional<std::string>();
    file = OwnedFile(openat(folder.get(), kFile.data(), kFlags));
  }
  if (!file.open() && errno == ELOOP) return InvalidInput(path + ": a link; expected a file");
  if (!file.open()) return CannotRead(path);
  XCCL_ASSIGN_OR_RETURN(std::string secret, ReadOpen(file, path));
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (secret.size() != 2 * sizeof(Digest) || secret.find_first_not_of(kDigits) != std::string::npos)
    return InvalidInput(
        fmt::format("{}: not what XCCL wrote; expected {} hexadecimal digits", path, 2 * sizeof(Digest)));
  return std::optional<std::string>(std::move(secret));
}

}  // namespace

bool IsBlank(std::string_view token) {
  return token.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

StatusOr<std::string> ReadSecret(const std::string& path) {
  const OwnedFile file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.open()) return CannotRead(path);
  return ReadOpen(file, path);
}

StatusOr<std::optional<std::string>> UserSecret(const std::string& home) {
  struct stat found = {};
  if (home.empty() || stat(home.c_str(), &found) != 0 || found.st_uid != geteuid())
    return std::optional<std::string>();
  StatusOr<std::optional<std::string>> secret = FindSecret(home);
  if (secret.ok()) return secret;
  const std::string& text = secret.status().message();
  return InvalidInput(fmt::format("{}{}XCCL_TOKEN or XCCL_TOKEN_FILE, the same on all ranks", text,
                                  text.find("; hint: ") == std::string::npos ? "; hint: " : ", or "));
}

}  // namespace xccl::bootstrap
