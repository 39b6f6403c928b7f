// Programs as execution plans of MSCCL++ (microsoft/mscclpp). docs/msccl.md has the mapping, the limits and
// how a plan is put to use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"
#include "topologies/topology.h"

namespace xccl {

struct MscclppOptions {
  std::string name = "xccl";  // name of the plan, before a hash of all else; opens messages
  bool in_place = false;      // a plan is selected either in place or out of place
  int64_t min_bytes = 0;      // sizes that the plan is selected for
  int64_t max_bytes = 0;      // 0: as large as the executor's 32 bits allow
  // By rank: the number of its domain. Ranks of one domain reach each other's memory by loads and stores;
  // ranks of different domains use ports. Empty: one domain.
  IdVector<Rank, int32_t> domains = {};
};

// The domains of a topology: two ranks share one if they are on one host, or joined by links without a NIC.
IdVector<Rank, int32_t> LoadStoreDomains(const Topology& topology);

struct MscclppJson {
  std::string text;
  int32_t chunks = 0;     // the size is cut into this many
  int64_t max_bytes = 0;  // the largest size that MSCCL++ selects the plan for
  std::string selection;  // one line: the sizes that MSCCL++ selects the plan for
  std::vector<std::string> warnings;
};

// Errors: kInvalidInput that names the limit of the executor, or what it cannot do: reductions in switches
// without a multicast, parts of unequal sizes, other collectives. Requires: a program that verifies. Cost:
// linear in the instructions and their copies; placing messages may look at all instructions for each.
StatusOr<MscclppJson> WriteMscclppJson(const Program& program, const Collective& collective,
                                       const MscclppOptions& options);

// The program as MSCCL++ runs the plan that WriteMscclppJson writes: packets go in one pass, what MSCCL++
// sends no packets of is of protocol simple, and a message of several pieces takes a slot for each, so that
// all connections have as many times the slots. Its simulation is that of the plan. Requires: a program that
// is written.
Program AsRunByMscclpp(Program program, const MscclppOptions& options);

}  // namespace xccl
