// Finds the machine that a job's plans are for. The user names a machine, or it was found. If it is one of
// the job's hosts, the plans are for a copy of it for each host.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "pipeline/exec/job_shape.h"
#include "runtime/bootstrap/placement.h"
#include "topologies/topology.h"

namespace xccl {

// Returns native XML of hosts whose ranks are processes on CPU cores. Its bandwidths and latencies are
// assumed: ranks of one host reach each other through memory, hosts through TCP.
std::string XmlOfCpuRanks(const JobShape& shape);

// Returns how many copies of `loaded` make the job's machine. The number is 1 if `loaded` has as many ranks
// as the job. It is the job's number of hosts if `loaded` is one host, and the job has either as many ranks
// on each host as `loaded` or one rank on each host. Errors: kInvalidInput otherwise.
StatusOr<int32_t> HostsToAdd(const Topology& loaded, const JobShape& shape);

// Returns the part of a machine of GPUs that the job uses. All GPUs are used if the job has as many ranks, or
// if it has one process a host, which then has all GPUs of its host. Otherwise each host's first GPUs are
// used, one for each rank. The result is named `name`, because the name of a host would tell equal machines
// apart. Errors: kInvalidInput if a host has more ranks than GPUs.
StatusOr<Topology> GpusOfJob(const Topology& machine, const JobShape& shape, const std::string& name);

// Returns a text that changes if this host's GPUs, NICs or driver change, and at every boot. It holds the
// name of the host, the id of the boot, what the kernel lists of these devices, and the variables that choose
// among them. Returns nothing if no nvidia-smi is on PATH. Cost: a few milliseconds.
std::optional<std::string> FingerprintOfGpus(const Environment& environment);

}  // namespace xccl
