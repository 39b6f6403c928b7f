#include "runtime/cuda/nvcc.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/strings.h"

namespace xccl::cuda {
namespace {

namespace fs = std::filesystem;

// A directory that is removed with everything in it at the end.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& under) : path_(under + "/xccl-nvcc-XXXXXX") {
    made_ = mkdtemp(path_.data()) != nullptr;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (made_) fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  bool made() const { return made_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_ = false;
};

Status WriteSources(const CompileRequest& request, const std::string& directory) {
  XCCL_RETURN_IF_ERROR(WriteFileAtomically(directory + "/kernel.cu", request.source));
  for (const SourceFile& header : request.headers) {
    const fs::path path = fs::path(directory) / header.name;
    XCCL_RETURN_IF_ERROR(MakeFolders(path.parent_path().string()));
    XCCL_RETURN_IF_ERROR(WriteFileAtomically(path.string(), header.text));
  }
  return OkStatus();
}

// The program's exit status; its output goes to `log`.
StatusOr<int> RunTool(const std::string& tool, std::vector<std::string> arguments, const std::string& log) {
  arguments.insert(arguments.begin(), tool);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, tool.c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return InvalidInput(fmt::format("{}: cannot run: {}", tool, std::strerror(error)));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

StatusOr<std::string> FindNvcc(
    const std::function<std::optional<std::string>(std::string_view name)>& environment) {
  std::vector<std::string> directories;
  for (const char* home : {"CUDA_HOME", "CUDA_PATH"})
    if (const auto at = environment(home); at && !at->empty()) directories.push_back(*at + "/bin");
  if (const auto path = environment("PATH"))
    for (std::string& directory : Split(*path, ':'))
      if (!directory.empty()) directories.push_back(std::move(directory));
  directories.emplace_back("/usr/local/cuda/bin");
  for (const std::string& directory : directories)
    if (const std::string file = directory + "/nvcc"; access(file.c_str(), X_OK) == 0) return file;
  return InvalidInput(
      "nvcc: not in CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda/bin; hint: --nvcc FILE, or leave --arch out: "
      "NVRTC compiles when the book is loaded");
}

StatusOr<std::string> CompileWithNvcc(const std::string& nvcc, const CompileRequest& request,
                                      const std::string& temporary) {
  const TemporaryDirectory here(temporary);
  if (!here.made())
    return InvalidInput(fmt::format("{}: cannot make a directory: {}", temporary, std::strerror(errno)));
  XCCL_RETURN_IF_ERROR(WriteSources(request, here.path()));
  const std::string cubin = here.path() + "/kernel.cubin", log = here.path() + "/log";
  std::vector<std::string> arguments = {
      "-std=c++20", fmt::format("-arch=sm_{}", request.arch), "-I" + here.path(), "-cubin", "-o", cubin};
  for (const std::string& option : request.options)
    if (option != "-default-device") arguments.push_back(option);  // NVRTC's own
  arguments.push_back(here.path() + "/kernel.cu");
  XCCL_ASSIGN_OR_RETURN(const int status, RunTool(nvcc, std::move(arguments), log));
  if (status != 0) {
    const StatusOr<std::string> printed = ReadFile(log);
    return InvalidInput(fmt::format("{}: nvcc for sm_{}: exit status {}\n{}", request.name, request.arch,
                                    status, printed.ok() ? *printed : ""));
  }
  return ReadFile(cubin);
}

}  // namespace xccl::cuda
