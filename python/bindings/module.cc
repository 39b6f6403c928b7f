// The entry of the extension module, and the errors of Python for what is thrown in it.
#include <exception>

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

void BindAll(py::module_& module) {
  module.attr("version") = kVersion;
  BindArrays(module);
  BindCalls(module);
  BindTopology(module);
  BindCollective(module);
  BindSchedule(module);
  BindProgram(module);
  BindPlan(module);
  BindExperts(module);
  BindPredict(module);
  BindCompare(module);
  BindEmit(module);
  BindTune(module);
  BindView(module);
}

}  // namespace

void py::SetErrorOfException() {
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::cast_error& error) {
    Set(InvalidInput(std::string("a value of another version of xccl_synth: ") + error.what()));
  } catch (const std::exception& error) {
    Set(StatusOf(error));
  }
}

}  // namespace xccl::python

PyMODINIT_FUNC PyInit__xccl() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "_xccl",
                                   "The stages of XCCL. Use the package xccl_synth, which wraps them.",
                                   -1,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  try {
    xccl::python::py::module_ module(xccl::python::py::object::Steal(PyModule_Create(&definition)));
    xccl::python::BindAll(module);
    return module.release();
  } catch (...) {
    xccl::python::py::SetErrorOfException();
    return nullptr;
  }
}
