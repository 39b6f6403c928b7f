// States of values for Python's pickle and copy: topologies as XML, other values as the JSON of plan files.
// States are read and checked as files are. Functions here throw.
#pragma once

#include "python/bindings/bindings.h"

namespace xccl::python {

// Throws where a state has another number of fields.
void CheckFields(const py::tuple& state, size_t size);

py::tuple StateOf(const Topology& topology);
std::shared_ptr<Topology> TopologyOfState(const py::tuple& state);

py::tuple StateOf(const Collective& collective);
std::shared_ptr<Collective> CollectiveOfState(const py::tuple& state);

py::tuple StateOf(const BoundSchedule& schedule);
BoundSchedule ScheduleOfState(const py::tuple& state);

// With all that was found out about it, so that nothing is searched, bounded or simulated again.
py::tuple StateOf(const PlanResult& result);
SharedPlan PlanOfState(const py::tuple& state);

}  // namespace xccl::python
