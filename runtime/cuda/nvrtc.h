// NVIDIA's run-time compiler: the few functions of nvrtc.h that are used, declared anew as in driver.h, and
// one function that turns a source into a cubin. It needs no device and no driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace xccl::cuda {

struct Nvrtc {
  using Program = struct NvrtcProgramObject*;
  int32_t (*Version)(int* major, int* minor) = nullptr;
  const char* (*GetErrorString)(int32_t result) = nullptr;
  int32_t (*CreateProgram)(Program* program, const char* source, const char* name, int headers,
                           const char* const* header_texts, const char* const* header_names) = nullptr;
  int32_t (*DestroyProgram)(Program* program) = nullptr;
  int32_t (*CompileProgram)(Program program, int options, const char* const* option_texts) = nullptr;
  int32_t (*GetCubinSize)(Program program, size_t* bytes) = nullptr;
  int32_t (*GetCubin)(Program program, char* cubin) = nullptr;
  int32_t (*GetProgramLogSize)(Program program, size_t* bytes) = nullptr;
  int32_t (*GetProgramLog)(Program program, char* log) = nullptr;
};

// Opens libnvrtc once a process, from the linker's path or
// /usr/local/cuda. Errors: kInvalidInput "nvrtc: not found: ...".
StatusOr<const Nvrtc*> LoadNvrtc();

struct SourceFile {
  std::string name;  // as in #include
  std::string text;
  bool operator==(const SourceFile&) const = default;
};

// The inputs that a cubin depends on, the compiler's version apart.
struct CompileRequest {
  std::string name;  // for messages
  std::string source;
  std::vector<SourceFile> headers;
  std::vector<std::string> options;  // without the architecture
  int32_t arch = 90;                 // compute capability, major * 10 + minor
  bool operator==(const CompileRequest&) const = default;
};

// The options that are passed: one real architecture, C++20, then the request's.
std::vector<std::string> OptionsOf(const CompileRequest& request);

// Errors: kInvalidInput "NAME: nvrtc for sm_90: REASON" followed by the compiler's log.
StatusOr<std::string> CompileToCubin(const Nvrtc& nvrtc, const CompileRequest& request);

}  // namespace xccl::cuda
