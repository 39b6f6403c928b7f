// The entry of the extension module.
#include <exception>
#include <new>

#include "base/exceptions.h"
#include "base/version.h"
#include "python/bindings/bindings.h"
#include "python/bindings/errors.h"

namespace xccl::python {
namespace {

void Set(const Status& status) {
  try {
    Raise(status);
  } catch (py::error_already_set& error) {
    error.restore();
  }
}

// Exceptions that reach the border of the module: of memory, and of states of pickles.
void Translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const py::cast_error&) {
    Set(InvalidInput("pickle: of another version of xccl_synth"));
  } catch (const std::bad_alloc& error) {
    Set(StatusOf(error));
  }
}

}  // namespace
}  // namespace xccl::python

PYBIND11_MODULE(_xccl, module) {
  module.doc() = "The stages of XCCL. Use the package xccl_synth, which wraps them.";
  pybind11::register_local_exception_translator(&xccl::python::Translate);
  module.attr("version") = xccl::kVersion;
  xccl::python::BindCalls(module);
  xccl::python::BindTopology(module);
  xccl::python::BindCollective(module);
  xccl::python::BindSchedule(module);
  xccl::python::BindProgram(module);
  xccl::python::BindPlan(module);
  xccl::python::BindPredict(module);
  xccl::python::BindCompare(module);
  xccl::python::BindEmit(module);
  xccl::python::BindTune(module);
  xccl::python::BindView(module);
}
