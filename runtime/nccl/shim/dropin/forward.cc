// A libnccl.so.2 to stand in the real one's place: the shim's own functions, and for every other one a jump
// to the real library's, whatever its arguments are.
#include <cstddef>
#include <mutex>
#include <string_view>

#include "runtime/nccl/shim/dropin/names.h"
#include "runtime/nccl/shim/nccl.h"
#include "runtime/nccl/shim/say.h"

namespace {

// Stands for a function that the real library lacks, and for all functions where there is no library. An old
// library has none of the newest functions, and no program of its time calls them.
int Missing() {
  static std::once_flag said;
  std::call_once(said, [] {
    const xccl::StatusOr<xccl::nccl_shim::Nccl>& nccl = xccl::nccl_shim::TheNccl();
    xccl::nccl_shim::Say(nccl.ok() ? "NCCL has no function for a call; is it older than the program?"
                                   : nccl.status().message());
  });
  return xccl::nccl_shim::kSystemError;
}
const char* MissingText(int, const void*) { return "xccl: NCCL's library was not found"; }

constexpr const char* kNames[] = {
#define XCCL_NAME(name) #name,
    XCCL_FORWARDED_NAMES(XCCL_NAME)
#undef XCCL_NAME
};

}  // namespace

extern "C" {

// By index in kNames. The jumps read it.
[[gnu::visibility("hidden"), gnu::used]] void* xccl_nccl_forward[sizeof kNames / sizeof kNames[0]];

}  // extern "C"

// The assembler counts the names: each jump is for the next place of the table.
asm(".text\n.set xccl_at, 0\n");
#if defined(__x86_64__)
#define XCCL_JUMP(name)                                                                       \
  asm(".globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name                      \
      ":\n  endbr64\n  jmp *(xccl_nccl_forward + xccl_at)(%rip)\n.size " #name ", . - " #name \
      "\n.set xccl_at, xccl_at + 8\n");
#elif defined(__aarch64__)
#define XCCL_JUMP(name)                                                                             \
  asm(".globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name                            \
      ":\n  hint 34\n  adrp x16, xccl_nccl_forward + xccl_at\n"                                     \
      "  add x16, x16, :lo12:xccl_nccl_forward + xccl_at\n  ldr x16, [x16]\n  br x16\n.size " #name \
      ", . - " #name "\n.set xccl_at, xccl_at + 8\n");
#else
#error "a jump for this processor is missing"
#endif
XCCL_FORWARDED_NAMES(XCCL_JUMP)

namespace {

[[gnu::constructor]] void FindAll() {
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
    void* found = xccl::nccl_shim::FindInNccl(kNames[i]);
    const std::string_view name = kNames[i];
    if (found == nullptr)
      found = name.ends_with("GetErrorString") || name.ends_with("GetLastError")
                  ? reinterpret_cast<void*>(&MissingText)
                  : reinterpret_cast<void*>(&Missing);
    xccl_nccl_forward[i] = found;
  }
}

}  // namespace
