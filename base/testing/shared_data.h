// Finds test inputs that the project does not carry: in the folder `shared` beside the workspace, or in the
// one that XCCL_SHARED names (bazel test --test_env=XCCL_SHARED=DIR). If SharedData returns nothing, a test
// skips with SharedDataMissing.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace xccl {

// The path of file or folder `relative` in the shared folder, if it exists.
inline std::optional<std::string> SharedData(std::string_view relative) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path root;
  if (const char* named = std::getenv("XCCL_SHARED"); named != nullptr && *named != '\0') {
    root = named;
  } else {
    // The runfiles hold a link to this header, which lies in WORKSPACE/base/testing.
    root = fs::canonical("base/testing/shared_data.h", error)
               .parent_path()
               .parent_path()
               .parent_path()
               .parent_path() /
           "shared";
  }
  const fs::path path = root / relative;
  if (error || !fs::exists(path, error)) return std::nullopt;
  return path.string();
}

inline std::string SharedDataMissing(std::string_view relative) {
  return "no ../shared/" + std::string(relative) +
         " beside the workspace, and XCCL_SHARED names no folder that has it";
}

}  // namespace xccl
