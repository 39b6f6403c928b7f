// LD_AUDIT: whoever asks for libnccl.so.2, by linking or by dlopen, gets the one beside this library, which
// asks for the real one under a name of its own. The dynamic loader finds that as it would without us.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "runtime/nccl/shim/real_library.h"

namespace {

constexpr std::string_view kLibrary = "libnccl.so.2";

char dropin[PATH_MAX];  // absolute; "": it is not there
char real[PATH_MAX];    // where the loader found NCCL; "": not yet

// Without substr, whose error would need the C++ library.
std::string_view FileOf(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path;
}

bool Exists(const char* path) { return access(path, R_OK) == 0; }

void FindDropin() {
  Dl_info self = {};
  if (dladdr(reinterpret_cast<void*>(&FindDropin), &self) == 0) return;
  const std::string_view path = self.dli_fname;
  const size_t folder = path.size() - FileOf(path).size();
  snprintf(dropin, sizeof dropin, "%.*sxccl/%s", static_cast<int>(folder), path.data(), kLibrary.data());
  if (Exists(dropin)) return;
  fprintf(stderr, "xccl: %s: not found; expected it beside the library that LD_AUDIT names\n", dropin);
  dropin[0] = '\0';
}

}  // namespace

extern "C" {

unsigned la_version(unsigned) {
  FindDropin();
  return LAV_CURRENT;
}

// Called with what was asked for, and then, where that has no slash, with each place where it may be.
char* la_objsearch(const char* name, uintptr_t*, unsigned) {
  const std::string_view asked = name;
  if (asked == xccl::nccl_shim::kRealLibrary) return real[0] == '\0' ? const_cast<char*>(name) : real;
  if (dropin[0] == '\0' || FileOf(asked) != kLibrary || asked == dropin) return const_cast<char*>(name);
  if (asked.find('/') == std::string_view::npos) return const_cast<char*>(name);  // its places come next
  if (!Exists(name)) return const_cast<char*>(name);
  if (real[0] == '\0') snprintf(real, sizeof real, "%s", name);
  return dropin;
}

}  // extern "C"
