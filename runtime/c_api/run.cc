#include "runtime/c_api/run.h"

namespace xccl::c_api {

xcclResult_t Fail(xcclResult_t result, std::string_view text, const void* comm) noexcept {
  Remember(comm, text);
  Refuse(result);
  return result;
}

xcclResult_t ResultOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return xcclSuccess;
    case StatusCode::kUsage:
      return xcclInvalidArgument;
    case StatusCode::kInvalidInput:
    case StatusCode::kInfeasible:
      return xcclInvalidUsage;
    case StatusCode::kBug:
      return xcclInternalError;
    case StatusCode::kLimit:
    case StatusCode::kPeerEnded:
      return xcclRemoteError;
    case StatusCode::kSystem:
      return xcclSystemError;
  }
  return xcclInternalError;
}

}  // namespace xccl::c_api
