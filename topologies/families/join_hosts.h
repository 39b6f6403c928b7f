// --hosts: copies of one host, joined by their NICs as --rails, --no-rails and --fabric say.
#pragma once

#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// Makes options.hosts copies, named h0, h1, ..., of a topology of one host. NICs for management are left out,
// with a warning: those without gdr where others have it; those with less than a quarter of the fastest NIC's
// bandwidth; and those that are nearest to no GPU. The network that joins the others has the type and numbers
// of --fabric. Without a type it is one switch `rail0`, `rail1`, ... for each NIC of a host with --rails, and
// one switch `fabric` with --no-rails. Without either flag, rails are taken where a host has several NICs,
// each reaches GPUs without a CPU between or is nearer to some GPUs than to others, and GPUs reach each
// other. A link has the bandwidth of its NIC's fastest link, and 1.3 us (TE-CCL's measured alpha for
// InfiniBand). Errors: several hosts, no NIC, too many nodes, --fabric's text.
StatusOr<Topology> JoinHosts(const Topology& topology, const LoadOptions& options,
                             std::span<const NodeId> nics_without_gdr);

}  // namespace xccl
