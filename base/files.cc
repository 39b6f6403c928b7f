#include "base/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace xccl {
namespace {

Status IoError(const std::string& path, const char* verb, int error) {
  return InvalidInput(path + ": cannot " + verb + ": " + std::strerror(error));
}

}  // namespace

StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return IoError(path, "read", errno);
  std::string contents;
  char block[1 << 16];
  size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file)) > 0) contents.append(block, got);
  const int error = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (error != 0) return IoError(path, "read", error);
  return contents;
}

Status WriteFileAtomically(const std::string& path, const std::function<Status(std::ostream&)>& write) {
  // A device or pipe cannot be replaced by renaming; a symbolic link stays one.
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  const bool exists = std::filesystem::exists(found);
  if (std::filesystem::is_directory(found)) return IoError(path, "write", EISDIR);
  const bool direct = exists && !std::filesystem::is_regular_file(found);
  const std::string target = exists && !direct ? std::filesystem::canonical(path, error).string() : path;
  const std::string temporary = direct ? path : target + ".tmp" + std::to_string(getpid());
  errno = 0;
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) return IoError(path, "write", errno);
  Status status = write(out);
  if (status.ok()) {
    out.flush();
    if (!out) status = IoError(path, "write", errno != 0 ? errno : EIO);
  }
  out.close();
  if (direct) return status;
  if (status.ok() && std::rename(temporary.c_str(), target.c_str()) != 0)
    status = IoError(path, "write", errno);
  if (!status.ok()) std::remove(temporary.c_str());
  return status;
}

Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  return WriteFileAtomically(path, [&](std::ostream& out) {
    out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    return OkStatus();
  });
}

}  // namespace xccl
