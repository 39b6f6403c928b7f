#include "runtime/cuda/kernel_cache.h"

#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files.h"
#include "runtime/cuda/nvrtc.h"

namespace xccl::cuda {
namespace {

// A compiler that turns "X" into "cubin of X" and refuses what contains "error".
std::string compiled_source;  // NOLINT: the compiler's functions carry no state
int compilations = 0;         // NOLINT: likewise; since the last FakeNvrtc

Nvrtc FakeNvrtc() {
  compilations = 0;
  Nvrtc nvrtc;
  nvrtc.Version = [](int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return 0;
  };
  nvrtc.GetErrorString = [](int32_t) { return "NVRTC_ERROR_COMPILATION"; };
  nvrtc.CreateProgram = [](Nvrtc::Program*, const char* source, const char*, int, const char* const*,
                           const char* const*) {
    compiled_source = source;
    ++compilations;
    return 0;
  };
  nvrtc.DestroyProgram = [](Nvrtc::Program*) { return 0; };
  nvrtc.CompileProgram = [](Nvrtc::Program, int, const char* const*) {
    return compiled_source.find("error") == std::string::npos ? 0 : 6;
  };
  nvrtc.GetCubinSize = [](Nvrtc::Program, size_t* bytes) {
    *bytes = compiled_source.size() + 9;
    return 0;
  };
  nvrtc.GetCubin = [](Nvrtc::Program, char* cubin) {
    const std::string text = "cubin of " + compiled_source;
    text.copy(cubin, text.size());
    return 0;
  };
  nvrtc.GetProgramLogSize = [](Nvrtc::Program, size_t* bytes) {
    *bytes = 9;
    return 0;
  };
  nvrtc.GetProgramLog = [](Nvrtc::Program, char* log) {
    std::string_view("the log\n\0", 9).copy(log, 9);
    return 0;
  };
  return nvrtc;
}

std::string NewDirectory(const std::string& name) {
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  return directory;
}

CompileRequest Request(const std::string& source) {
  CompileRequest request;
  request.name = "a.cu";
  request.source = source;
  return request;
}

TEST(KernelCache, CompilesOnce) {
  const Nvrtc nvrtc = FakeNvrtc();
  const std::string directory = NewDirectory("cache-once");
  KernelCache cache(directory);
  for (int i = 0; i < 2; ++i) {
    const auto cubin = cache.Get(nvrtc, Request("x"));
    ASSERT_TRUE(cubin.ok());
    EXPECT_EQ(*cubin, "cubin of x");
  }
  KernelCache later(directory);
  EXPECT_EQ(*later.Get(nvrtc, Request("x")), "cubin of x");
  EXPECT_EQ(compilations, 1);
}

TEST(KernelCache, WhatDiffersIsCompiled) {
  const Nvrtc nvrtc = FakeNvrtc();
  KernelCache cache(NewDirectory("cache-differs"));
  CompileRequest request = Request("x");
  ASSERT_TRUE(cache.Get(nvrtc, request).ok());
  request.arch = 80;
  ASSERT_TRUE(cache.Get(nvrtc, request).ok());
  request.options = {"-DXCCL_OP=1"};
  ASSERT_TRUE(cache.Get(nvrtc, request).ok());
  request.headers = {{"a.h", "1"}};
  ASSERT_TRUE(cache.Get(nvrtc, request).ok());
  request.headers[0].text = "2";
  ASSERT_TRUE(cache.Get(nvrtc, request).ok());
  EXPECT_EQ(compilations, 5);
}

// Two requests wait for each other inside the compiler; a third, which equals one of them, is not compiled.
TEST(KernelCache, DifferentRequestsCompileAtTheSameTime) {
  Nvrtc nvrtc = FakeNvrtc();
  static std::barrier<>* both = nullptr;  // the compiler's functions carry no state
  std::barrier<> meeting(2);
  both = &meeting;
  nvrtc.CreateProgram = [](Nvrtc::Program*, const char*, const char*, int, const char* const*,
                           const char* const*) { return 0; };
  nvrtc.CompileProgram = [](Nvrtc::Program, int, const char* const*) {
    both->arrive_and_wait();
    return 0;
  };
  compiled_source = "any";
  KernelCache cache("");
  std::vector<std::jthread> threads;
  for (const char* source : {"x", "y", "x"})
    threads.emplace_back([&, source] { EXPECT_EQ(*cache.Get(nvrtc, Request(source)), "cubin of any"); });
}

TEST(KernelCache, ADamagedFileIsReplaced) {
  const Nvrtc nvrtc = FakeNvrtc();
  const std::string directory = NewDirectory("cache-damaged");
  KernelCache(directory).Get(nvrtc, Request("x")).status().ok();
  const std::string path = std::filesystem::directory_iterator(directory)->path().string();
  const std::string whole = *ReadFile(path);
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 1);
    for (const std::string& text : {broken, whole.substr(0, at)}) {
      ASSERT_EQ(WriteFileAtomically(path, text), OkStatus());
      KernelCache cache(directory);
      compilations = 0;
      ASSERT_EQ(*cache.Get(nvrtc, Request("x")), "cubin of x");
      EXPECT_EQ(compilations, 1) << "byte " << at;
      EXPECT_EQ(*ReadFile(path), whole);
    }
  }
}

