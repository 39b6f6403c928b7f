#include "runtime/bootstrap/secret.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/proof.h"
#include "runtime/host/owned_file.h"

namespace xccl::bootstrap {
namespace {

// Makes the file whole or not at all; of several processes that make it, one wins.
bool MakeSecret(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  const std::string beside = path + "." + Hex(View(RandomDigest()));
  const OwnedFile file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.open()) return false;
  const std::string text = Hex(View(RandomDigest())) + "\n";
  const bool written = write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       fsync(file.get()) == 0;
  const bool made = written && (link(beside.c_str(), path.c_str()) == 0 || errno == EEXIST);
  unlink(beside.c_str());
  return made;
}

}  // namespace

StatusOr<std::string> ReadSecret(const std::string& path) {
  constexpr int64_t kMostBytes = 4096;
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0) {
    if (found.st_uid != geteuid() && found.st_uid != 0)
      return InvalidInput(
          fmt::format("{}: user {} owns it; expected a token's file of yours or root's", path, found.st_uid));
    if ((found.st_mode & 077U) != 0)
      return InvalidInput(fmt::format(
          "{}: others may use it, by its mode {:04o}; expected a token's file for its owner alone; "
          "hint: chmod go-rwx {}",
          path, found.st_mode & 07777U, path));
  }
  XCCL_ASSIGN_OR_RETURN(std::string token, ReadFile(path, kMostBytes));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty()) return InvalidInput(path + ": empty; expected a token");
  return token;
}

StatusOr<std::optional<std::string>> UserSecret(const std::string& home) {
  struct stat found = {};
  if (home.empty() || stat(home.c_str(), &found) != 0 || found.st_uid != geteuid())
    return std::optional<std::string>();
  const std::string path = home + "/.local/state/xccl/secret";
  if (stat(path.c_str(), &found) != 0 && !MakeSecret(path)) return std::optional<std::string>();
  XCCL_ASSIGN_OR_RETURN(std::string secret, ReadSecret(path));
  return std::optional<std::string>(std::move(secret));
}

}  // namespace xccl::bootstrap
