// --hosts: copies of one host, joined by their NICs as --rails, --no-rails and --fabric say, and by NVLink as
// --nvlink-domain says.
#pragma once

#include "base/status.h"
#include "topologies/host_facts.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// Makes options.hosts copies, named h0, h1, ..., of a topology of one host, and joins the NICs that
// NicsToJoin keeps (host_nics.h). The network has the type and numbers of --fabric. Without a type it is one
// switch for each rail with --rails, and one switch `fabric` with --no-rails. Without either flag, rails are
// taken where the facts name them, and where SuitsRails says so. The rails are those that the facts name, or
// `rail0`, `rail1`, ... for each NIC of a host. A link has the bandwidth of its NIC's fastest link, and 1.3
// us (TE-CCL's measured alpha for InfiniBand). Copies share the NVSwitch that the facts name, and with
// --nvlink-domain those switches that join GPUs alone, for up to so many GPUs (72). Errors: several hosts, no
// NIC, too many nodes, --fabric's text, a domain smaller than a host or without a switch.
StatusOr<Topology> JoinHosts(const Topology& topology, const LoadOptions& options, const HostFacts& facts);

}  // namespace xccl