TEST(KernelCache, AFolderThatOthersMayWriteIsDoneWithout) {
  const Nvrtc nvrtc = FakeNvrtc();
  const std::string directory = NewDirectory("cache-open");
  const auto compiles_again = [&] {
    KernelCache cache(directory);
    compilations = 0;
    EXPECT_EQ(*cache.Get(nvrtc, Request("x")), "cubin of x");
    return compilations == 1;
  };
  EXPECT_TRUE(compiles_again());
  EXPECT_EQ(std::filesystem::status(directory).permissions(), std::filesystem::perms::owner_all);
  EXPECT_FALSE(compiles_again());
  const std::string path = std::filesystem::directory_iterator(directory)->path().string();
  for (const std::string& open : {path, directory}) {
    const std::filesystem::perms before = std::filesystem::status(open).permissions();
    std::filesystem::permissions(open, std::filesystem::perms::all);
    EXPECT_TRUE(compiles_again());
    std::filesystem::permissions(open, before);
  }
  EXPECT_FALSE(compiles_again());
}

TEST(KernelCache, ADirectoryThatCannotBeWrittenIsDoneWithout) {
  KernelCache cache("/proc/no-such-place");
  EXPECT_EQ(*cache.Get(FakeNvrtc(), Request("x")), "cubin of x");
}

TEST(KernelCache, DefaultDirectory) {
  std::map<std::string, std::string, std::less<>> variables = {{"HOME", "/home/a"},
                                                               {"XDG_CACHE_HOME", "/cache"}};
  const auto environment = [&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
  EXPECT_EQ(DefaultKernelCache(environment), "/cache/xccl");
  variables.erase("XDG_CACHE_HOME");
  EXPECT_EQ(DefaultKernelCache(environment), "/home/a/.cache/xccl");
  variables.clear();
  EXPECT_EQ(DefaultKernelCache(environment), "");
}

TEST(Nvrtc, ShowsTheLog) {
  EXPECT_EQ(CompileToCubin(FakeNvrtc(), Request("an error")).status().message(),
            "a.cu: nvrtc for sm_90: NVRTC_ERROR_COMPILATION\nthe log");
}

TEST(Nvrtc, CompilesForEveryArchitecture) {
  const auto nvrtc = LoadNvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  CompileRequest request =
      Request("#include \"two.h\"\nextern \"C\" __global__ void f(int* x) { *x = kTwo; }\n");
  request.headers = {{"two.h", "constexpr int kTwo = 2;\n"}};
  for (const int32_t arch : {80, 90, 100}) {
    request.arch = arch;
    const auto cubin = CompileToCubin(**nvrtc, request);
    ASSERT_TRUE(cubin.ok()) << cubin.status().message();
    EXPECT_EQ(cubin->substr(1, 3), "ELF");
  }
  request.headers[0].text = "";
  const Status wrong = CompileToCubin(**nvrtc, request).status();
  EXPECT_NE(wrong.message().find("identifier \"kTwo\" is undefined"), std::string::npos) << wrong.message();
}

}  // namespace
}  // namespace xccl::cuda
