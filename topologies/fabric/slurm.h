// Slurm's topology.conf and topology.yaml, and what `scontrol show topology` prints
// (https://slurm.schedmd.com/topology.conf.html, topology.yaml.html), as a fabric: a tree of switches with
// hosts at its leaves, and blocks of hosts, which become domains. Slurm knows neither ports nor rates: a
// switch above another is one cable, whose rate is 0, and a host has one adapter without a name at each leaf
// that lists it. Files with blocks alone tell no network: one switch between all hosts is assumed.
#pragma once

#include <string_view>

#include "base/status.h"
#include "topologies/fabric/fabric.h"

namespace xccl {

// Does the first line that is no comment say SwitchName=, BlockName= or the like, or begin a list of
// topologies in YAML?
bool IsSlurmTopology(std::string_view text);

// If YAML has several topologies, the first with cluster_default, else the first, is read; switches or blocks
// that it lacks are taken from the first other one that has them. Warnings say so, and tell of switches
// below several others, hosts at several leaves, and hosts of blocks that are at no switch.
// Errors: kInvalidInput "FILE:LINE: ..." for text in another form, a switch or block that is named twice, a
// child that is no switch, a switch with hosts and children, switches that are below themselves, more than
// 1,000,000 names, rings and tori, and files without switches and blocks. `file` is the name shown in errors
// and warnings.
StatusOr<Fabric> ReadSlurmTopology(std::string_view text, std::string_view file);

}  // namespace xccl
