// The entry of the extension module.
#include "base/version.h"
#include "python/bindings/bindings.h"

PYBIND11_MODULE(_xccl, module) {
  module.doc() = "The stages of XCCL. Use the package xccl_synth, which wraps them.";
  module.attr("version") = xccl::kVersion;
  xccl::python::BindCalls(module);
  xccl::python::BindTopology(module);
  xccl::python::BindCollective(module);
  xccl::python::BindSchedule(module);
  xccl::python::BindProgram(module);
  xccl::python::BindPlan(module);
  xccl::python::BindPredict(module);
  xccl::python::BindEmit(module);
  xccl::python::BindTune(module);
  xccl::python::BindView(module);
}
