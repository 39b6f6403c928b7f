// XCCL_CHECK: what only a programmer can break, tested in all builds.
#pragma once

namespace xccl {

// Prints `file:line: check failed: text` and aborts. Use through XCCL_CHECK.
[[noreturn]] void CheckFailed(const char* file, int line, const char* text);

}  // namespace xccl

#define XCCL_CHECK(condition)                                  \
  (__builtin_expect(static_cast<bool>(condition), 1) ? (void)0 \
                                                     : ::xccl::CheckFailed(__FILE__, __LINE__, #condition))
