#include "runtime/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <string_view>

namespace xccl::cuda {
namespace {

// The unversioned name is in the toolkit's development package only; the others are its releases.
constexpr std::array<const char*, 6> kNames = {"libnvrtc.so",
                                               "libnvrtc.so.13",
                                               "libnvrtc.so.12",
                                               "/usr/local/cuda/lib64/libnvrtc.so",
                                               "/usr/local/cuda/lib64/libnvrtc.so.13",
                                               "/usr/local/cuda/lib64/libnvrtc.so.12"};

template <typename F>
bool Find(void* library, F*& function, const char* symbol) {
  function = reinterpret_cast<F*>(dlsym(library, symbol));
  return function != nullptr;
}

StatusOr<Nvrtc> Open() {
  Nvrtc nvrtc;
  void* library = nullptr;
  std::string reason;
  for (const char* name : kNames) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (reason.empty()) reason = dlerror();
  }
  if (library == nullptr)
    return InvalidInput(
        fmt::format("nvrtc: not found: {}; hint: put the toolkit's lib64 into LD_LIBRARY_PATH", reason));
  const bool complete = Find(library, nvrtc.Version, "nvrtcVersion") &&
                        Find(library, nvrtc.GetErrorString, "nvrtcGetErrorString") &&
                        Find(library, nvrtc.CreateProgram, "nvrtcCreateProgram") &&
                        Find(library, nvrtc.DestroyProgram, "nvrtcDestroyProgram") &&
                        Find(library, nvrtc.CompileProgram, "nvrtcCompileProgram") &&
                        Find(library, nvrtc.GetCubinSize, "nvrtcGetCUBINSize") &&
                        Find(library, nvrtc.GetCubin, "nvrtcGetCUBIN") &&
                        Find(library, nvrtc.GetProgramLogSize, "nvrtcGetProgramLogSize") &&
                        Find(library, nvrtc.GetProgramLog, "nvrtcGetProgramLog");
  if (!complete) return InvalidInput("nvrtc: the library is too old; expected that of CUDA 12.0 or later");
  return nvrtc;
}

std::string LogOf(const Nvrtc& nvrtc, Nvrtc::Program program) {
  size_t bytes = 0;
  if (nvrtc.GetProgramLogSize(program, &bytes) != 0 || bytes < 2) return "";
  std::string log(bytes, '\0');
  if (nvrtc.GetProgramLog(program, log.data()) != 0) return "";
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

// Destroys what CreateProgram made.
struct ProgramOwner {
  const Nvrtc& nvrtc;
  Nvrtc::Program program = nullptr;
  ~ProgramOwner() {
    if (program != nullptr) nvrtc.DestroyProgram(&program);
  }
};

}  // namespace

StatusOr<const Nvrtc*> LoadNvrtc() {
  static const StatusOr<Nvrtc> opened = Open();
  if (!opened.ok()) return opened.status();
  return &*opened;
}

std::vector<std::string> OptionsOf(const CompileRequest& request) {
  std::vector<std::string> options = {fmt::format("--gpu-architecture=sm_{}", request.arch), "--std=c++20"};
  options.insert(options.end(), request.options.begin(), request.options.end());
  return options;
}

StatusOr<std::string> CompileToCubin(const Nvrtc& nvrtc, const CompileRequest& request) {
  const auto fail = [&](int32_t result, const std::string& log) {
    return InvalidInput(fmt::format("{}: nvrtc for sm_{}: {}{}{}", request.name, request.arch,
                                    nvrtc.GetErrorString(result), log.empty() ? "" : "\n", log));
  };
  std::vector<const char*> names, texts, options;
  for (const SourceFile& header : request.headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  ProgramOwner owner{nvrtc};
  int32_t result = nvrtc.CreateProgram(&owner.program, request.source.c_str(), request.name.c_str(),
                                       static_cast<int>(names.size()), texts.data(), names.data());
  if (result != 0) return fail(result, "");
  const std::vector<std::string> option_texts = OptionsOf(request);
  for (const std::string& option : option_texts) options.push_back(option.c_str());
  result = nvrtc.CompileProgram(owner.program, static_cast<int>(options.size()), options.data());
  if (result != 0) return fail(result, LogOf(nvrtc, owner.program));
  size_t bytes = 0;
  result = nvrtc.GetCubinSize(owner.program, &bytes);
  if (result != 0) return fail(result, "");
  std::string cubin(bytes, '\0');
  result = nvrtc.GetCubin(owner.program, cubin.data());
  if (result != 0) return fail(result, "");
  return cubin;
}

}  // namespace xccl::cuda
