#include "base/status.h"

#include <cstdio>
#include <cstdlib>

namespace xccl {

int ExitCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidInput:
      return 1;
    case StatusCode::kUsage:
      return 2;
    case StatusCode::kInfeasible:
      return 3;
    case StatusCode::kBug:
      return 4;
    case StatusCode::kLimit:
      return 5;
  }
  return 4;
}

Status Annotate(Status status, std::string_view prefix) {
  if (status.ok()) return status;
  return Status(status.code(), std::string(prefix) + ": " + status.message());
}

void CheckFailed(const char* file, int line, const char* text) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text);
  std::abort();
}

}  // namespace xccl
