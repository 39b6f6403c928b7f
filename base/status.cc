#include "base/status.h"

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
    case StatusCode::kSystem:
    case StatusCode::kPeerEnded:
      return 5;
  }
  return 4;
}

Status Annotate(Status status, std::string_view prefix) {
  if (status.ok()) return status;
  return Status(status.code(), std::string(prefix) + ": " + status.message(), status.needed());
}

void ReadWithoutValue(const Status& status) {
  CheckFailed(__FILE__, __LINE__, ("a StatusOr was read that has no value: " + status.message()).c_str());
}

}  // namespace xccl
