// Proves by symbolic execution that a program does what its collective says. Rules (docs/ir.md has the same
// list):
//   P1 structure: peers exist and differ from the rank, each direction of a (peer, channel) has one
//      threadblock and a declared connection, counts > 0, opcodes match the threadblock's peers; a group has
//      a root and two or more members, a connection for each that is in no other group, and one threadblock
//      of its root in place of the peer; groups need the simple protocol. A connection's path is a chain
//      from its source to its destination, as rule S2 has it; a group's is a tree between its root and its
//      members, and the paths of its connections are branches of it
//   P2 references in bounds: slots exist, operands of several chunks do not leave their buffer,
//      the two operands of an instruction have equal chunk sizes, the input is not written
//   P3 dependencies name instructions that exist and are not circular
//   P4 the k-th send of a connection matches the k-th receive: same count, same chunk sizes
//   P5 no deadlock with the program's slots
//   P6 every two conflicting accesses are ordered, by messages only in protocol simple; those of one
//      instruction are ordered only where both are to one slot, for one chunk
//   P7 what is read has been written; nothing is reduced twice
//   P8 the postcondition holds in the output buffers
//   P9 `first` and `final` are where avg needs them
// P6..P8 are checked out of place and, where the program says in_place, in place too.
#pragma once

#include <string_view>
#include <vector>

#include "ir/collective.h"
#include "ir/program.h"
#include "ir/verify/traffic.h"
#include "ir/violation.h"
#include "topologies/topology.h"

namespace xccl {

inline constexpr std::string_view kProgramRules[] = {"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9"};

// Facts about a program without violations that the verifier finds beside the rules.
struct ProgramRecord {
  Traffic traffic;
  // All ranks that end with a sum of one chunk compute the same expression, up to commuting operands. Every
  // reduction in switches counts as an order of its own.
  bool bitwise_same = true;
};

// All violations up to kMaxViolations. Cost: linear in the chunks that instructions touch, and in links of
// paths. Fills `record`, where it is given.
std::vector<Violation> VerifyProgram(const Program& program, const Collective& collective,
                                     const Topology& topology, ProgramRecord* record = nullptr);

}  // namespace xccl
