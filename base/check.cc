#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace xccl {
namespace {

thread_local int guards = 0;

}  // namespace

void CheckFailed(const char* file, int line, const char* text) {
  if (guards > 0)
    throw CheckFailure(std::string(file) + ":" + std::to_string(line) + ": check failed: " + text);
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text);
  std::abort();
}

ChecksThrow::ChecksThrow() { ++guards; }
ChecksThrow::~ChecksThrow() { --guards; }

}  // namespace xccl
