// XCCL_CHECK: what only a programmer can break, tested in all builds.
#pragma once

#include <stdexcept>

namespace xccl {

// Thrown where a check fails within RunGuarded (base/guarded.h); nobody else catches it.
class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Prints `file:line: check failed: text` and aborts, or throws it within RunGuarded. Use through XCCL_CHECK.
[[noreturn]] void CheckFailed(const char* file, int line, const char* text);

// While one exists, checks that fail on this thread throw CheckFailure. Only for RunGuarded.
class ChecksThrow {
 public:
  ChecksThrow();
  ~ChecksThrow();
  ChecksThrow(const ChecksThrow&) = delete;
  ChecksThrow& operator=(const ChecksThrow&) = delete;
};

}  // namespace xccl

#define XCCL_CHECK(condition)                                  \
  (__builtin_expect(static_cast<bool>(condition), 1) ? (void)0 \
                                                     : ::xccl::CheckFailed(__FILE__, __LINE__, #condition))
