// The library's machines, for tests that plan on every one of them.
#pragma once

#include <string>
#include <vector>

namespace xccl {

// Names of the library's machines of up to 128 hosts of 8 GPUs, sorted, without a machine that has the hosts,
// nodes, links and GPUs of an earlier one, as the virtual machines of several clouds have.
std::vector<std::string> DistinctMachines();
// The first names of each shape: the same without the bandwidths of links and the kinds of GPUs.
std::vector<std::string> DistinctShapes();

}  // namespace xccl
