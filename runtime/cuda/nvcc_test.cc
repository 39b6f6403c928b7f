// A shell script in nvcc's place shows what the compiler is given and that nothing is left behind.
#include "runtime/cuda/nvcc.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "base/files.h"

namespace xccl::cuda {
namespace {

std::string NewDirectory(const std::string& name) {
  std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

std::string Tool(const std::string& path, const std::string& body) {
  EXPECT_EQ(WriteFileAtomically(path, "#!/bin/sh\n" + body), OkStatus());
  chmod(path.c_str(), 0700);
  return path;
}

CompileRequest Request() {
  CompileRequest request;
  request.name = "x.cu";
  request.source = "source";
  request.headers = {{"device/a.h", "header"}};
  request.options = {"-default-device", "-DXCCL_TYPE=float"};
  request.arch = 100;
  return request;
}

TEST(Nvcc, IsFoundWhereTheEnvironmentSays) {
  const std::string home = NewDirectory("home/bin"), path = NewDirectory("path");
  std::map<std::string, std::string, std::less<>> variables = {{"PATH", "/nowhere:" + path}};
  const auto environment = [&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
  const bool installed = std::filesystem::exists("/usr/local/cuda/bin/nvcc");
  EXPECT_EQ(FindNvcc(environment).ok(), installed);
  if (!installed) {
    EXPECT_EQ(FindNvcc(environment).status().message(),
              "nvcc: not in CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda/bin; hint: --nvcc FILE, or leave "
              "--arch out: NVRTC compiles when the book is loaded");
  }
  const std::string in_path = Tool(path + "/nvcc", "exit 0\n");
  EXPECT_EQ(*FindNvcc(environment), in_path);
  const std::string in_home = Tool(home + "/nvcc", "exit 0\n");
  variables["CUDA_HOME"] = testing::TempDir() + "/home";
  EXPECT_EQ(std::filesystem::canonical(*FindNvcc(environment)), std::filesystem::canonical(in_home));
}

TEST(Nvcc, IsGivenSourceHeadersAndOptions) {
  const std::string tools = NewDirectory("tools"), temporary = NewDirectory("temporary");
  const std::string nvcc =
      Tool(tools + "/nvcc",
           "directory=${3#-I}\n"
           "{ echo \"$1 $2 $4 $5 $7\"; cat \"$8\" \"$directory/device/a.h\"; } >\"$6\"\n");
  EXPECT_EQ(*CompileWithNvcc(nvcc, Request(), temporary),
            "-std=c++20 -arch=sm_100 -cubin -o -DXCCL_TYPE=float\nsourceheader");
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST(Nvcc, Failures) {
  const std::string tools = NewDirectory("tools"), temporary = NewDirectory("temporary");
  EXPECT_EQ(
      CompileWithNvcc(Tool(tools + "/fails", "echo wrong; echo line >&2; exit 2\n"), Request(), temporary)
          .status(),
      InvalidInput("x.cu: nvcc for sm_100: exit status 2\nwrong\nline\n"));
  EXPECT_EQ(CompileWithNvcc(tools + "/none", Request(), temporary).status(),
            InvalidInput(tools + "/none: cannot run: No such file or directory"));
  EXPECT_EQ(CompileWithNvcc("nvcc", Request(), "/proc/none").status(),
            InvalidInput("/proc/none: cannot make a directory: No such file or directory"));
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

}  // namespace
}  // namespace xccl::cuda
