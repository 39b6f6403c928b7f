// The machine that a job's plans are for: a machine that the user names or that was found, as many times as
// the job has hosts.
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

// Returns how many hosts `loaded` stands for: 1 if it has all ranks of the job, or the job's number of hosts
// if it is one of them. Errors: kInvalidInput if its ranks are neither.
StatusOr<int32_t> HostsToAdd(const Topology& loaded, const JobShape& shape);

// Returns the part of a machine of GPUs that the job uses: all GPUs if the job has as many ranks, or one
// process a host, which then has all GPUs of its host; else the first GPUs of each host, one for each rank.
// The result is named `name`, because the name of a host would tell equal machines apart. Errors:
// kInvalidInput if a host has more ranks than GPUs.
StatusOr<Topology> GpusOfJob(const Topology& machine, const JobShape& shape, const std::string& name);

// Returns a text that is equal for as long as this host's GPUs, NICs and driver are: the boot, what the
// kernel lists of them, and the variables that choose among them. Returns nothing if no nvidia-smi is on
// PATH. Cost: a few milliseconds.
std::optional<std::string> FingerprintOfGpus(const Environment& environment);

}  // namespace xccl
