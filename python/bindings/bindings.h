// The extension module xccl_synth._xccl: the stages of pipeline/ as thin functions and values for the Python
// package around it (python/xccl_synth/), which gives them their names, defaults and tables. One file binds
// one stage. Functions here throw: py.h turns exceptions of C++ into Python's.
#pragma once

#include <memory>

#include "ir/collective.h"
#include "ir/schedule.h"
#include "pipeline/plan_result.h"
#include "python/bindings/py.h"
#include "topologies/topology.h"

namespace xccl::python {

// A schedule with the topology and collective that it is for. Parts of a plan share its ownership.
struct BoundSchedule {
  std::shared_ptr<const Topology> topology;
  std::shared_ptr<const Collective> collective;
  std::shared_ptr<const Schedule> schedule;
};

// A plan with the facts that planning found: bound, ratio, statistics.
using SharedPlan = std::shared_ptr<PlanResult>;

// A part of a value that Python holds, which lives as long as the whole. Nothing in Python changes it.
template <typename T, typename Whole>
std::shared_ptr<T> PartOf(const std::shared_ptr<Whole>& whole, const T& part) {
  return std::shared_ptr<T>(whole, const_cast<T*>(&part));
}

// Throws where a member is no rank of the machine.
void CheckMembers(const Topology& topology, const Collective& collective);

void BindArrays(py::module_& module);
void BindCalls(py::module_& module);
void BindTopology(py::module_& module);
void BindCollective(py::module_& module);
void BindSchedule(py::module_& module);
void BindProgram(py::module_& module);
void BindPlan(py::module_& module);
void BindExperts(py::module_& module);
void BindPredict(py::module_& module);
void BindCompare(py::module_& module);
void BindEmit(py::module_& module);
void BindTune(py::module_& module);
void BindView(py::module_& module);

}  // namespace xccl::python
