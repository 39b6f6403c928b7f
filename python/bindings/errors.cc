#include "python/bindings/errors.h"

namespace xccl::python {
namespace {

const char* ClassOf(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidInput:
      return "InvalidInput";
    case StatusCode::kUsage:
      return "UsageError";
    case StatusCode::kInfeasible:
      return "Infeasible";
    case StatusCode::kLimit:
      return "LimitReached";
    case StatusCode::kSystem:
      return "SystemFailure";
    case StatusCode::kPeerEnded:
      return "PeerEnded";
    case StatusCode::kOk:
    case StatusCode::kBug:
      break;
  }
  return "InternalError";
}

}  // namespace

py::str TextOf(std::string_view text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  return py::str(py::object::Steal(decoded));
}

void Raise(const Status& status) {
  const py::object type = py::Import("xccl_synth.errors", ClassOf(status.code()));
  PyErr_SetObject(type.ptr(), TextOf(status.message()).ptr());
  throw py::error_already_set();
}

}  // namespace xccl::python
