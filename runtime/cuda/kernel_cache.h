// A cache of cubins by the inputs that they are made of. Each cubin has a file, named by a hash of the
// request and of the compiler's version. The file holds the whole request as well, so two requests that share
// a name cause a miss and not a wrong kernel. A file is written beside its place and renamed, since processes
// may share a directory. A damaged file is a miss and is replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "runtime/cuda/nvrtc.h"

namespace xccl::cuda {

// Safe from any thread.
class KernelCache {
 public:
  // `directory` is made for its user alone when it is missing. Where it is empty or cannot be written, or
  // others may write it (CheckTrusted of base/files.h), cubins are kept in memory alone, without a message.
  explicit KernelCache(std::string directory) : directory_(std::move(directory)) {}

  // Compiles at most once a request and process; different requests at the same time. Errors: those of
  // CompileToCubin.
  StatusOr<std::string> Get(const Nvrtc& nvrtc, const CompileRequest& request);

 private:
  // Its holder is the one who reads or compiles it.
  struct Entry {
    std::mutex mutex;
    std::optional<std::string> cubin;
  };

  const std::string directory_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by key; none is taken out
};

// $XDG_CACHE_HOME/xccl, else $HOME/.cache/xccl, else "": in memory alone.
std::string DefaultKernelCache(
    const std::function<std::optional<std::string>(std::string_view name)>& environment);

}  // namespace xccl::cuda
