#include "base/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace xccl {
namespace {

Status IoError(const std::string& path, const char* verb, int error) {
  return InvalidInput(path + ": cannot " + verb + ": " + std::strerror(error));
}

// The two names of an output file: while it is written, and when it is complete.
struct Target {
  std::string written;  // the temporary file, unless direct
  std::string final;
  bool direct = false;  // a device or pipe; a rename cannot replace it
};

// Follows a symbolic link, so that the file it names is replaced and the link stays.
StatusOr<Target> FindTarget(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(found)) return IoError(path, "write", EISDIR);
  const bool exists = std::filesystem::exists(found);
  if (exists && !std::filesystem::is_regular_file(found)) return Target{path, path, true};
  const std::string final = exists ? std::filesystem::canonical(path, error).string() : path;
  if (exists && error) return IoError(path, "write", error.value());
  return Target{final + ".tmp" + std::to_string(getpid()), final, false};
}

// The nearest folder above a file that is not there that exists.
std::filesystem::path FolderAbove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  while (!folder.empty() && !std::filesystem::exists(folder, ignored)) folder = folder.parent_path();
  return folder;
}

}  // namespace

bool PathExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return IoError(path, "read", errno);
  std::string contents;
  char block[1 << 16];
  while (std::feof(file) == 0) {
    contents.append(block, std::fread(block, 1, sizeof block, file));
    if (std::ferror(file) == 0) continue;
    if (errno != EINTR) break;  // a signal's handler ran, as those of Python do
    std::clearerr(file);
  }
  const int error = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (error != 0) return IoError(path, "read", error);
  return contents;
}

StatusOr<std::string> ReadTextFile(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  if (HasUtf16Mark(text)) return InvalidInput(path + ":1:1: begins with a mark of UTF-16; expected UTF-8");
  text.erase(0, text.size() - WithoutByteOrderMark(text).size());
  return text;
}

Status WriteFileAtomically(const std::string& path, const std::function<Status(std::ostream&)>& write) {
  XCCL_ASSIGN_OR_RETURN(const Target target, FindTarget(path));
  const bool direct = target.direct;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(target.written).parent_path();
  if (!folder.empty() && !std::filesystem::exists(folder, error))
    std::filesystem::create_directories(folder, error);
  if (error) return IoError(path, "write", error.value());
  errno = 0;
  std::ofstream out(target.written, std::ios::binary | std::ios::trunc);
  if (!out) return IoError(path, "write", errno);
  Status status = write(out);
  if (status.ok()) {
    out.flush();
    if (!out) status = IoError(path, "write", errno != 0 ? errno : EIO);
  }
  errno = 0;
  out.close();  // where a network file system says that the disk is full
  if (status.ok() && !out) status = IoError(path, "write", errno != 0 ? errno : EIO);
  if (direct) return status;
  if (status.ok() && std::rename(target.written.c_str(), target.final.c_str()) != 0)
    status = IoError(path, "write", errno);
  if (!status.ok()) std::remove(target.written.c_str());
  return status;
}

Status CheckWritable(const std::string& path) {
  XCCL_ASSIGN_OR_RETURN(const Target target, FindTarget(path));
  if (target.direct) return access(path.c_str(), W_OK) == 0 ? OkStatus() : IoError(path, "write", errno);
  // A trial file is the only reliable test: a folder can be read-only for reasons other than its permissions.
  // Folders that are missing are made when the file is written.
  const std::filesystem::path written(target.written);
  const std::string trial = (FolderAbove(target.written) / written.filename()).string();
  std::FILE* const file = std::fopen(trial.c_str(), "wb");
  if (file == nullptr) return IoError(path, "write", errno);
  std::fclose(file);
  std::remove(trial.c_str());
  return OkStatus();
}

Status WriteFileAtomically(const std::string& path, std::string_view contents) {
  return WriteFileAtomically(path, [&](std::ostream& out) {
    out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    return OkStatus();
  });
}

}  // namespace xccl
