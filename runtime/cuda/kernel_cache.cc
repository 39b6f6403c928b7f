#include "runtime/cuda/kernel_cache.h"

#include <fmt/core.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/strings.h"

namespace xccl::cuda {
namespace {

constexpr std::string_view kMagic = "xccl-cubin 1\n";

// Every field has its length before it, so that no two requests have one key.
std::string KeyOf(const Nvrtc& nvrtc, const CompileRequest& request) {
  int major = 0, minor = 0;
  nvrtc.Version(&major, &minor);
  std::string key = fmt::format("nvrtc {}.{}\n", major, minor);
  const auto add = [&](std::string_view field) {
    key += fmt::format("{}\n", field.size());
    key += field;
  };
  for (const std::string& option : OptionsOf(request)) add(option);
  add(request.name);
  add(request.source);
  for (const SourceFile& header : request.headers) {
    add(header.name);
    add(header.text);
  }
  return key;
}

std::string Encode(const std::string& key, const std::string& cubin) {
  return fmt::format("{}{} {} {:016x}\n", kMagic, key.size(), cubin.size(), HashOf(key + cubin)) + key +
         cubin;
}

// The cubin of a file, if the file is whole and of this key.
std::optional<std::string> Decode(const std::string& file, const std::string& key) {
  const size_t end = file.find('\n', kMagic.size());
  if (end == std::string::npos) return std::nullopt;
  const size_t begin = end + 1 + key.size();
  if (begin >= file.size()) return std::nullopt;
  std::string cubin = file.substr(begin);
  if (file != Encode(key, cubin)) return std::nullopt;
  return cubin;
}

}  // namespace

std::string DefaultKernelCache(
    const std::function<std::optional<std::string>(std::string_view name)>& environment) {
  if (const auto cache = environment("XDG_CACHE_HOME"); cache && !cache->empty()) return *cache + "/xccl";
  if (const auto home = environment("HOME"); home && !home->empty()) return *home + "/.cache/xccl";
  return "";
}

StatusOr<std::string> KernelCache::Get(const Nvrtc& nvrtc, const CompileRequest& request) {
  const std::string key = KeyOf(nvrtc, request);
  Entry& entry = [&]() -> Entry& {
    const std::lock_guard lock(mutex_);
    return entries_[key];
  }();
  const std::lock_guard lock(entry.mutex);
  if (entry.cubin) return *entry.cubin;
  const std::string path = fmt::format("{}/{:016x}.cubin", directory_, HashOf(key));
  const bool on_disk = !directory_.empty() && MakeFolders(directory_, 0700).ok() && CheckTrusted(path).ok();
  if (on_disk) {
    const StatusOr<std::string> file = ReadFile(path);
    if (file.ok()) {
      entry.cubin = Decode(*file, key);
      if (entry.cubin) return *entry.cubin;
    }
  }
  XCCL_ASSIGN_OR_RETURN(entry.cubin, CompileToCubin(nvrtc, request));
  // A cache that cannot be written costs time, not correctness.
  if (on_disk) static_cast<void>(WriteFileAtomically(path, Encode(key, *entry.cubin)).ok());
  return *entry.cubin;
}

}  // namespace xccl::cuda
